//! Standard output of the standard library where there is no WASI: what is written goes to the contract's `log.print`.
//!
//! Takes the place of `std/src/sys/stdio/unsupported.rs` when the standard library is built for wasm32-unknown-unknown.
//! Text must be UTF-8 on its way to the host, and `write` can be given half a character: that waits for its other half.
//! Bytes that are none of UTF-8 become U+FFFD.

use crate::cell::Cell;
use crate::io;

#[link(wasm_import_module = "tartlet:inferlet/log@0.1.0")]
unsafe extern "C" {
    #[link_name = "print"]
    fn host_print(text: *const u8, length: usize);
}

/// Standard input, which is empty.
pub struct Stdin;

impl Stdin {
    pub const fn new() -> Stdin {
        Stdin
    }
}

impl io::Read for Stdin {
    fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }
}

/// Standard output, and standard error: the host keeps no two apart.
pub struct Stdout {
    /// The bytes of a character that has begun, and how many they are.
    begun: Cell<([u8; 4], usize)>,
}

pub type Stderr = Stdout;

impl Stdout {
    pub const fn new() -> Stdout {
        Stdout { begun: Cell::new(([0; 4], 0)) }
    }

    /// Takes one byte of a character that has begun.
    fn go_on(&self, byte: u8) {
        let (mut bytes, length) = self.begun.get();
        bytes[length] = byte;
        match str::from_utf8(&bytes[..=length]) {
            Ok(character) => {
                self.begun.set((bytes, 0));
                print(character);
            }
            Err(error) if error.error_len().is_none() => self.begun.set((bytes, length + 1)),
            Err(_) => {
                self.begun.set((bytes, 0));
                print("\u{FFFD}");
            }
        }
    }
}

impl io::Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        if self.begun.get().1 > 0 {
            self.go_on(bytes[0]);
            return Ok(1);
        }
        let valid = match str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let (valid, _) = bytes.split_at(error.valid_up_to());
                // SAFETY: these bytes have just been found to be UTF-8.
                unsafe { str::from_utf8_unchecked(valid) }
            }
        };
        if valid.is_empty() {
            self.go_on(bytes[0]);
            return Ok(1);
        }
        print(valid);
        Ok(valid.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn print(text: &str) {
    // SAFETY: the host reads so many bytes from there, which are UTF-8, and keeps no address.
    unsafe { host_print(text.as_ptr(), text.len()) }
}

pub const STDIN_BUF_SIZE: usize = 0;

pub fn is_ebadf(_error: &io::Error) -> bool {
    false
}

pub fn panic_output() -> Option<Stderr> {
    Some(Stderr::new())
}
