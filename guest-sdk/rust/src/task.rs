//! Tasks: futures that go on by themselves.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::executor::{add_task, remove_task};

/// Lets a future go on by itself, beside the one that spawns it.
///
/// Awaiting the `Task` gives what it comes to; dropping the `Task` lets it go on. What is not over when `main` returns is
/// dropped.
pub fn spawn<T: 'static>(future: impl Future<Output = T> + 'static) -> Task<T> {
    let result = Rc::new(RefCell::new(TaskResult { value: None, waker: None }));
    let written = Rc::clone(&result);
    let number = add_task(async move {
        let value = future.await;
        let mut written = written.borrow_mut();
        written.value = Some(value);
        if let Some(waker) = written.waker.take() {
            waker.wake();
        }
    });
    Task { number, result }
}

/// A future that goes on by itself, made by `spawn`.
pub struct Task<T> {
    number: u64,
    result: Rc<RefCell<TaskResult<T>>>,
}

struct TaskResult<T> {
    value: Option<T>,
    waker: Option<Waker>,
}

impl<T> Task<T> {
    /// Drops the future where it waits. A generation that it waits for ends, too.
    pub fn cancel(self) {
        remove_task(self.number);
    }

    /// Whether it is over.
    pub fn is_finished(&self) -> bool {
        self.result.borrow().value.is_some()
    }
}

impl<T> Future for Task<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut result = self.result.borrow_mut();
        match result.value.take() {
            Some(value) => Poll::Ready(value),
            None => {
                result.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
