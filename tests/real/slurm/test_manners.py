"""How politely a controller is asked, and what becomes of a cockpit whose cluster does not answer."""

from __future__ import annotations

import asyncio
import signal
from contextlib import aclosing
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from cockpit.backends.base import Phase
from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire.answer_cache import UserAnswerCache
from cockpit.backends.slurm.wire.answers import Answers, PollIntervals
from cockpit.backends.slurm.wire.local import LocalCommands
from cockpit.errors import CockpitError, Unreachable
from cockpit.runtime.clock import SystemClock
from tests.real.slurm.conftest import HASTE
from tests.real.slurm.real_cluster import ADA

if TYPE_CHECKING:
    from tests.real.slurm.real_cluster import RealCluster

pytestmark = [pytest.mark.real, pytest.mark.real_slurm]


def cockpits(
    cluster: RealCluster, count: int, folder: Path, intervals: PollIntervals | None = None
) -> list[SlurmBackend]:
    """As so many people open them on one login node."""
    clock = SystemClock()

    def one() -> SlurmBackend:
        commands = LocalCommands(cluster.env)
        answers = Answers(commands, clock.now, Random(1), UserAnswerCache(folder, clock.now))
        return SlurmBackend("cockpit", commands, Reading(answers, clock.now, intervals), clock, "root")

    return [one() for _ in range(count)]


@pytest.mark.req("SL-03")
async def test_ten_cockpits_run_a_command_once(emptied: RealCluster, tmp_path: Path) -> None:
    emptied.submit(ADA, "-H", run="true")
    before = {kind: emptied.calls(kind) for kind in ("REQUEST_JOB_INFO", "REQUEST_NODE_INFO")}
    for _ in range(3):
        lists = await asyncio.gather(*(each.jobs() for each in cockpits(emptied, 10, tmp_path)))
    assert {len(rows) for rows in lists} == {1}
    assert {kind: emptied.calls(kind) - count for kind, count in before.items()} == dict.fromkeys(before, 1)


@pytest.mark.req("SL-04", "TR-04")
async def test_a_paused_controller_is_reported_and_recovers(emptied: RealCluster, tmp_path: Path) -> None:
    (cockpit,) = cockpits(emptied, 1, tmp_path, PollIntervals(jobs=0.1, patience=2.0))
    phases: list[Phase] = []

    async def note() -> None:
        async for connection in cockpit.connections():
            phases[:] = [connection.phase]

    async def look() -> None:
        async with aclosing(cockpit.watch_jobs(anything=True)) as deltas:
            async for _ in deltas:
                pass

    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(note()), tasks.create_task(look())]
        while phases != [Phase.CONNECTED]:  # noqa: ASYNC110 - seen from outside
            await asyncio.sleep(0.1)
        emptied.signal_controller(signal.SIGSTOP)
        try:
            while phases != [Phase.STALE]:  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.1)
            assert "squeue has not answered within 2 s" in cockpit.connection.reason
            assert cockpit.connection.good_at is not None
        finally:
            emptied.signal_controller(signal.SIGCONT)
        while phases != [Phase.CONNECTED]:  # noqa: ASYNC110 - seen from outside
            await asyncio.sleep(0.1)
        for task in running:
            task.cancel()


@pytest.mark.req("TR-04", "SL-02")
async def test_a_wrapper_around_a_command_never_hides_a_record(emptied: RealCluster, tmp_path: Path) -> None:
    """Whatever it does to the answer of the real command, at places that a seed chooses."""
    for _ in range(6):
        emptied.submit(ADA, "-H", run="true")
    chance, refused = Random(24), 0
    cuts = [f"head -c {chance.randrange(1, 4000)}" for _ in range(4)] + ["head -n 1", "head -n 3", "sed '$d'"]
    nonsense = ["echo garbage", "head -c 3000000 /dev/urandom", "exit 0", "exit 1", "sleep 60", "kill -9 $$"]
    for program, ask in (("squeue", SlurmBackend.jobs), ("scontrol", SlurmBackend.nodes)):
        for what in [*(f'/usr/bin/{program} "$@" | {each}' for each in cuts), *nonsense]:
            commands = LocalCommands({**emptied.env, "PATH": f"{tmp_path}:{emptied.env['PATH']}"})
            clock = SystemClock()
            reading = Reading(Answers(commands, clock.now, Random(1)), clock.now, HASTE._replace(patience=1.0))
            backend = SlurmBackend("cockpit", commands, reading, clock, "root")
            truth = {row.node.name if program == "scontrol" else row.id for row in await ask(backend)}
            wrapper = tmp_path / program
            wrapper.write_text(f"#!/bin/sh\n{what}\n")
            wrapper.chmod(0o755)
            reading.forget({program})
            try:
                seen = {row.node.name if program == "scontrol" else row.id for row in await ask(backend)}
            except CockpitError:
                refused += 1
            else:
                assert seen == truth, what
            wrapper.unlink()
    assert refused > 20


@pytest.mark.req("SL-04")
async def test_without_its_database_all_else_works(cluster: RealCluster, tmp_path: Path) -> None:
    broken = tmp_path / "sacctmgr"
    broken.write_text("#!/bin/sh\nsleep 60\n")
    broken.chmod(0o755)
    commands = LocalCommands({**cluster.env, "PATH": f"{tmp_path}:{cluster.env['PATH']}"})
    clock = SystemClock()
    reading = Reading(Answers(commands, clock.now, Random(1)), clock.now, PollIntervals(patience=1.5))
    backend = SlurmBackend("cockpit", commands, reading, clock, "root")
    assert await backend.accounts()
    assert any("sacctmgr" in each for each in (await backend.status()).trouble)


async def test_a_missing_program_is_reported_as_unreachable() -> None:
    commands = LocalCommands({"PATH": "/nonexistent"})
    with pytest.raises(Unreachable, match="cannot be run on this machine"):
        await commands.run(("squeue-of-nowhere",), seconds=5)
