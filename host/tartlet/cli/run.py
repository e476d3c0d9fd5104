"""`tartlet run`: run one program on one model, and show what it does as it happens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tartlet.arguments import checked_tenant
from tartlet.cli.arguments import parse_adapters, parse_config, parse_input, parse_limits, parse_prompt
from tartlet.cli.interrupts import cancelling, ending_the_process
from tartlet.errors import ConfigError, ProgramError

if TYPE_CHECKING:
    from tartlet.cli.run_views import RunView
    from tartlet.host import Host
    from tartlet.progress import Progress
    from tartlet.run import Run

DEFAULT_MODEL = "smollm2-135m-instruct"


def run(
    program: Annotated[
        Path | None, typer.Argument(help="A folder, a source file, or a component (.wasm).", show_default=False)
    ] = None,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            help="The program's arguments: key=value. A value that is JSON counts as JSON.", metavar="KEY=VALUE"
        ),
    ] = None,
    input_text: Annotated[
        str | None, typer.Option("--input", "-i", help="The program's input: JSON, @FILE, or - for stdin.")
    ] = None,
    controller: Annotated[
        Path | None, typer.Option(help="Instead of a program: a controller, which steers a generation from a prompt.")
    ] = None,
    prompt: Annotated[str | None, typer.Option(help="With a controller: the text to go on from, or @FILE.")] = None,
    config: Annotated[str | None, typer.Option(help="With a controller: its config, JSON or @FILE.")] = None,
    chat: Annotated[bool, typer.Option("--chat", help="With a controller: the prompt is a user's message.")] = False,
    max_tokens: Annotated[int | None, typer.Option(help="With a controller: the most tokens of a sequence.")] = None,
    temperature: Annotated[float, typer.Option(help="With a controller: how tokens are sampled.")] = 0.0,
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
    source = _what_to_load(program, controller, prompt, has_input=input_text is not None or bool(arguments))
    value = parse_input(input_text, arguments or []) if controller is None else parse_config(config)
    text = parse_prompt(prompt or "")
    limits = parse_limits(limit or [])
    adapters = parse_adapters(adapter or [])
    checked_tenant(tenant)
    from tartlet.cli.progress_bars import ProgressBars
    from tartlet.cli.run_views import JsonView, TerminalView
    from tartlet.host import Host

    async def start(host: Host) -> Run:
        loaded = await host.load(prepared, name=source.resolve().stem)
        if controller is None:
            return await host.start(loaded, value, limits=limits, seed=seed, tenant=tenant)
        return await host.start_control(
            loaded,
            text,
            value,
            chat=chat,
            max_tokens=max_tokens,
            temperature=temperature,
            limits=limits,
            seed=seed,
            tenant=tenant,
        )

    shows_texts = controller is not None
    view: RunView = JsonView() if as_json else TerminalView(quiet=quiet, verbose=verbose, shows_texts=shows_texts)
    with ProgressBars(tells_times=not quiet) as progress:

        def give_up() -> None:
            progress.close()
            view.failed(KeyboardInterrupt())

        try:
            prepared = _prepare(source, model, progress, give_up, is_controller=controller is not None)
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
                asyncio.run(_run(host, start, view))
        except (Exception, KeyboardInterrupt) as error:
            view.failed(error)
            raise


def _what_to_load(program: Path | None, controller: Path | None, prompt: str | None, *, has_input: bool) -> Path:
    """The program or the controller. Raises ConfigError for both, for none, or for what belongs to the other."""
    if controller is None:
        if program is None:
            hint = "Name one, or a controller: --controller FILE --prompt TEXT."
            raise ConfigError("there is no program to run", hint=hint)
        if prompt is not None:
            raise ConfigError(
                "--prompt is for a controller", hint="Give a program's input as key=value, or by --input."
            )
        return program
    if program is not None or has_input:
        raise ConfigError("a controller runs without a program", hint="Give its settings by --config, as JSON.")
    if prompt is None:
        raise ConfigError("a controller needs a prompt", hint="For example: --prompt 'Once upon a time'")
    return controller


def _prepare(
    program: Path, model: str, progress: Progress, give_up: Callable[[], None], *, is_controller: bool
) -> Path:
    """Do the long set-up work of a first run. What is wrong with the program shows before anything else is done.

    Returns what to load: the program itself, or the component that has been built of it.

    What can be interrupted anywhere is done on the main thread, where Ctrl-C is an exception that tidies up.
    """
    from tartlet import models
    from tartlet.languages.built import built_component
    from tartlet.languages.python import runner_component
    from tartlet.languages.registry import is_source, language_of

    if not program.exists():
        hint = "Give a folder, a source file or a component."
        raise ProgramError(f"there is no {program}", hint=hint, code="not_found")
    if is_source(program):
        language = language_of(program)
        if language.source_mode is None:
            program = built_component(program, language, progress)
        else:
            language.source_mode.read_source(program, progress)
            language.source_mode.runner_component(progress)
    if is_controller:
        runner_component(progress)  # an inferlet of ours in Python starts the generation
    with ending_the_process(give_up):
        _compile(program, progress)
    models.pull(model, progress)
    return program


def _compile(program: Path, progress: Progress) -> None:
    """Load the program on a host without a model; what is compiled is kept for the real one."""
    from tartlet import sync
    from tartlet.testing import FakeEngine

    with closing(FakeEngine()) as engine, sync.Host(engine=engine, spares=0, progress=progress) as host:
        host.load(program)


async def _run(host: Host, start: Callable[[Host], Awaitable[Run]], view: RunView) -> None:
    async with host:
        run = await start(host)
        with cancelling(run.cancel):
            async for event in run:
                view.event(event)
            view.ended(await run.result())
