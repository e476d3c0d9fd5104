/** The queue of what is to be done before anything is waited for. The engine has one, but nobody runs it in a sync export. */

type Job = () => void;

let queue: Job[] = [];
let next = 0;

/** Do this once the code that runs now has returned. */
export function enqueue(job: Job): void {
  queue.push(job);
}

/** Do all that is queued, and what that queues. */
export function runJobs(): void {
  while (next < queue.length) {
    const job = queue[next]!;
    next += 1;
    if (next === 1024) {
      queue = queue.slice(next);
      next = 0;
    }
    job();
  }
  queue = [];
  next = 0;
}
