"""The process that clients talk to: HTTP, tenants, runs. No Wasmtime and no torch in it."""
