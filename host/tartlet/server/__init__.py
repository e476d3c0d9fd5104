"""The server: processes that keep HTTP, the model, and tenants' programs apart.

What stands here is shared by them; `front`, `worker`, `engine` and `compile` hold what runs in one kind of process.
Nothing here but `worker`, `compile` and `host_sandboxes` may load Wasmtime, and nothing but `engine` torch.
"""
