"""Compiling what tenants upload: a child process for each upload, under limits of its own.

`client` is the front's side; the rest runs in the child, `python -m tartlet.server.compile`. What of a component is
refused by counting is refused before Wasmtime is loaded. What is made lies in a folder of the tenant's own, where
workers find it.
"""
