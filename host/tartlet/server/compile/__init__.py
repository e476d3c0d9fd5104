"""Compiling what tenants upload: a child process for each upload, under limits of its own.

`client` is the front's side; the rest runs in the child, `python -m tartlet.server.compile`. What is refused by
counting is refused before Wasmtime is loaded. What is compiled lies in the cache of native code, where workers find it.
"""
