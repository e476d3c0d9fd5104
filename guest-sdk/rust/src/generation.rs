//! Generations: awaited for their text or draft, or read chunk by chunk.

use std::collections::VecDeque;
use std::future::{poll_fn, Future};
use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::task::{self, Poll};
use std::time::Duration;

use futures_core::Stream;

use crate::constraint::Constraint;
use crate::context::Context;
use crate::draft::{Chunk, Draft, Written};
use crate::error::{Error, ErrorCode, Named, Result};
use crate::executor::{fail, forget, ready, Ready};
use crate::mask::Mask;
use crate::sampler::Sampler;
use crate::speculation::Speculation;
use crate::stop_condition::StopCondition;
use crate::time::nanoseconds;
use crate::wit::types::Event;
use crate::wit::{controllers, generation};

const CALL: &str = "Context.generate";
/// Thirty chunks a second: as often as anybody can see.
const CHUNK_INTERVAL: Duration = Duration::from_millis(30);

/// One generation, made by `Context.generate`. It starts when it is awaited.
///
/// Awaited as it is, it gives its text, and an error ends the run. `draft` gives all there is to know, or the error;
/// `chunks` gives what comes as it comes. Dropping any of these cancels it.
#[must_use = "a generation starts when it is awaited"]
pub struct Generate<'context> {
    request: Option<Request>,
    whole: Option<Pin<Box<dyn Future<Output = Result<Draft>> + 'context>>>,
    at: &'static Location<'static>,
    context: PhantomData<&'context mut Context>,
}

/// What is asked for.
struct Request {
    context: Context,
    sampler: Sampler,
    stop: StopCondition,
    logprobs: Option<u32>,
    chunk_interval: Duration,
    constraint: Option<Constraint>,
    speculation: Option<Speculation>,
    mask: Option<Mask>,
    controller: Option<(String, String)>,
}

impl<'context> Generate<'context> {
    #[track_caller]
    pub(crate) fn new(context: Context, sampler: Sampler, stop: StopCondition) -> Self {
        let request = Request {
            context,
            sampler,
            stop,
            logprobs: None,
            chunk_interval: CHUNK_INTERVAL,
            constraint: None,
            speculation: None,
            mask: None,
            controller: None,
        };
        Self { request: Some(request), whole: None, at: Location::caller(), context: PhantomData }
    }

    /// Writes only what the constraint allows.
    pub fn constraint(self, constraint: Constraint) -> Self {
        self.with(|request| request.constraint = Some(constraint))
    }

    /// Samples only tokens of this set, besides what the constraint allows.
    pub fn mask(self, mask: &Mask) -> Self {
        self.with(|request| request.mask = Some(mask.clone()))
    }

    /// Reports the log-probability of each token, and of this many most likely ones (0 to 20).
    pub fn logprobs(self, top: u32) -> Self {
        self.with(|request| request.logprobs = Some(top))
    }

    /// Guesses the next tokens, so that several come of one step. What is generated stays the same.
    pub fn speculation(self, speculation: Speculation) -> Self {
        self.with(|request| request.speculation = Some(speculation))
    }

    /// Lets a controller steer it: a program that the host knows by this name, which is given `config`, JSON as a rule.
    pub fn controller(self, name: &str, config: &str) -> Self {
        self.with(|request| request.controller = Some((name.to_owned(), config.to_owned())))
    }

    /// For `chunks`: the time between two chunks, at least; by default 30 ms. Tokens that come meanwhile join the next one.
    pub fn chunk_interval(self, interval: Duration) -> Self {
        self.with(|request| request.chunk_interval = interval)
    }

    fn with(mut self, change: impl FnOnce(&mut Request)) -> Self {
        self.request.as_mut().map(change);
        self
    }

