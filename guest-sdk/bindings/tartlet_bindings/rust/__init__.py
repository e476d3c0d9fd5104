"""Writes the bindings of the Rust SDK: `guest-sdk/rust/src/wit`."""
