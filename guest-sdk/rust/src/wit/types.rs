// Written by `make bindings` from wit/; do not edit.

//! What the other interfaces share.

use super::abi::{Abi, Load};

/// A vocabulary id of the model that the context belongs to.
pub type Token = u32;

/// The id of something that a run can wait for with `events.poll`. Ids are the run's own and are never reused.
pub type Event = u32;

/// Why a call could not be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
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
    /// The request can never fit into the KV cache, or the cache is full and nothing can make room.
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
    /// It waits for the run itself, all of which waits: nobody is left who could end the wait.
    Deadlock,
    /// Another program that it relied on failed, such as a controller: the message has what it said.
    ProgramFailed,
}

impl Abi for ErrorCode {
    const SIZE: usize = 1;
    const ALIGN: usize = 1;
}

impl Load for ErrorCode {
    unsafe fn load(at: *const u8) -> Self {
        match at.read() {
            0 => Self::InvalidArgument,
            1 => Self::NotFound,
            2 => Self::AlreadyExists,
            3 => Self::PermissionDenied,
            4 => Self::QuotaExceeded,
            5 => Self::KvExhausted,
            6 => Self::ContextOverflow,
            7 => Self::DeadlineExceeded,
            8 => Self::Cancelled,
            9 => Self::Unsupported,
            10 => Self::Unavailable,
            11 => Self::Internal,
            12 => Self::Deadlock,
            _ => Self::ProgramFailed,
        }
    }
}

/// A refused or failed call: what happened, and what to do about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    pub code: ErrorCode,
    /// What happened, with the numbers: what was asked, what is allowed.
    pub message: String,
    /// What to do about it; empty if there is nothing to add.
    pub hint: String,
}

impl Abi for Error {
    const SIZE: usize = 20;
    const ALIGN: usize = 4;
}

impl Load for Error {
    unsafe fn load(at: *const u8) -> Self {
        Self {
            code: Load::load(at),
            message: Load::load(at.add(4)),
            hint: Load::load(at.add(12)),
        }
    }
}
