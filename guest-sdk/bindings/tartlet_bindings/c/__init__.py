"""Bindings in C: `guest-sdk/c/include/tartlet_bindings.h` and `guest-sdk/c/src/tartlet_bindings.c`.

The canonical ABI lays values out in memory as C does: what the host writes is read as a struct, without conversion.
The source file checks each layout when it is compiled.
"""
