"""`tartlet serve`: the server, with nothing to set up before."""

from __future__ import annotations

import sys
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from tartlet.progress import Progress
    from tartlet.server.sandboxes import Sandboxes
    from tartlet.server.settings import Settings

Config = Annotated[
    Path | None, typer.Option(help="A TOML file with settings; `server.toml` in TARTLET_HOME if there is one.")
]


def serve(
    host: Annotated[str | None, typer.Option(help="The address to listen on.", show_default="127.0.0.1")] = None,
    port: Annotated[int | None, typer.Option(help="The port; 0 is any that is free.", show_default="8000")] = None,
    config: Config = None,
    in_process: Annotated[
        bool | None,
        typer.Option("--in-process", help="Run programs and the model in this process, for development."),
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes that run programs.", show_default="2")] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="A name, Hugging Face id, folder or .gguf file.", show_default="small"),
    ] = None,
    quantize: Annotated[str | None, typer.Option(help="Format of the weights in memory: int8, int4 or none.")] = None,
    threads: Annotated[int | None, typer.Option(help="CPU threads of the model; all cores if not given.")] = None,
    kv_pages: Annotated[int | None, typer.Option(help="Pages of the KV pool; by memory if not given.")] = None,
    database: Annotated[
        str | None, typer.Option(help="URL of a database; SQLite in TARTLET_HOME if not given.")
    ] = None,
    log_format: Annotated[str | None, typer.Option(help="json or text.", show_default="text on a terminal")] = None,
) -> None:
    """Serve programs and the OpenAI API over HTTP. All settings have defaults; `tartlet config show` lists them."""
    from tartlet.cli.progress_bars import ProgressBars
    from tartlet.cli.server_settings import load_settings
    from tartlet.server import logs
    from tartlet.server.child_process import keep_private
    from tartlet.server.front.running import run_server
    from tartlet.server.logged_progress import LoggedProgress

    flags = {
        "host": host,
        "port": port,
        "in_process": in_process,
        "workers": workers,
        "model": model,
        "quantize": quantize,
        "threads": threads,
        "kv_pages": kv_pages,
        "database": database,
        "log_format": log_format,
    }
    loaded = load_settings(flags, config)
    logs.set_up(loaded.settings.log_format, loaded.settings.log_level)

    def announce(url: str, first_key: str | None) -> None:
        typer.echo(_greeting(url, first_key, is_ready=loaded.settings.in_process))

    import uvloop

    draws = sys.stderr.isatty() and loaded.settings.log_format != "json"
    with ProgressBars() if draws else nullcontext(LoggedProgress()) as progress:
        keep_private()
        uvloop.run(run_server(loaded.settings, open_sandboxes, progress, announce))


def open_sandboxes(settings: Settings, progress: Progress) -> AbstractAsyncContextManager[Sandboxes]:
    """Whoever runs programs: this process, or others."""
    engine_settings: dict[str, Any] = {
        "model": settings.model,
        "dtype": settings.dtype,
        "quantize": settings.quantize,
        "threads": settings.threads,
        "kv_pages": settings.kv_pages,
        "swap_bytes": settings.swap_bytes,
        "prefix_cache": settings.prefix_cache,
        "saved_bytes": settings.saved_bytes,
        "adapters": settings.adapters,
        "adapter_bytes": settings.adapter_bytes,
    }
    if settings.in_process:
        from tartlet.server.front.in_process import open_in_process

        return open_in_process(needs_runner=True, **engine_settings, progress=progress)
    from tartlet.server.front.processes.opening import open_processes

    return open_processes(workers=settings.workers, progress=progress, **engine_settings)


def _greeting(url: str, first_key: str | None, *, is_ready: bool) -> str:
    key = first_key or "$TARTLET_API_KEY"
    lines = [f"Tartlet serves at {url}"]
    if first_key is not None:
        lines += [f"API key of the operator, shown this once: {first_key}"]
    if not is_ready:
        lines += ["The model is being loaded; the log says when the server is ready, as does /health/ready."]
    lines += [f'Try: curl {url}/v1/models -H "Authorization: Bearer {key}"']
    return "\n".join(lines)
