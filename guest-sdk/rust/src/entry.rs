//! Where the host comes in: what `#[inferlet::main]` and `#[inferlet::controller]` export calls these.

use std::cell::RefCell;
use std::future::Future;
use std::io::Write;
use std::panic::PanicHookInfo;

use crate::args::{Input, Output};
use crate::controller::{Controller, Steering};
use crate::executor::block_on;
use crate::wit::abi::{Abi, Arena, Load, Store};
use crate::wit::log::{log, Level};
use crate::wit::steering::{self, StartAnswer};

pub use crate::wit::component_type::{CONTROLLER, INFERLET};

thread_local! {
    /// The last result that the host was given, which it reads after the call.
    static RESULT: RefCell<Option<(Arena, Box<dyn std::any::Any>)>> = const { RefCell::new(None) };
}

/// The export `run` of a `main` that is async.
///
/// # Safety
/// The host has put the input there.
pub unsafe fn run_async<I: Input, F: Future>(input: *mut u8, length: usize, main: impl FnOnce(I) -> F) -> *const u8
where
    F::Output: Output,
{
    run_sync(input, length, |input| Blocked(block_on(main(input))))
}

/// The export `run` of a `main` that is not async.
///
/// # Safety
/// The host has put the input there.
pub unsafe fn run_sync<I: Input, O: Output>(input: *mut u8, length: usize, main: impl FnOnce(I) -> O) -> *const u8 {
    std::panic::set_hook(Box::new(report_panic));
    let text = text_at(input, length);
    let result = match I::of_text(text) {
        Ok(input) => main(input).into_text(),
        Err(error) => Err(error.to_string()),
    };
    let _ = std::io::stdout().flush();
    give(result)
}

/// What an async `main` came to, or what ended the run before.
struct Blocked<O>(crate::Result<O>);

impl<O: Output> Output for Blocked<O> {
    fn into_text(self) -> crate::Result<String, String> {
        self.0.map_err(|error| error.to_string())?.into_text()
    }
}

/// The export `start` of a controller.
///
/// # Safety
/// The host has put config and prompt there.
pub unsafe fn start<C: Controller>(
    steering: &RefCell<Option<Steering<C>>>,
    config: *mut u8,
    config_length: usize,
    prompt: *mut u8,
    prompt_length: usize,
) -> *const u8 {
    std::panic::set_hook(Box::new(report_panic));
    let config = text_at(config, config_length);
    let prompt = u32::load_list(prompt, prompt_length);
    let result: Result<StartAnswer, String> = Steering::start(&config, prompt)
        .map(|(begun, answer)| {
            *steering.borrow_mut() = Some(begun);
            answer
        })
        .map_err(|error| error.to_string());
    let _ = std::io::stdout().flush();
    give(result)
}

/// The export `step` of a controller.
///
/// # Safety
/// The host has put the outcomes there.
pub unsafe fn step<C: Controller>(
    steering: &RefCell<Option<Steering<C>>>,
    outcomes: *mut u8,
    length: usize,
) -> *const u8 {
    let outcomes = steering::Outcome::load_list(outcomes, length);
    let result = match steering.borrow_mut().as_mut() {
        Some(steering) => steering.step(outcomes).map_err(|error| error.to_string()),
        None => Err("the controller was not started".to_owned()),
    };
    let _ = std::io::stdout().flush();
    give(result)
}

/// The post-return of all exports: the host has read the result.
pub fn forget_result() {
    RESULT.take();
}

/// Puts a result where the host can read it until `forget_result`; its address.
fn give<T: Store + 'static>(result: T) -> *const u8 {
    let mut arena = Arena::default();
    let at = arena.take(<T as Abi>::SIZE);
    let result = Box::new(result);
    // SAFETY: the arena has given room for it, and what it refers to is kept with the arena.
    unsafe { result.store(at, &mut arena) };
    RESULT.set(Some((arena, result)));
    at
}

unsafe fn text_at(begin: *mut u8, length: usize) -> String {
    String::from_utf8_unchecked(u8::load_list(begin, length))
}

/// Says where the program has panicked, and why, before it ends.
fn report_panic(panic: &PanicHookInfo<'_>) {
    let _ = std::io::stdout().flush();
    log(Level::Error, &panic.to_string());
}
