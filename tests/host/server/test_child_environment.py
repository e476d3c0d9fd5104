from __future__ import annotations

from tartlet.server.child_environment import engine_environment, worker_environment

FRONT = {
    "PATH": "/bin",
    "LC_ALL": "C",
    "TARTLET_HOME": "/home",
    "TARTLET_DATABASE": "postgresql://user:secret@host/db",
    "PGPASSWORD": "secret",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "HF_TOKEN": "token",
    "CUDA_VISIBLE_DEVICES": "0",
}


def test_children_get_what_they_need_and_no_secret() -> None:
    """The engine fetches models and drives devices; a worker does neither."""
    worker = {"PATH": "/bin", "LC_ALL": "C", "TARTLET_HOME": "/home"}

    assert worker_environment(FRONT) == worker
    assert engine_environment(FRONT) == {**worker, "HF_TOKEN": "token", "CUDA_VISIBLE_DEVICES": "0"}
