"""One-shot commands see a cluster as the screen does."""

from __future__ import annotations

import inspect

import pytest

from cockpit.backends.blocking import Blocking
from cockpit.backends.demo.backend import DemoBackend
from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.snapshot.backend import SnapshotBackend

OF_A_SCREEN = {"now", "connections", "overviews"}
"""What only a face that stays open asks."""


@pytest.mark.parametrize("backend", [DemoBackend, SlurmBackend, SnapshotBackend])
def test_what_a_cluster_says_in_its_own_way_is_asked_of_it(backend: type) -> None:
    own = {name for name, each in vars(backend).items() if inspect.iscoroutinefunction(each) and name[0] != "_"}
    assert own
    assert own - OF_A_SCREEN <= vars(Blocking).keys()
