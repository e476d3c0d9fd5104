//! Runs futures: one thread, with the host's `events.poll` where other executors have a selector.
//!
//! Any future works here, from whatever crate: a waker puts its task into the queue of those that can go on. When none
//! can, the host is asked to wait for all events that tasks wait for at once.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::io::Write;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use crate::error::{Error, ErrorCode, Result};
use crate::wit::events;
use crate::wit::types::Event;

const MAIN: u64 = 0;

thread_local! {
    static EXECUTOR: Executor = const { Executor::new() };
}

/// The tasks that can go on, in order. Wakers can be sent to other threads, of which there are none.
static AWAKE: Mutex<Vec<u64>> = Mutex::new(Vec::new());

type TaskFuture = Pin<Box<dyn Future<Output = ()>>>;

struct Executor {
    /// The tasks besides the main one, but for one that is being polled.
    tasks: RefCell<BTreeMap<u64, TaskFuture>>,
    /// Who waits for which event of the host's: by event, the number of the wait and whom to wake.
    waits: RefCell<BTreeMap<Event, Vec<(u64, Waker)>>>,
    /// Numbers of tasks and waits so far.
    numbers: Cell<u64>,
    /// What ends the run, whatever its tasks do.
    failure: RefCell<Option<Error>>,
}

impl Executor {
    const fn new() -> Self {
        Self {
            tasks: RefCell::new(BTreeMap::new()),
            waits: RefCell::new(BTreeMap::new()),
            numbers: Cell::new(MAIN),
            failure: RefCell::new(None),
        }
    }

    fn next_number(&self) -> u64 {
        self.numbers.set(self.numbers.get() + 1);
        self.numbers.get()
    }

    /// Waits until an event is ready, or only looks, and wakes who waits for it.
    fn wait(&self, timeout_ns: Option<u64>) {
        let events: Vec<Event> = self.waits.borrow().keys().copied().collect();
        let _ = std::io::stdout().flush();
        for event in events::poll(&events, timeout_ns) {
            self.wake(event);
        }
    }

    fn wake(&self, event: Event) {
        let waiting = self.waits.borrow_mut().remove(&event);
        for (_, waker) in waiting.into_iter().flatten() {
            waker.wake();
        }
    }
}

struct TaskWaker(u64);

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let mut awake = AWAKE.lock().unwrap();
        if !awake.contains(&self.0) {
            awake.push(self.0);
        }
    }
}

/// Runs the future to its end. Tasks that it leaves behind are dropped.
///
/// Errors: what `fail` was given; `Deadlock`, if everything waits and nothing is left that could wake it.
pub(crate) fn block_on<T>(main: impl Future<Output = T>) -> Result<T> {
    let mut main = Box::pin(main);
    AWAKE.lock().unwrap().push(MAIN);
    let result = EXECUTOR.with(|executor| run(executor, main.as_mut()));
    // The futures may refer to what others hold, so they go before anything else does.
    drop(main);
    let tasks = EXECUTOR.with(|executor| executor.tasks.take());
    drop(tasks);
    result
}

fn run<T>(executor: &Executor, mut main: Pin<&mut impl Future<Output = T>>) -> Result<T> {
    loop {
        let awake = std::mem::take(&mut *AWAKE.lock().unwrap());
        for number in awake {
            let waker = Waker::from(Arc::new(TaskWaker(number)));
            let mut context = Context::from_waker(&waker);
            let mut result = Poll::Pending;
            if number == MAIN {
                result = main.as_mut().poll(&mut context);
            } else {
                poll_task(executor, number, &mut context);
            }
            if let Some(error) = executor.failure.take() {
                return Err(error);
            }
            if let Poll::Ready(value) = result {
                return Ok(value);
            }
        }
        let can_go_on = !AWAKE.lock().unwrap().is_empty();
        if !executor.waits.borrow().is_empty() {
            executor.wait(can_go_on.then_some(0));
        } else if !can_go_on {
            let message = "deadlock: every task waits, and nothing is left that could wake one";
            return Err(Error::of(ErrorCode::Deadlock, "", message));
        }
    }
}

fn poll_task(executor: &Executor, number: u64, context: &mut Context<'_>) {
    let Some(mut task) = executor.tasks.borrow_mut().remove(&number) else {
        return; // it has ended, or was cancelled
    };
    if task.as_mut().poll(context).is_pending() {
        executor.tasks.borrow_mut().insert(number, task);
    }
}

/// Ends the run with this error as soon as the task that is being polled waits.
pub(crate) fn fail(error: Error) {
    EXECUTOR.with(|executor| {
        executor.failure.borrow_mut().get_or_insert(error);
    });
}

/// Adds a task; its number.
pub(crate) fn add_task(task: impl Future<Output = ()> + 'static) -> u64 {
    EXECUTOR.with(|executor| {
        let number = executor.next_number();
        executor.tasks.borrow_mut().insert(number, Box::pin(task));
        AWAKE.lock().unwrap().push(number);
        number
    })
}

/// Drops a task, unless it is being polled.
pub(crate) fn remove_task(number: u64) {
    let task = EXECUTOR.with(|executor| executor.tasks.borrow_mut().remove(&number));
    drop(task);
}

/// Wakes those that wait for an event of the host's which is about to be freed.
pub(crate) fn forget(event: Event) {
    EXECUTOR.with(|executor| executor.wake(event));
}

/// Waits until an event of the host's is ready. Any number of tasks may wait for the same one.
pub(crate) fn ready(event: Event) -> Ready {
    Ready { event, number: None }
}

/// A wait for an event of the host's.
pub(crate) struct Ready {
    event: Event,
    /// Set while the executor knows of it.
    number: Option<u64>,
}

impl Future for Ready {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        EXECUTOR.with(|executor| {
            let mut waits = executor.waits.borrow_mut();
            let Some(number) = self.number else {
                let number = executor.next_number();
                waits.entry(self.event).or_default().push((number, context.waker().clone()));
                self.number = Some(number);
                return Poll::Pending;
            };
            match waits.get_mut(&self.event).and_then(|waiting| waiting.iter_mut().find(|(each, _)| *each == number)) {
                Some((_, waker)) => {
                    waker.clone_from(context.waker());
                    Poll::Pending
                }
                None => {
                    self.number = None;
                    Poll::Ready(())
                }
            }
        })
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        EXECUTOR.with(|executor| {
            let mut waits = executor.waits.borrow_mut();
            if let Some(waiting) = waits.get_mut(&self.event) {
                waiting.retain(|(each, _)| *each != number);
                if waiting.is_empty() {
                    waits.remove(&self.event);
                }
            }
        });
    }
}
