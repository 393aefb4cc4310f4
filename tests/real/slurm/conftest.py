"""One real cluster for all tests of this folder, and the cockpit's way to it as one of its people."""

from __future__ import annotations

import asyncio
import os
import pwd
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TypeVar

import pytest

from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire.answers import Answers, PollIntervals
from cockpit.backends.slurm.wire.calls import Printed
from cockpit.backends.slurm.wire.local import LocalCommands
from cockpit.runtime.clock import SystemClock
from tests.real.slurm.real_cluster import ADA, RealCluster, lacking

T = TypeVar("T")

PATIENCE = 100.0
HASTE = PollIntervals(jobs=0.0, nodes=0.0, details=0.0, priorities=0.0, shares=0.0, reservations=0.0, accounting=0.0)
"""Every question is asked anew: a test wants to see what is there now."""


class AsPerson(LocalCommands):
    """The commands of this machine, run by one of the people."""

    def __init__(self, env: Mapping[str, str], person: str, home: Path) -> None:
        super().__init__({**env, "HOME": str(home), "USER": person})
        known = pwd.getpwnam(person)
        self._who = ("setpriv", f"--reuid={known.pw_uid}", f"--regid={known.pw_gid}", "--init-groups")

    async def run(self, argv: Sequence[str], *, seconds: float, stdin: bytes = b"", reading: bool = True) -> Printed:
        return await super().run((*self._who, *argv), seconds=seconds, stdin=stdin, reading=reading)

    async def open_shell(self, argv, request):
        return await super().open_shell((*self._who, *argv), request)


@pytest.fixture(scope="package")
def cluster() -> Iterator[RealCluster]:
    if os.geteuid() != 0:
        pytest.skip("only root runs Slurm's daemons")
    if lacking():
        pytest.skip(f"a real Slurm cluster lacks {', '.join(lacking())}")
    with tempfile.TemporaryDirectory(prefix="cockpit-slurm-", dir="/var/tmp", ignore_cleanup_errors=True) as folder:
        made = RealCluster(Path(folder))
        try:
            made.begin()
            yield made
        finally:
            made.end()


def backend_for(
    cluster: RealCluster, person: str, intervals: PollIntervals = HASTE, env: Mapping[str, str] | None = None
) -> SlurmBackend:
    """`root`: an administrator of the cluster. `env`: more than the cluster's."""
    known = {**cluster.env, **(env or {})}
    if person == "root":
        commands: LocalCommands = LocalCommands(known)
    else:
        commands = AsPerson(known, person, cluster.home(person))
    clock = SystemClock()
    reading = Reading(Answers(commands, clock.now, Random(1)), clock.now, intervals)
    return SlurmBackend("cockpit", commands, reading, clock, person)


@pytest.fixture
async def ada(cluster: RealCluster) -> AsyncIterator[SlurmBackend]:
    backend = backend_for(cluster, ADA)
    yield backend
    await backend.close()


@pytest.fixture
async def root(cluster: RealCluster) -> AsyncIterator[SlurmBackend]:
    backend = backend_for(cluster, "root")
    yield backend
    await backend.close()


@pytest.fixture
def emptied(cluster: RealCluster) -> Iterator[RealCluster]:
    """Without jobs, before and after."""
    cluster.clear()
    yield cluster
    cluster.clear()


async def eventually(ask: Callable[[], Awaitable[T]], until: Callable[[T], object]) -> T:
    """What is asked for again until it is so."""
    async with asyncio.timeout(PATIENCE):
        while not until(found := await ask()):  # noqa: ASYNC110 - the cluster tells nobody by itself
            await asyncio.sleep(0.2)
        return found
