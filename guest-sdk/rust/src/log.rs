//! What the run tells people. `println!` streams text to the caller; these are log lines.

use std::fmt::Display;

use crate::wit::log;

pub use log::Level;

/// One log line.
pub fn log(level: Level, message: impl Display) {
    log::log(level, &message.to_string());
}

pub fn trace(message: impl Display) {
    log(Level::Trace, message);
}

pub fn debug(message: impl Display) {
    log(Level::Debug, message);
}

pub fn info(message: impl Display) {
    log(Level::Info, message);
}

pub fn warn(message: impl Display) {
    log(Level::Warn, message);
}

pub fn error(message: impl Display) {
    log(Level::Error, message);
}
