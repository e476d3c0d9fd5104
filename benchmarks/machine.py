"""What the operating system says about the machine and this process (Linux)."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

import psutil

_BUSY_FIELDS = (0, 1, 2, 5, 6, 7)  # of /proc/stat: user, nice, system, irq, softirq, steal
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def describe() -> dict[str, str | int]:
    """What the figures depend on."""
    models = (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name"))
    memory_kib = next(int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal"))
    return {
        "processor": next(models, platform.processor() or platform.machine()),
        "vectors": _vectors(),
        "cores": os.cpu_count() or 1,
        "memory_gib": round(memory_kib / 2**20),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def _vectors() -> str:
    """The widest vector instructions of the processor that the kernels have a variant for."""
    flags = next((set(line.split()) for line in _lines("/proc/cpuinfo") if line.startswith("flags")), set())
    known = {"avx512_bf16": "AVX512_BF16", "avx512f": "AVX-512", "avx2": "AVX2"}
    return next((name for flag, name in known.items() if flag in flags), platform.machine())


def busy_seconds() -> float:
    """CPU time spent by everybody on all cores since the machine's start, to 10 ms."""
    fields = _lines("/proc/stat")[0].split()[1:]
    return sum(int(fields[index]) for index in _BUSY_FIELDS) / _TICKS_PER_SECOND


def own_seconds() -> float:
    """CPU time spent by this process and its children: those that have ended, and those that have not."""
    times = os.times()
    living = [child.cpu_times() for child in psutil.Process().children()]
    return (
        time.process_time()
        + (times.children_user + times.children_system)
        + sum(each.user + each.system for each in living)
    )


def pss_bytes() -> int:
    """This process's memory: its proportional set size, in which pages shared with others count in part."""
    line = next(line for line in _lines("/proc/self/smaps_rollup") if line.startswith("Pss:"))
    return int(line.split()[1]) * 1024


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines()
