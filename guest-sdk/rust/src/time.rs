//! Waiting for time to pass.

use std::future::Future;
use std::pin::{pin, Pin};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::error::{Error, ErrorCode, Result};
use crate::event::OwnedEvent;
use crate::wit::events;

/// Waits so long.
pub async fn sleep(duration: Duration) {
    // A timer's outcome is always ok.
    let _ = OwnedEvent::new(events::timer(nanoseconds(duration))).finish("sleep").await;
}

/// Waits for a future, but no longer than this. Error: `DeadlineExceeded`; the future is dropped where it waits.
pub async fn timeout<T>(duration: Duration, future: impl Future<Output = T>) -> Result<T> {
    let (future, timer) = (pin!(future), pin!(sleep(duration)));
    match (First { future, timer }).await {
        Some(value) => Ok(value),
        None => Err(Error::of(
            ErrorCode::DeadlineExceeded,
            "timeout",
            format!("it took longer than {} s", duration.as_secs_f64()),
        )),
    }
}

pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The future's value, or nothing if the timer is the first.
struct First<'a, F, S> {
    future: Pin<&'a mut F>,
    timer: Pin<&'a mut S>,
}

impl<F: Future, S: Future> Future for First<'_, F, S> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(value) = self.future.as_mut().poll(context) {
            return Poll::Ready(Some(value));
        }
        self.timer.as_mut().poll(context).map(|_| None)
    }
}
