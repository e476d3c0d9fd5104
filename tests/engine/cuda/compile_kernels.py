"""Compiles kernels to machine code for NVIDIA GPUs, which needs none: `python compile_kernels.py KERNEL ARCHITECTURE`.

Run in a process of its own, without Triton's interpreter. Prints a line for each variant: its name, and the bytes of
shared memory that it takes. The types are those with which the kernels are launched.
"""

from __future__ import annotations

import sys
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from tartlet_engine.cuda import paged_kernels, sampling_kernels, tree_kernels

FLOATS = {"scaling"}
LONGS = {"tables", "context_lens", "segments", "page_ids", "offsets", "top_ks", "token_ids", "tree_rows", "begins"}
SINGLES = {"log_sums", "split_results", "temperatures", "top_ps", "min_ps", "bests", "logits"}


def build(kernel: Any, dtype: str, constants: dict[str, Any], architecture: int, num_warps: int) -> int:
    """Compile one variant for one architecture. Returns the bytes of shared memory that a program takes."""
    signature: dict[str, str] = {}
    attributes = {}
    dtype_of = {"results": "fp32" if constants.get("is_split") else dtype, "numbers": "fp64", "visible": "u8"}
    for index, name in enumerate(kernel.arg_names):
        if name in constants:
            signature[name] = "constexpr"
        elif name in FLOATS:
            signature[name] = "fp32"
        elif name.endswith("_stride") or name.startswith("num_") or name == "vocabulary_size":
            signature[name] = "i32"
        else:
            kind = "i64" if name in LONGS else "fp32" if name in SINGLES else dtype_of.get(name, dtype)
            signature[name] = "*" + kind
            attributes[(index,)] = [["tt.divisibility", 16]]
    source = ASTSource(kernel, signature, constexprs=constants, attrs=attributes)
    compiled = triton.compile(source, target=GPUTarget("cuda", architecture, 32), options={"num_warps": num_warps})
    assert compiled.asm["cubin"]
    return int(compiled.metadata.shared)


def attention_constants(dim: int, heads_per_kv: int, page_size: int, **others: Any) -> dict[str, Any]:
    block = max(16, triton.next_power_of_2(dim))
    sizes = {"key_dim": dim, "value_dim": dim, "key_block": block, "value_block": block}
    options = {"softcap": None, "window": None, "page_size": page_size, "heads_per_kv": heads_per_kv}
    return {**sizes, **options, **others}


def variants(kernel: str) -> list[tuple[str, Any, str, dict[str, Any], int]]:
    """Name, kernel, dtype, constants and warps of what is compiled."""
    decode, prefill = paged_kernels.decode_kernel, paged_kernels.prefill_kernel
    if kernel == "sample":
        return [("sample", sampling_kernels.sample_kernel, "fp32", {"block": 1024}, 8)]
    if kernel == "write":
        constants = {"page_size": 16, "key_dim": 96, "value_dim": 128, "key_block": 128, "value_block": 128}
        return [("write", paged_kernels.write_kernel, "bf16", constants, 1)]
    if kernel == "combine":
        constants = {"value_dim": 128, "value_block": 128, "block_splits": 16, "split_len": 256, "window": 100}
        return [("combine", paged_kernels.combine_kernel, "bf16", constants, 4)]
    if kernel == "tree":
        tree_constants = [
            ("bf16", attention_constants(128, 4, 16, block_slots=64, block_rows=16)),
            ("fp32", attention_constants(256, 7, 24, block_slots=32, block_rows=16, softcap=50.0)),
        ]
        for _, numbers in tree_constants:
            del numbers["window"]
        return [(f"tree {dtype}", tree_kernels.tree_kernel, dtype, numbers, 4) for dtype, numbers in tree_constants]
    if kernel == "decode":
        constants = [
            ("bf16", attention_constants(128, 4, 16, block_slots=64)),
            ("fp16", attention_constants(80, 7, 24, block_slots=64, softcap=50.0, window=100)),
            ("fp32", attention_constants(256, 1, 1, block_slots=32)),
        ]
        rows = {"block_rows": 16, "split_len": 256, "is_split": True}
        return [(f"decode {dtype}", decode, dtype, {**numbers, **rows}, 4) for dtype, numbers in constants]
    return [
        ("prefill bf16", prefill, "bf16", attention_constants(128, 4, 16, block_slots=64, block_rows=128), 8),
        ("prefill fp16", prefill, "fp16", attention_constants(80, 7, 24, block_slots=64, block_rows=128, window=9), 8),
        ("prefill fp32", prefill, "fp32", attention_constants(128, 1, 16, block_slots=32, block_rows=64), 4),
    ]


if __name__ == "__main__":
    for name, kernel, dtype, constants, num_warps in variants(sys.argv[1]):
        print(name, build(kernel, dtype, constants, int(sys.argv[2]), num_warps))
