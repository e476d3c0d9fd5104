"""`tartlet run`: run one program on one model, and show what it does as it happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tartlet.arguments import checked_tenant
from tartlet.cli.arguments import parse_adapters, parse_input, parse_limits
from tartlet.cli.interrupts import cancelling, ending_the_process
from tartlet.errors import ProgramError

if TYPE_CHECKING:
    from tartlet.cli.run_views import RunView
    from tartlet.host import Host
    from tartlet.progress import Progress

DEFAULT_MODEL = "smollm2-135m-instruct"


def run(
    program: Annotated[Path, typer.Argument(help="A folder, a .py file, or a component (.wasm).")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            help="The program's arguments: key=value. A value that is JSON counts as JSON.", metavar="KEY=VALUE"
        ),
    ] = None,
    input_text: Annotated[
        str | None, typer.Option("--input", "-i", help="The program's input: JSON, @FILE, or - for stdin.")
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            envvar="TARTLET_MODEL",
            help="A name, Hugging Face id, folder or .gguf file; `tiny` needs nothing.",
        ),
    ] = DEFAULT_MODEL,
    dtype: Annotated[str, typer.Option(help="float32, bfloat16 or auto.")] = "auto",
    quantize: Annotated[str, typer.Option(help="Format of the weights in memory: int8, int4 or none.")] = "none",
    threads: Annotated[int | None, typer.Option(help="CPU threads of the model; all cores if not given.")] = None,
    kv_pages: Annotated[int | None, typer.Option(help="Pages of the KV pool; by memory if not given.")] = None,
    swap_bytes: Annotated[
        int | None, typer.Option(help="Memory for pages that must leave the KV pool; by memory if not given.")
    ] = None,
    prefix_cache: Annotated[
        bool, typer.Option(help="Keep computed pages for prompts that begin with the same tokens.")
    ] = True,
    adapter: Annotated[
        list[str] | None, typer.Option("--adapter", help="NAME=FOLDER of a LoRA adapter (PEFT). Repeatable.")
    ] = None,
    limit: Annotated[
        list[str] | None, typer.Option("--limit", "-l", help="NAME=VALUE, such as tokens=2000. Repeatable.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Fixes Python's `random` and the sampling; not uuid, secrets, os.urandom.", min=0, max=(1 << 64) - 1
        ),
    ] = None,
    tenant: Annotated[str, typer.Option(help="On whose behalf it runs: whose saved contexts it sees.")] = "local",
    as_json: Annotated[bool, typer.Option("--json", help="Print events as JSON lines, the result last.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show debug and trace log lines, too.")] = False,
) -> None:
    """Run a program next to the model, and stream what it prints."""
    value = parse_input(input_text, arguments or [])
    limits = parse_limits(limit or [])
    adapters = parse_adapters(adapter or [])
    checked_tenant(tenant)
    from tartlet.cli.progress_bars import ProgressBars
    from tartlet.cli.run_views import JsonView, TerminalView
    from tartlet.host import Host

    view: RunView = JsonView() if as_json else TerminalView(quiet=quiet, verbose=verbose)
    with ProgressBars(tells_times=not quiet) as progress:

        def give_up() -> None:
            progress.close()
            view.failed(KeyboardInterrupt())

        try:
            _prepare(program, model, progress, give_up)
            host = Host(
                model,
                dtype=dtype,
                quantize=quantize,
                threads=threads,
                kv_pages=kv_pages,
                swap_bytes=swap_bytes,
                prefix_cache=prefix_cache,
                adapters=adapters,
                progress=progress,
            )
            with ending_the_process(give_up):
                asyncio.run(_run(host, program, value, view, limits=limits, seed=seed, tenant=tenant))
        except (Exception, KeyboardInterrupt) as error:
            view.failed(error)
            raise


def _prepare(program: Path, model: str, progress: Progress, give_up: Callable[[], None]) -> None:
    """Do the long set-up work of a first run. What is wrong with the program shows before anything else is done.

    What can be interrupted anywhere is done on the main thread, where Ctrl-C is an exception that tidies up.
    """
    from tartlet import models, runner

    if not program.exists():
        raise ProgramError(f"there is no {program}", hint="Give a folder, a .py file or a component.", code="not_found")
    if program.is_dir() or program.suffix == ".py":
        runner.read_source(program)
        runner.runner_component(progress)
    with ending_the_process(give_up):
        _compile(program, progress)
    models.pull(model, progress)


def _compile(program: Path, progress: Progress) -> None:
    """Load the program on a host without a model; what is compiled is kept for the real one."""
    from tartlet import sync
    from tartlet.testing import FakeEngine

    with closing(FakeEngine()) as engine, sync.Host(engine=engine, spares=0, progress=progress) as host:
        host.load(program)


async def _run(host: Host, program: Path, value: Any, view: RunView, **options: Any) -> None:
    async with host:
        loaded = await host.load(program)
        run = await host.start(loaded, value, **options)
        with cancelling(run.cancel):
            async for event in run:
                view.event(event)
            view.ended(await run.result())
