"""The front's children: the engine's process and the workers, how they are started, watched, replaced and used."""

from tartlet.server.front.processes.opening import open_processes

__all__ = ["open_processes"]
