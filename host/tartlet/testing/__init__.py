"""Test inferlets without a model: an engine that plays a script.

engine = FakeEngine(["first reply", "second reply"])
async with tartlet.Host(engine=engine) as host:
    assert await host.run("my_inferlet.py") == ...
engine.check_integrity()
"""

from tartlet.testing.byte_text import ByteText
from tartlet.testing.fake_engine import FakeEngine

__all__ = ["ByteText", "FakeEngine"]
