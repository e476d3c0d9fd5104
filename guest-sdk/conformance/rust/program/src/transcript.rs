//! What a case tells: lines of text that do not depend on the language. The README says how values are written.

use inferlet::wit::types;
use inferlet::FinishReason;

/// The lines of one case.
#[derive(Default)]
pub struct Transcript {
    pub lines: Vec<String>,
}

/// A value that can be written.
pub trait Show {
    fn show(&self) -> String;
}

macro_rules! shown_as_text {
    ($($kind:ty),*) => {$(impl Show for $kind { fn show(&self) -> String { self.to_string() } })*};
}
shown_as_text!(bool, u8, u32, u64, usize, i32);

impl Show for f32 {
    fn show(&self) -> String {
        format!("0x{:08x}", self.to_bits())
    }
}

impl Show for str {
    fn show(&self) -> String {
        format!("\"{}\"", self.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
    }
}

impl Show for String {
    fn show(&self) -> String {
        self.as_str().show()
    }
}

impl Show for FinishReason {
    fn show(&self) -> String {
        self.as_str().show()
    }
}

impl<T: Show> Show for Option<T> {
    fn show(&self) -> String {
        self.as_ref().map_or("none".to_owned(), Show::show)
    }
}

impl<T: Show> Show for [T] {
    fn show(&self) -> String {
        let each: Vec<String> = self.iter().map(Show::show).collect();
        format!("[{}]", each.join(", "))
    }
}

impl<T: Show> Show for Vec<T> {
    fn show(&self) -> String {
        self.as_slice().show()
    }
}

impl<T: Show, const N: usize> Show for [T; N] {
    fn show(&self) -> String {
        self.as_slice().show()
    }
}

impl<T: Show + ?Sized> Show for &T {
    fn show(&self) -> String {
        (*self).show()
    }
}

/// An error, of the SDK or of the bindings.
pub struct Failure(String);

impl From<inferlet::Error> for Failure {
    fn from(error: inferlet::Error) -> Self {
        Self(format!("error {}, {}, {}", error.code.as_str(), error.message.show(), error.hint.show()))
    }
}

impl From<types::Error> for Failure {
    fn from(error: types::Error) -> Self {
        let code: String = format!("{:?}", error.code)
            .char_indices()
            .flat_map(|(at, letter)| [(at > 0 && letter.is_uppercase()).then_some('-'), Some(letter.to_ascii_lowercase())])
            .flatten()
            .collect();
        Self(format!("error {code}, {}, {}", error.message.show(), error.hint.show()))
    }
}

impl Transcript {
    pub fn add(&mut self, label: &str, values: &[String]) {
        self.lines.push(format!("{label}: {}", values.join(", ")));
    }

    /// Tells `ok`, or the error; the value.
    pub fn attempt<T, E: Into<Failure>>(&mut self, label: &str, result: Result<T, E>) -> Option<T> {
        match result {
            Ok(value) => {
                self.add(label, &["ok".to_owned()]);
                Some(value)
            }
            Err(error) => {
                self.add(label, &[error.into().0]);
                None
            }
        }
    }

    /// Tells the value, or the error.
    pub fn attempt_shown<T: Show, E: Into<Failure>>(&mut self, label: &str, result: Result<T, E>) {
        let told = match result {
            Ok(value) => value.show(),
            Err(error) => error.into().0,
        };
        self.add(label, &[told]);
    }
}

/// Adds a line: what it is, and one value or several.
#[macro_export]
macro_rules! say {
    ($t:expr, $label:expr, $($value:expr),+ $(,)?) => {{
        let values = [$($crate::transcript::Show::show(&$value)),+];
        $t.add($label, &values)
    }};
}

/// The cases of a subject: `NAMES`, and `run`, which says whether it has the one of that name.
#[macro_export]
macro_rules! cases {
    ($($name:literal => $run:path),+ $(,)?) => {
        pub const NAMES: &[&str] = &[$($name),+];

        pub async fn run(name: &str, t: &mut $crate::transcript::Transcript) -> bool {
            match name {
                $($name => $run(t).await,)+
                _ => return false,
            }
            true
        }
    };
}
