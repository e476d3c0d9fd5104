"""A controller in the text format of WebAssembly: it lets its sequences go on, after a fork at the first step."""

from __future__ import annotations

import functools
import subprocess
import sys
import tempfile
from pathlib import Path

from tartlet.languages.componentize import WIT

GO_ON = "(nop)"

# The memory: 0 what is returned, 64 decisions of 12 bytes, 4096 branches of 48 bytes, 64 KiB and up what the host
# allocates for the arguments of one call.
_CORE = """(module
  (memory (export "memory") 64)
  (global $next (mut i32) (i32.const 65536))
  (global $branches (mut i32) (i32.const 0))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
    (global.set $next (i32.add (local.get $at) (local.get 3)))
    (local.get $at))
  (func (export "start") (param $config i32) (param $size i32) (param i32 i32) (result i32)
    (block $done
      (loop $digit
        (br_if $done (i32.eqz (local.get $size)))
        (global.set $branches (i32.add (i32.mul (global.get $branches) (i32.const 10))
          (i32.sub (i32.load8_u (local.get $config)) (i32.const 48))))
        (local.set $config (i32.add (local.get $config) (i32.const 1)))
        (local.set $size (i32.sub (local.get $size) (i32.const 1)))
        (br $digit)))
    (global.set $next (i32.const 65536))
    (i32.const 0))
  (func (export "step") (param $outcomes i32) (param $count i32) (result i32)
    (local $i i32)
    {step}
    (memory.fill (i32.const 64) (i32.const 0) (i32.mul (local.get $count) (i32.const 12)))
    (if (i32.gt_u (global.get $branches) (i32.const 1))
      (then
        (i32.store8 (i32.const 64) (i32.const 1))
        (i32.store (i32.const 68) (i32.const 4096))
        (i32.store (i32.const 72) (global.get $branches))
        (local.set $i (global.get $branches))
        (loop $branch
          (local.set $i (i32.sub (local.get $i) (i32.const 1)))
          (i32.store8 (i32.add (i32.const 4096) (i32.mul (local.get $i) (i32.const 48))) (i32.const 1))
          (br_if $branch (local.get $i)))))
    (global.set $branches (i32.const 0))
    (global.set $next (i32.const 65536))
    (i32.store (i32.const 4) (i32.const 64))
    (i32.store (i32.const 8) (local.get $count))
    (i32.const 0)))"""


@functools.cache
def controller(step: str = GO_ON) -> bytes:
    """Make a component of the world `controller`, with wasm-tools.

    Its config is a number: into how many branches it forks at the first step; then all of them go on.

    Args:
        step: Instructions that each step does first; they may use the locals `$outcomes` and `$count`.
    """
    tool = Path(sys.executable).parent / "wasm-tools"
    with tempfile.TemporaryDirectory() as folder:
        core, embedded, component = (Path(folder, name) for name in ("core.wat", "core.wasm", "component.wasm"))
        core.write_text(_CORE.replace("{step}", step), encoding="utf-8")
        embed = [tool, "component", "embed", WIT.resolve(), "-w", "controller", core, "-o", embedded]
        subprocess.run(embed, check=True)
        subprocess.run([tool, "component", "new", embedded, "-o", component], check=True)
        return component.read_bytes()
