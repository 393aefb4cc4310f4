"""One-shot commands see a cluster as the screen does."""

from __future__ import annotations

import inspect

from cockpit.backends.base import Backend
from cockpit.backends.blocking import Blocking
from cockpit.protocol.operations import Operations


def test_what_a_backend_answers_in_its_own_way_is_asked_of_it() -> None:
    operations = {name for name, each in vars(Operations).items() if inspect.iscoroutinefunction(each)}
    beside = {name for name in vars(Backend) if name[0] != "_"}
    assert "perform" in beside
    assert beside <= vars(Blocking).keys()
    assert not operations - {"perform"} & vars(Blocking).keys(), "`perform` asks for these"
