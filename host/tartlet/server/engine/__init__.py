"""The engine in a process of its own: `process` serves it at a socket, `socket_client` is the way there from a worker.

`probe` is what the front asks it. Only `process` loads torch, and nothing here loads Wasmtime.
"""
