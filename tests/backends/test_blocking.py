"""One-shot commands see a cluster as the screen does."""

from __future__ import annotations

import asyncio
import inspect

from cockpit.backends.base import Backend
from cockpit.backends.blocking import Blocking
from cockpit.protocol.operations import Operations
from tests.doubles.memory_backend import MemoryBackend


def test_what_a_backend_answers_in_its_own_way_is_asked_of_it() -> None:
    operations = {name for name, each in vars(Operations).items() if inspect.iscoroutinefunction(each)}
    beside = {name for name in vars(Backend) if name[0] != "_"}
    assert "perform" in beside
    with asyncio.Runner() as runner:
        blocking = Blocking(runner, MemoryBackend())
    assert beside <= vars(Blocking).keys() | vars(blocking).keys()
    assert not operations - {"perform"} & vars(Blocking).keys(), "`perform` asks for these"
