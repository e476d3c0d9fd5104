//! What the SDK's calls fail with.

use std::fmt;

use crate::wit::types;

/// What a program, or a call of the SDK, comes to.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A call that was refused or failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Which kind of failure it is, for programs.
    pub code: ErrorCode,
    /// What happened, with the numbers: what was asked, what is allowed.
    pub message: String,
    /// What to do about it; empty if there is nothing to add.
    pub hint: String,
    /// Which call of the SDK it was; empty if it was none.
    pub call: &'static str,
}

/// Kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// An argument is out of its range; the message names it.
    InvalidArgument,
    /// There is nothing by that name or id.
    NotFound,
    /// The name is taken.
    AlreadyExists,
    /// The run may not do this.
    PermissionDenied,
    /// A budget of the run or its tenant would be exceeded.
    QuotaExceeded,
    /// The KV cache has no room, or could never have enough.
    KvExhausted,
    /// The context would grow longer than the model's context length.
    ContextOverflow,
    /// It took longer than allowed.
    DeadlineExceeded,
    /// It was cancelled.
    Cancelled,
    /// The model or the host cannot do this.
    Unsupported,
    /// Not now: the context is busy, or the engine is not there.
    Unavailable,
    /// A fault of Tartlet's own.
    Internal,
    /// Everything in the run waits, and nothing is left that could wake it.
    Deadlock,
    /// Another program that it relied on failed, such as a controller.
    ProgramFailed,
    /// The program's own failure, such as a text that is no number.
    Program,
}

impl ErrorCode {
    /// The contract's spelling, such as `kv-exhausted`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid-argument",
            Self::NotFound => "not-found",
            Self::AlreadyExists => "already-exists",
            Self::PermissionDenied => "permission-denied",
            Self::QuotaExceeded => "quota-exceeded",
            Self::KvExhausted => "kv-exhausted",
            Self::ContextOverflow => "context-overflow",
            Self::DeadlineExceeded => "deadline-exceeded",
            Self::Cancelled => "cancelled",
            Self::Unsupported => "unsupported",
            Self::Unavailable => "unavailable",
            Self::Internal => "internal",
            Self::Deadlock => "deadlock",
            Self::ProgramFailed => "program-failed",
            Self::Program => "program",
        }
    }
}

impl Error {
    /// A failure of the program's own, for people.
    pub fn new(message: impl Into<String>) -> Self {
        Self { code: ErrorCode::Program, message: message.into(), hint: String::new(), call: "" }
    }

    pub(crate) fn of(code: ErrorCode, call: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: String::new(), call }
    }

    pub(crate) fn with_hint(mut self, hint: &str) -> Self {
        self.hint = hint.to_owned();
        self
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.call.is_empty() {
            write!(formatter, "{}: ", self.call)?;
        }
        formatter.write_str(&self.message)?;
        if !self.hint.is_empty() {
            write!(formatter, "\n{}", self.hint)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

impl From<String> for Error {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

impl From<&str> for Error {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}

/// What `?` turns into an `Error`, besides the SDK's own.
macro_rules! from_display {
    ($($kind:ty),*) => {$(
        impl From<$kind> for Error {
            fn from(error: $kind) -> Self {
                Self::new(error.to_string())
            }
        }
    )*};
}
from_display!(
    serde_json::Error,
    std::num::ParseIntError,
    std::num::ParseFloatError,
    std::num::TryFromIntError,
    std::str::Utf8Error,
    std::string::FromUtf8Error,
    std::fmt::Error,
    Box<dyn std::error::Error>
);

/// Gives the host's error the name of the SDK's own call.
pub(crate) trait Named<T> {
    fn named(self, call: &'static str) -> Result<T>;
}

impl<T> Named<T> for std::result::Result<T, types::Error> {
    fn named(self, call: &'static str) -> Result<T> {
        self.map_err(|error| from_host(error, call))
    }
}

/// The SDK's error for one of the contract's.
pub(crate) fn from_host(error: types::Error, call: &'static str) -> Error {
    let code = match error.code {
        types::ErrorCode::InvalidArgument => ErrorCode::InvalidArgument,
        types::ErrorCode::NotFound => ErrorCode::NotFound,
        types::ErrorCode::AlreadyExists => ErrorCode::AlreadyExists,
        types::ErrorCode::PermissionDenied => ErrorCode::PermissionDenied,
        types::ErrorCode::QuotaExceeded => ErrorCode::QuotaExceeded,
        types::ErrorCode::KvExhausted => ErrorCode::KvExhausted,
        types::ErrorCode::ContextOverflow => ErrorCode::ContextOverflow,
        types::ErrorCode::DeadlineExceeded => ErrorCode::DeadlineExceeded,
        types::ErrorCode::Cancelled => ErrorCode::Cancelled,
        types::ErrorCode::Unsupported => ErrorCode::Unsupported,
        types::ErrorCode::Unavailable => ErrorCode::Unavailable,
        types::ErrorCode::Internal => ErrorCode::Internal,
        types::ErrorCode::Deadlock => ErrorCode::Deadlock,
        types::ErrorCode::ProgramFailed => ErrorCode::ProgramFailed,
    };
    Error { code, message: error.message, hint: error.hint, call }
}

/// Takes the value, or ends the program with the error and the place that asked for it.
#[track_caller]
pub(crate) fn expect<T>(result: Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}
