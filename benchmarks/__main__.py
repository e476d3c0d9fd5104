"""The command line: `python -m benchmarks [NAME ...] [--quick] [--json] [--readme]`."""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys

from rich.console import Console

from benchmarks import NAMES, guest_readme, readme, report
from benchmarks.settings import Settings


def main() -> None:
    """Run one benchmark here; several each in a process of its own, so that none finds what another left behind."""
    options = _parse()
    names = options.names or list(NAMES)
    if len(names) == 1:
        _run(names[0], options)
    else:
        flags = [f"--threads={options.threads}", f"--patience={options.patience}"]
        flags += [f"--{flag}" for flag in ("quick", "json") if getattr(options, flag)]
        for name in names:
            subprocess.run([sys.executable, "-m", "benchmarks", name, *flags], check=True)
    if options.readme:
        readme.rewrite()
        guest_readme.rewrite()


def _run(name: str, options: argparse.Namespace) -> None:
    patience = 0 if options.quick else options.patience
    settings = Settings(is_quick=options.quick, threads=options.threads, patience=patience)
    rows = []
    for row in importlib.import_module(f"benchmarks.{name}").measure(settings):
        print(f"{name}: {row.name}: {report.figure(row.median)} {row.unit}", file=sys.stderr)  # it takes minutes
        rows.append(row)
    content = report.to_json(name, rows)
    if not options.quick:  # those figures mean nothing
        report.save(content)
    if options.json:
        print(json.dumps(content))
    else:
        report.show(name, rows, Console() if sys.stdout.isatty() else Console(width=120))


def _parse() -> argparse.Namespace:
    defaults = Settings()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure Tartlet on this machine.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one or more of: {', '.join(NAMES)}; default: all")
    parser.add_argument("--quick", action="store_true", help="only see that they work: tiny model, nothing is saved")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--readme", action="store_true", help="write the saved figures into the READMEs")
    parser.add_argument("--threads", type=int, default=defaults.threads, help="CPU threads of the model")
    parser.add_argument(
        "--patience", type=int, default=defaults.patience, help="how often to repeat what a busy machine disturbed"
    )
    options = parser.parse_args()
    unknown = set(options.names) - set(NAMES)
    if unknown:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(NAMES)}")
    return options


if __name__ == "__main__":
    main()
