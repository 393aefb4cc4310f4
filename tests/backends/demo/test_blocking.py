"""One-shot commands see the demo as the screen does."""

from __future__ import annotations

import inspect

from cockpit.backends.demo.backend import DemoBackend
from cockpit.backends.demo.blocking import BlockingDemo


def test_what_a_demo_says_in_its_own_way_is_asked_of_the_demo():
    own = {name for name, each in vars(DemoBackend).items() if inspect.iscoroutinefunction(each) and name[0] != "_"}
    assert own
    assert own <= vars(BlockingDemo).keys()
