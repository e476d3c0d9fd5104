"""The binding to Wasmtime: compiled components, their imports, and the fibers that run them.

Wasmtime's asynchronous C API is called through cffi, over the library inside the `wasmtime` package; compiling and type
reflection use that package's Python classes. Nothing here knows what the imports mean.

A component's way: component_reader (is it one that we can run?) -> compiler (native code, cached on disk) -> linker
(host functions bound, once per component) -> fiber (one call in an instance of its own) -> executor (a thread that runs
many fibers in turn).
"""
