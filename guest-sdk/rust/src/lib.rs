//! Programs that run next to the model, in Tartlet.
//!
//! ```ignore
//! use inferlet::stop_condition::{ends_with_any, max_len};
//! use inferlet::{get_auto_model, Args, Result, Sampler};
//!
//! #[inferlet::main]
//! async fn main(args: Args) -> Result<String> {
//!     let model = get_auto_model();
//!     let mut context = model.create_context();
//!     context.fill_user(&args.require::<String>("question")?);
//!     let stop = ends_with_any(model.eos_tokens()).and(max_len(64));
//!     Ok(context.generate(Sampler::top_p(0.7, 0.95), stop).await)
//! }
//! ```

mod args;
mod constraint;
mod context;
pub mod controller;
mod draft;
mod error;
mod event;
mod executor;
mod forward;
mod generation;
pub mod log;
mod mask;
mod matcher;
mod model;
pub mod run;
mod sampler;
mod speculation;
mod steps;
pub mod stop_condition;
mod task;
mod time;
pub mod variables;
pub mod wit;

pub use args::{Args, Input, Output};
pub use constraint::Constraint;
pub use context::{Context, Role, SavedContext};
pub use draft::{Chunk, Draft, FinishReason, PositionLogProbabilities, TokenLogProbability, Usage};
pub use error::{Error, ErrorCode, Result};
pub use forward::{Ask, Pass, PassRequest, Row};
pub use generation::{Chunks, Generate};
pub use inferlet_macros::{controller, main};
pub use mask::Mask;
pub use matcher::{Matcher, Place};
pub use model::{available_models, get_auto_model, get_model, Model, ModelInfo};
pub use sampler::Sampler;
pub use speculation::Speculation;
pub use steps::{Outcome, Splice, Step, Steps, StepsRequest};
pub use stop_condition::StopCondition;
pub use task::{spawn, Task};
pub use time::{sleep, timeout};

/// For the attributes of this crate alone.
#[doc(hidden)]
#[path = "entry.rs"]
pub mod __private;
