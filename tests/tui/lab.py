"""A small cluster whose jobs are the story's own, in a time of its own: `lab.toml`."""

from __future__ import annotations

import dataclasses
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from cockpit.backends.demo.backend import DemoCluster, open_demo
from cockpit.backends.demo.fixture import read_fixture
from cockpit.backends.demo.simulated_users import actor_of
from cockpit.backends.inprocess import InProcessBackend
from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.model.spec import Algorithm, JobSpec, Mode, NodeSpec
from cockpit.tui.opening import Session
from tests.tui.driver import Cockpit, at_the_cockpit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

FIXTURE = str(Path(__file__).with_name("lab.toml"))
GIB = 1024
DEFAULTS = Defaults(time_limit_seconds=3600, grace_seconds=30, home_folder="/home/alice")


def job(name: str, command: str = "sleep 36000", cards: int = 0, **fields: Any) -> JobSpec:
    """An hour's job by default, on one CPU; on several nodes PyTorch's."""
    if fields.get("nodes", 1) > 1:
        fields.setdefault("mode", Mode.PYTORCH)
    return JobSpec(
        name=name,
        command=command,
        output=f"/home/alice/{name}",
        algorithm=Algorithm(path="/home/alice/code"),
        specs=(NodeSpec(cpus=1, memory_mib=GIB, card_milli=cards * 1000),),
        **{"time_limit_seconds": 8 * 3600, **fields},
    )


ALICE = (
    job("train", cards=4),
    job("broken", "bash -c 'exit 3'", terminal=True),
    job("done", "sleep 1"),
    job("tune", cards=4),
    job("wide", cards=4, nodes=2),
)
"""Jobs 1 to 5 after a minute: running, kept after exit 3, succeeded, running, queued."""
BOB = (job("eval", cards=2), job("训练", cards=1))
"""6 and 7, queued behind job 5."""


class Lab:
    """The cluster, and the cockpit over it."""

    def __init__(self, demo: DemoCluster, cockpit: Cockpit) -> None:
        self.backend = demo.backend
        self.demo = demo
        self.cockpit = cockpit


@asynccontextmanager
async def a_lab(
    *alices: JobSpec,
    bobs: tuple[JobSpec, ...] = (),
    size: tuple[int, int] = (120, 40),
    fixture: str = FIXTURE,
    **outside: Any,
) -> AsyncIterator[Lab]:
    """Opened a minute after these were submitted; without any, on an empty cluster."""
    demo = await open_demo(fixture, going=False)
    bob = _seat(demo, fixture, "bob")
    for seat, specs in ((demo.backend, alices), (bob, bobs)):
        for spec in specs:
            await seat.submit([spec])
            await demo.elapse(0)
    await demo.elapse(6)
    async with at_the_cockpit(session_of(demo), size, **outside) as cockpit:
        yield Lab(demo, cockpit)


@asynccontextmanager
async def a_members_lab(*alices: JobSpec, **outside: Any) -> AsyncIterator[Cockpit]:
    """What Bob sees of Alice's, who is in the project `vision` as she is."""
    demo = await open_demo(FIXTURE, going=False)
    await demo.backend.submit(alices)
    await demo.elapse(6)
    member = replace(actor_of(read_fixture(FIXTURE), "bob"), projects=frozenset({"vision"}))
    session = dataclasses.replace(session_of(demo), backend=InProcessBackend(demo.backend._engine, member))
    async with at_the_cockpit(session, (120, 40), **outside) as cockpit:
        yield cockpit


@asynccontextmanager
async def the_lab(**outside: Any) -> AsyncIterator[Lab]:
    """Opened a minute after Alice and Bob submitted theirs."""
    async with a_lab(*ALICE, bobs=BOB, **outside) as lab:
        await lab.cockpit.sees("train")
        yield lab


def _seat(demo: DemoCluster, fixture: str, user: str) -> InProcessBackend:
    return InProcessBackend(demo.backend._engine, actor_of(read_fixture(fixture), user))


def seat_of(lab: Lab, user: str) -> InProcessBackend:
    """The same cluster as another user of it may see and change it."""
    return _seat(lab.demo, FIXTURE, user)


def session_of(demo: DemoCluster) -> Session:
    return Session(
        backend=demo.backend,
        now=demo.now,
        user=demo.person,
        read_jobs=lambda source, text, folder: read_jobs(source, text, folder, defaults=DEFAULTS),
        close=demo.close,
        pace=demo.pace,
        elapse=demo.elapse,
    )
