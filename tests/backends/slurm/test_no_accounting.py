"""Clusters whose accounting database is away, or that have none: what is missing is said, and nothing is made up."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from random import Random

import pytest

from cockpit.backends.base import Phase
from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire.answers import Answers
from cockpit.backends.slurm.wire.calls import Printed
from cockpit.backends.slurm.wire.recorded import RecordedCommands
from cockpit.errors import RequestRefused, Unreachable
from cockpit.model.ids import Millis
from cockpit.model.refusal import RefusalKind
from cockpit.runtime.clock import VirtualClock

OF_DATABASE = ("sacct", "sacctmgr", "sshare")
AWAY = Printed("", "sacct: error: Problem talking to the database: Connection refused", 1)


class WithoutDatabase(RecordedCommands):
    """The recorded cluster as its commands answer without slurmdbd."""

    def __init__(self, *, configured: bool) -> None:
        super().__init__("22.05")
        self._configured = configured
        self.asked: list[str] = []

    async def run(self, argv: Sequence[str], *, seconds: float, stdin: bytes = b"", reading: bool = True) -> Printed:
        self.asked.append(argv[0])
        if argv[0] in OF_DATABASE:
            return AWAY
        printed = await super().run(argv, seconds=seconds, stdin=stdin, reading=reading)
        if self._configured:
            return printed
        return printed._replace(stdout=printed.stdout.replace("accounting_storage/slurmdbd", "accounting_storage/none"))


def backend_over(commands: RecordedCommands) -> SlurmBackend:
    clock = VirtualClock(commands.recorded_at)
    return SlurmBackend("c", commands, Reading(Answers(commands, clock.now, Random(1)), clock.now), clock, "root")


@pytest.mark.parametrize(
    ("configured", "said"),
    [
        (False, r"no accounting database \(AccountingStorageType = accounting_storage/none\)"),
        (True, "Problem talking to the database"),
    ],
)
@pytest.mark.req("SL-15", "SL-10")
async def test_missing_accounting_is_reported(configured: bool, said: str) -> None:
    commands = WithoutDatabase(configured=configured)
    backend = backend_over(commands)
    with pytest.raises(RequestRefused, match=said) as refused:
        await backend.accounting()
    assert refused.value.refusal.kind is RefusalKind.UNAVAILABLE
    accounts = await backend.accounts()
    assert (accounts.rows, accounts.qos) == ((), ())
    assert re.search(said, accounts.missing)
    edges = (Millis(commands.recorded_at - 1000), commands.recorded_at)
    assert re.search(said, (await backend.spending(edges)).missing)
    assert await backend.jobs(ended=True)
    assert any(re.search(said, each) for each in (await backend.status()).trouble)
    if not configured:
        assert set(commands.asked).isdisjoint(OF_DATABASE), "nobody is asked who is not there"


@pytest.mark.req("UI-32", "SL-10")
async def test_the_overview_counts_what_the_list_shows(recorded: SlurmBackend) -> None:
    listed = Counter[str]()
    for row in await recorded.jobs(ended=True):
        listed[str(row.state)] += len(row.tasks) or 1
    assert (await recorded.overview()).jobs_by_state == dict(listed)
    assert listed.total() > sum(len(row.tasks) or 1 for row in await recorded.jobs())


class WithoutController(RecordedCommands):
    """The recorded cluster as its commands answer without slurmctld."""

    def __init__(self) -> None:
        super().__init__("22.05")

    async def run(self, argv: Sequence[str], *, seconds: float, stdin: bytes = b"", reading: bool = True) -> Printed:
        return Printed("", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)", 1)


@pytest.mark.req("TR-04", "SL-01")
async def test_watching_a_cluster_that_does_not_answer_ends_with_the_reason() -> None:
    """It would wait without a word, as long as no caller follows the state of the connection."""
    backend = backend_over(WithoutController())
    async with asyncio.timeout(10):
        with pytest.raises(Unreachable, match="Unable to contact slurm controller"):
            await anext(aiter(backend.watch_jobs()))
    await backend.close()


@pytest.mark.req("TR-04", "SL-01")
async def test_followers_of_the_connection_see_the_reason() -> None:
    backend = backend_over(WithoutController())
    async with aclosing(backend.connections()) as states, asyncio.timeout(10), asyncio.TaskGroup() as group:
        await anext(states)
        watching = group.create_task(anext(aiter(backend.watch_jobs())))
        stale = await anext(states)
        await asyncio.sleep(0)
        assert (stale.phase, watching.done()) == (Phase.STALE, False)
        watching.cancel()
    await backend.close()