    /// All there is to know of it, when it has ended.
    pub async fn draft(mut self) -> Result<Draft> {
        match self.request.take() {
            Some(request) => Running::start(request, false).await?.whole().await,
            None => Err(Error::of(ErrorCode::Unavailable, CALL, "the generation was awaited before")),
        }
    }

    /// What it generates as it comes. It has started when this returns.
    pub async fn chunks(mut self) -> Result<Chunks<'context>> {
        match self.request.take() {
            Some(request) => Ok(Chunks { running: Running::start(request, true).await?, context: PhantomData }),
            None => Err(Error::of(ErrorCode::Unavailable, CALL, "the generation was awaited before")),
        }
    }
}

impl Future for Generate<'_> {
    type Output = String;

    fn poll(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<String> {
        if let Some(request) = self.request.take() {
            self.whole = Some(Box::pin(async move { Running::start(request, false).await?.whole().await }));
        }
        let Some(whole) = self.whole.as_mut() else { return Poll::Pending };
        match whole.as_mut().poll(context) {
            Poll::Ready(Ok(draft)) => {
                self.whole = None;
                Poll::Ready(draft.text)
            }
            Poll::Ready(Err(mut error)) => {
                self.whole = None;
                error.message = format!("{} (at {})", error.message, self.at);
                fail(error);
                Poll::Pending // nobody polls again
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

/// A generation that is read as it comes: `while let Some(chunk) = chunks.next().await`.
pub struct Chunks<'context> {
    running: Running,
    context: PhantomData<&'context mut Context>,
}

impl Chunks<'_> {
    /// The next chunk; nothing after the last one.
    pub async fn next(&mut self) -> Option<Result<Chunk>> {
        poll_fn(|context| self.running.poll_chunk(context)).await
    }

    /// The whole draft, after the last chunk. Error: `Unavailable` before that.
    pub fn draft(&self) -> Result<&Draft> {
        let message = "the generation has not ended yet";
        let unavailable =
            || Error::of(ErrorCode::Unavailable, "Chunks.draft", message).with_hint("Read it to its end.");
        self.running.draft.as_ref().ok_or_else(unavailable)
    }

    /// Ends it at the next step, with what it has: its finish reason is then `Cancelled`.
    pub fn cancel(&self) {
        match &self.running.handle {
            Some(Handle::Plain(handle)) => handle.cancel(),
            Some(Handle::Controlled(handle)) => handle.cancel(),
            None => {}
        }
    }

    /// The context that it goes on with, which can be read and forked meanwhile.
    pub fn context(&self) -> &Context {
        &self.running.context
    }
}

impl Stream for Chunks<'_> {
    type Item = Result<Chunk>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Option<Self::Item>> {
        self.running.poll_chunk(context)
    }
}

enum Handle {
    Plain(generation::Generation),
    Controlled(controllers::Controlled),
}

/// A generation that has started.
struct Running {
    context: Context,
    /// Nothing once it has ended, or failed.
    handle: Option<Handle>,
    event: Event,
    wait: Ready,
    /// By sequence; without a controller there is one.
    written: Vec<(u32, Written)>,
    pending: VecDeque<Chunk>,
    draft: Option<Draft>,
    /// The controller refers to it by its number.
    _mask: Option<Mask>,
}

impl Running {
    async fn start(request: Request, streaming: bool) -> Result<Self> {
        let context = request.context;
        let compiled = match &request.constraint {
            Some(constraint) => Some(constraint.compile(context.model(), CALL).await?),
            None => None,
        };
        let speculation = match &request.speculation {
            Some(speculation) => Some(speculation.to_wit(context.model(), CALL)?),
            None => None,
        };
        let options = generation::Options {
            streaming,
            chunk_interval_ns: nanoseconds(request.chunk_interval),
            log_probabilities: request.logprobs,
            constraint: compiled.as_ref().map(|constraint| constraint.id()),
            speculation,
            mask: request.mask.as_ref().map(Mask::id),
        };
        let (sampling, stop) = (request.sampler.to_wit(), request.stop.to_wit());
        let (handle, event) = match &request.controller {
            None => {
                let handle = generation::generate(context.handle(), sampling, &stop, &options).named(CALL)?;
                let event = handle.ready();
                (Handle::Plain(handle), event)
            }
            Some((name, config)) => {
                let handle =
                    controllers::control(context.handle(), name, config, sampling, &stop, &options).named(CALL)?;
                let event = handle.ready();
                (Handle::Controlled(handle), event)
            }
        };
        Ok(Self {
            context,
            handle: Some(handle),
            event,
            wait: ready(event),
            written: Vec::new(),
            pending: VecDeque::new(),
            draft: None,
            _mask: request.mask,
        })
    }

    async fn whole(mut self) -> Result<Draft> {
        loop {
            match poll_fn(|context| self.poll_chunk(context)).await {
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error),
                None => break,
            }
        }
        let given_up = || Error::of(ErrorCode::Cancelled, CALL, "the generation was given up before its end");
        self.draft.take().ok_or_else(given_up)
    }

    fn poll_chunk(&mut self, context: &mut task::Context<'_>) -> Poll<Option<Result<Chunk>>> {
        loop {
            if let Some(chunk) = self.pending.pop_front() {
                return Poll::Ready(Some(Ok(chunk)));
            }
            if self.handle.is_none() {
                return Poll::Ready(None);
            }
            if Pin::new(&mut self.wait).poll(context).is_pending() {
                return Poll::Pending;
            }
            if let Err(error) = self.read() {
                self.close();
                return Poll::Ready(Some(Err(error)));
            }
        }
    }

    /// Reads what has come.
    fn read(&mut self) -> Result<()> {
        match &self.handle {
            Some(Handle::Plain(handle)) => {
                let read = handle.read().named(CALL)?;
                let has_ended = read.finish.is_some();
                let chunk = Chunk {
                    text: read.text,
                    tokens: read.tokens,
                    logprobs: read.log_probabilities,
                    ..Chunk::default()
                };
                self.add(chunk, read.finish);
                if has_ended {
                    self.end();
                }
            }
            Some(Handle::Controlled(handle)) => {
                let read = handle.read().named(CALL)?;
                for each in read.chunks {
                    let chunk = Chunk {
                        text: each.text,
                        tokens: each.tokens,
                        logprobs: each.log_probabilities,
                        sequence: each.sequence,
                        text_backtrack: each.text_backtrack,
                        token_backtrack: each.token_backtrack,
                    };
                    self.add(chunk, each.finish);
                }
                if read.ended {
                    self.end();
                }
            }
            None => {}
        }
        Ok(())
    }

    fn add(&mut self, chunk: Chunk, finish: Option<generation::Finish>) {
        let place = self.written.iter().position(|(sequence, _)| *sequence == chunk.sequence).unwrap_or_else(|| {
            self.written.push((chunk.sequence, Written::default()));
            self.written.len() - 1
        });
        self.written[place].1.add(&chunk, finish);
        if !chunk.text.is_empty() || !chunk.tokens.is_empty() || chunk.token_backtrack > 0 || chunk.text_backtrack > 0 {
            self.pending.push_back(chunk);
        }
    }

    /// Makes the draft of what was written.
    fn end(&mut self) {
        let is_controlled = matches!(self.handle, Some(Handle::Controlled(_)));
        let mut written = std::mem::take(&mut self.written);
        written.sort_by_key(|(sequence, _)| *sequence);
        let drafts: Vec<Draft> = written.into_iter().filter_map(|(_, written)| written.draft()).collect();
        self.draft = drafts.first().cloned();
        if let (true, Some(draft)) = (is_controlled, &mut self.draft) {
            draft.sequences = drafts;
        }
        self.close();
    }

    fn close(&mut self) {
        if let Some(handle) = self.handle.take() {
            forget(self.event);
            drop(handle);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.close();
    }
}
