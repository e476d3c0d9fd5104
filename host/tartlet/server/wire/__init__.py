"""How the server's processes speak: msgspec structs as msgpack, in frames of bounded length, over Unix sockets.

`streams` is for asyncio, `connections` for threads, and both ends may differ; `socket_folder` is where sockets lie.
"""
