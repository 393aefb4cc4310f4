"""Shells in containers, and copies on the machine, as a client asks the engine for them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from cockpit.engine.access import Actor
from cockpit.errors import RequestRefused
from cockpit.model import events
from cockpit.model.asking import ShellRequest
from cockpit.model.ids import Millis, ReplicaId
from cockpit.model.refusal import RefusalKind
from cockpit.model.staging import StagedCopy
from cockpit.protocol import messages
from cockpit.runtime import shells, staging
from cockpit.runtime.containers.entering import EnteredShell, EntryFacts, Terminal
from cockpit.runtime.engine import Engine
from cockpit.runtime.request_context import RequestContext
from tests.builders import ANN, a_spec
from tests.runtime.host_world import ScriptedExecutor, World, eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

BY = RequestContext(Actor(ANN, admin=True))


class Enterable(ScriptedExecutor):
    """Its containers can be entered, and its machine has copies."""

    def __init__(self) -> None:
        super().__init__()
        self.entered: list[tuple[Any, ...]] = []
        self.facts = EntryFacts(kept=False)
        self.terminal_fd: int | None = None
        self.keys: list[tuple[str, int]] = []
        self.in_use: set[str] = set()

    async def enter(self, replica: ReplicaId, command: Any, *, terminal: Any, label: str) -> EnteredShell:
        self.entered.append((replica, command, terminal, label))
        pipes = None if self.terminal_fd is not None else (31, 32, 33)
        return EnteredShell(terminal_fd=self.terminal_fd, pipe_fds=pipes, control_fd=30, facts=self.facts)

    async def copies(self) -> list[StagedCopy]:
        return [
            StagedCopy(
                key=key, what="dataset", source="/d", size=1, users=(), made_at=Millis(0), used_at=Millis(at), jobs=()
            )
            for key, at in self.keys
        ]

    async def remove_copy(self, key: str) -> bool:
        if key in self.in_use:
            return False
        self.keys = [each for each in self.keys if each[0] != key]
        return True


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    world.executor = Enterable()
    await world.begin()
    yield world
    await world.stop()


@pytest.fixture
def engine(world: World) -> Engine:
    return Engine(host=world.host, state_folder=world.folder, socket=world.folder / "s", system=True, cluster="lab")


def a_request(job: int, **fields: Any) -> ShellRequest:
    return ShellRequest(job=job, **{"command": ("ls",), "terminal": False, **fields})


async def opened_events(world: World) -> list[events.ShellOpened]:
    records = await world.journal.events(job=None, after=0, limit=100)
    return [each.body for each in records if isinstance(each.body, events.ShellOpened)]


@pytest.mark.req("JT-40")
async def test_a_shell_with_a_terminal_has_its_size_and_kind(world: World, engine: Engine) -> None:
    executor: Any = world.executor
    job = await world.run(a_spec("train"))
    executor.terminal_fd, executor.facts = 34, EntryFacts(kept=True, remounted=True, cards_freed=True, plain=True)
    request = a_request(job, command=(), terminal=True, rows=30, columns=100, term="xterm")
    opened = await shells.open_shell(engine, BY, request)
    assert executor.entered == [(ReplicaId(job, 1, 0), request.command, Terminal(30, 100, "xterm"), "train-0")]
    assert opened.fds == (30, 34)
    answer = opened.answer
    assert (answer.terminal, answer.kept, answer.remounted, answer.cards_freed, answer.plain) == (True,) * 5
    assert await opened_events(world) == [events.ShellOpened(job, 0)]


@pytest.mark.req("JT-40")
async def test_a_command_without_a_terminal_has_three_pipes(world: World, engine: Engine) -> None:
    executor: Any = world.executor
    job = await world.run(a_spec("train"))
    opened = await shells.open_shell(engine, BY, a_request(job))
    assert executor.entered[0][2:] == (None, "train-0")
    assert opened.fds == (30, 31, 32, 33)
    answer = opened.answer
    assert (answer.terminal, answer.kept, answer.remounted, answer.cards_freed, answer.plain) == (False,) * 5
    assert await opened_events(world) == [events.ShellOpened(job, 0, ("ls",))]


@pytest.mark.req("JT-40")
async def test_a_shell_waits_for_the_next_pass_and_no_longer(
    world: World, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shells, "START_SECONDS", 1000)
    submitted = await world.submit(a_spec("soon", cpus=4))
    assert isinstance(submitted, list)
    async with asyncio.timeout(60):
        await shells.open_shell(engine, BY, a_request(submitted[0]))
        waiting = await world.submit(a_spec("later", cpus=4))
        assert isinstance(waiting, list)
        with pytest.raises(RequestRefused, match="queued"):
            await shells.open_shell(engine, BY, a_request(waiting[0]))
        with pytest.raises(RequestRefused) as refused:
            await shells.open_shell(engine, BY, a_request(99))
    assert "only its record is left" in refused.value.refusal.message
    assert len(await opened_events(world)) == 1


@pytest.mark.req("JT-50")
async def test_copies_are_listed_from_the_one_that_was_not_used_for_longest(world: World, engine: Engine) -> None:
    executor: Any = world.executor
    executor.keys = [("cc", 5), ("bb", 2), ("aa", 2)]
    assert [copy.key for copy in await staging.staged(engine, BY, messages.NoArgs())] == ["aa", "bb", "cc"]


@pytest.mark.req("JT-50")
async def test_a_copy_is_removed_by_the_beginning_of_its_key_unless_it_is_in_use(world: World, engine: Engine) -> None:
    executor: Any = world.executor
    executor.keys = [("abc0123456789", 1), ("abd", 2), ("used", 3)]
    executor.in_use = {"used"}

    async def refusal(name: str) -> tuple[RefusalKind, str]:
        with pytest.raises(RequestRefused) as refused:
            await staging.unstage(engine, BY, messages.NameArgs(name))
        return refused.value.refusal.kind, refused.value.refusal.message

    assert await refusal("ab") == (RefusalKind.INVALID, "2 copies begin with ab; write more of the key.")
    assert await refusal("") == (RefusalKind.NOT_FOUND, 'There is no copy ""; `cockpit staged` lists them.')
    assert await refusal("zz") == (RefusalKind.NOT_FOUND, 'There is no copy "zz"; `cockpit staged` lists them.')
    assert await refusal("us") == (RefusalKind.CONFLICT, "Copy used is in use; remove it after its last job.")
    await staging.unstage(engine, BY, messages.NameArgs("abc"))
    assert [key for key, _ in executor.keys] == ["abd", "used"]
    removed = [each.body for each in await world.journal.events(job=None, after=0, limit=100)][-1]
    assert removed == events.CopyRemoved("dataset", "/d", "abc0123456789")


@pytest.mark.req("JT-50", "TR-01")
async def test_a_removed_copy_whose_event_cannot_be_stored_is_reported_with_both(world: World, engine: Engine) -> None:
    executor: Any = world.executor
    executor.keys = [("abc0123456789", 1)]
    world.journal.refusing.add("append")
    with pytest.raises(RequestRefused, match="Copy abc012345678 was removed, but the event of it was not stored"):
        await staging.unstage(engine, BY, messages.NameArgs("a"))
    world.journal.refusing.clear()
    await eventually(lambda: not executor.keys)
