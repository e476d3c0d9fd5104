//! What a run is given, and what it gives back: JSON.

use std::fmt::Display;

use serde::de::DeserializeOwned;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::{Error, ErrorCode, Result};

/// The run's input: a JSON object, whose members are the arguments.
#[derive(Clone, Debug)]
pub struct Args {
    text: String,
}

impl Args {
    /// The argument of that name, if it was given. Error: `InvalidArgument`, it is of another type.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        let value = match self.object()?.remove(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(value) => value,
        };
        serde_json::from_value(value).map(Some).map_err(|error| invalid(format!("the argument {name:?}: {error}")))
    }

    /// The argument of that name, or this value if it was not given.
    pub fn get_or<T: DeserializeOwned>(&self, name: &str, default: T) -> Result<T> {
        Ok(self.get(name)?.unwrap_or(default))
    }

    /// The argument of that name. Error: `InvalidArgument`, it was not given, or is of another type.
    pub fn require<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        self.get(name)?.ok_or_else(|| invalid(format!("the argument {name:?} is missing")))
    }

    /// All of the input as a value of a type.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        let found = serde_json::from_str(&self.text);
        match found {
            Err(_) if self.text == "null" => serde_json::from_str("{}"), // no input has no arguments
            _ => found,
        }
        .map_err(|error| invalid(format!("the input: {error}")))
    }

    /// The input as it is, JSON text.
    pub fn text(&self) -> &str {
        &self.text
    }

    fn object(&self) -> Result<Map<String, Value>> {
        match self.parse()? {
            Value::Object(members) => Ok(members),
            Value::Null => Ok(Map::new()), // no input
            _ => Err(invalid("the input must be a JSON object".to_owned())),
        }
    }
}

fn invalid(message: String) -> Error {
    Error::of(ErrorCode::InvalidArgument, "Args", message)
}

/// What `main` can take: `Args`, or a type of its own that is made of the whole input.
pub trait Input: Sized {
    fn of_text(text: String) -> Result<Self>;
}

impl Input for Args {
    fn of_text(text: String) -> Result<Self> {
        Ok(Self { text })
    }
}

impl<T: DeserializeOwned> Input for T {
    fn of_text(text: String) -> Result<Self> {
        Args { text }.parse()
    }
}

/// What `main` can give back.
pub trait Output {
    /// JSON, or text for people.
    fn into_text(self) -> Result<String, String>;
}

impl Output for () {
    fn into_text(self) -> Result<String, String> {
        Ok("null".to_owned())
    }
}

impl<T: Serialize, E: Display> Output for Result<T, E> {
    fn into_text(self) -> Result<String, String> {
        let value = self.map_err(|error| error.to_string())?;
        serde_json::to_string(&value).map_err(|error| format!("the result cannot be written as JSON: {error}"))
    }
}
