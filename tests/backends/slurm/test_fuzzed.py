"""Answers of every Slurm command that is read, damaged by chance: locally, over SSH and by slurmrestd.

What is shown is complete, or the last answer with the cause beside it, or an error; never silently fewer rows. The
damage follows from a seed, so that a failure repeats: its message names transport, command, seed and kind.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from random import Random

import asyncssh
import pytest

from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire.answers import Answers
from cockpit.backends.slurm.wire.calls import Commands, Printed
from cockpit.backends.slurm.wire.rest import RestCommands
from cockpit.backends.slurm.wire.ssh import SshCommands
from cockpit.errors import RequestRefused, Unreachable
from cockpit.runtime.clock import SystemClock
from tests.backends.slurm.paper_cluster import PaperCluster, is_of_one, subject_of
from tests.backends.slurm.test_rest_faults import DATA, Daemon, http
from tests.backends.slurm.test_whole import (
    CROSS_CHECKED,
    HASTE,
    READ_BY,
    VIEWS,
    a_cockpit,
    is_between_records,
    size,
)

pytestmark = pytest.mark.req("TR-04", "SL-02")

Damage = Callable[[bytes, Random], bytes]
"""Returns a damaged answer. All choices are those of the random numbers."""
SEEDS = range(3)
VERSIONS = ("22.05", "24.11")
SUBJECTS = (*READ_BY, "sdiag")
MESSAGES = (
    b"slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n",
    b"\x1b]52;c;ZXZpbA==\x07\x1b[2J",
    b"Last login: Sat Nov 21 09:00:00 2026 from 10.0.0.1\r\n",
)


def _place(answer: bytes, chance: Random) -> int:
    return chance.randrange(len(answer) + 1)


def cut(answer: bytes, chance: Random) -> bytes:
    return answer[: _place(answer[:-1], chance)]


def cut_at_a_line(answer: bytes, chance: Random) -> bytes:
    lines = answer.splitlines(keepends=True)
    return b"".join(lines[: chance.randrange(len(lines))])


def without_beginning(answer: bytes, chance: Random) -> bytes:
    return answer[1 + _place(answer[:-1], chance) :]


def insert_garbage(answer: bytes, chance: Random) -> bytes:
    at = _place(answer, chance)
    return answer[:at] + chance.randbytes(40) + answer[at:]


def overwrite(answer: bytes, chance: Random) -> bytes:
    """Overwrite a span that may hold the border of two records."""
    at, long = _place(answer, chance), chance.choice((1, 40, 900))
    return answer[:at] + chance.randbytes(len(answer[at : at + long])) + answer[at + long :]


def insert_message(answer: bytes, chance: Random) -> bytes:
    at = _place(answer, chance)
    return answer[:at] + chance.choice(MESSAGES) + answer[at:]


def zeros(answer: bytes, chance: Random) -> bytes:
    """A file on a disk that lost its last blocks."""
    at = _place(answer, chance)
    return answer[:at] + bytes(len(answer) - at)


def nothing_but_garbage(answer: bytes, chance: Random) -> bytes:
    return chance.randbytes(len(answer))


def nothing(_: bytes, __: Random) -> bytes:
    return b""


DAMAGES: tuple[Damage, ...] = (
    cut,
    cut_at_a_line,
    without_beginning,
    insert_garbage,
    overwrite,
    insert_message,
    zeros,
    nothing_but_garbage,
    nothing,
)


class DamagedText:
    """Damages the output of one command; keeps what it returned."""

    def __init__(self, damage: Damage, chance: Random) -> None:
        self._damage, self._chance = damage, chance
        self.kept: list[str] = []

    def __call__(self, printed: Printed) -> Printed:
        text = self._damage(printed.stdout.encode(), self._chance).decode(errors="replace")
        self.kept.append(text)
        return printed._replace(stdout=text)


async def rows_or_cause(cluster: SlurmBackend, view: str) -> int | None:
    """Return the number of rows that are shown; None where there is an error, or a cause beside the rows."""
    try:
        shown = await VIEWS[view](cluster)
        return None if (await cluster.status()).trouble else size(shown)
    except (Unreachable, RequestRefused):
        return None


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("subject", SUBJECTS)
async def test_a_damaged_answer_never_removes_rows_silently(version: str, subject: str) -> None:
    paper = PaperCluster(version)
    views = READ_BY.get(subject, ("jobs", "priorities"))
    truth = {view: await rows_or_cause(a_cockpit(paper)[0], view) for view in views}
    for damage in DAMAGES:
        for seed in SEEDS:
            text = DamagedText(damage, Random(f"{version} {subject} {damage.__name__} {seed}"))
            paper.faults = {subject: text}
            for view in views:
                count = await rows_or_cause(a_cockpit(paper)[0], view)
                # Without a second source the end of a list of whole records cannot be missed (over SSH it is).
                may_lack = subject not in CROSS_CHECKED and any(is_between_records(subject, each) for each in text.kept)
                where = (version, subject, damage.__name__, seed, view)
                assert count is None or count >= (truth[view] or 0) or may_lack, where


class Login(asyncssh.SSHServer):
    """A login node that accepts every user."""

    def begin_auth(self, username: str) -> bool:
        return False


class LoginNode:
    """Runs the commands of a recorded cluster, and damages the bytes of one of them on their way."""

    def __init__(self, paper: PaperCluster) -> None:
        self._paper = paper
        self.subject = ""
        self.damage: Callable[[bytes], bytes] = bytes
        self.resets = False
        """Whether the connection breaks after the damaged answer; else the program ends with 0."""

    async def serve(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        command, _, end = (process.command or "").rpartition(" && echo ")
        argv = [word for word in shlex.split(command) if word not in {"env", "TZ=UTC"}]
        printed = await self._paper.run(argv, seconds=10)
        sent = printed.stdout.encode()
        if printed.code == 0:
            sent += f"{shlex.split(end)[0]}\n".encode()
        damaged = subject_of(argv) == self.subject and not is_of_one(argv)
        process.stdout.write(self.damage(sent) if damaged else sent)
        process.stderr.write(printed.stderr.encode())
        if damaged and self.resets:
            await process.stdout.drain()
            process.channel.get_connection().abort()
            return
        process.exit(printed.code)


class OverNode(SshCommands):
    """Connects to the login node of the test, whose host key is not verified."""

    def __init__(self, port: int) -> None:
        super().__init__(f"ssh://ann@127.0.0.1:{port}")
        self._own_port = port

    async def _connect(self) -> asyncssh.SSHClientConnection:
        return await asyncssh.connect(
            "127.0.0.1", self._own_port, known_hosts=None, config=None, client_keys=None, agent_path=None
        )


@pytest.fixture
async def node() -> AsyncIterator[tuple[LoginNode, int]]:
    made = LoginNode(PaperCluster())
    key = asyncssh.generate_private_key("ssh-ed25519")
    server = await asyncssh.create_server(
        Login, "127.0.0.1", 0, server_host_keys=[key], process_factory=made.serve, encoding=None
    )
    async with server:
        yield made, server.get_port()


def cockpit_over(commands: Commands) -> SlurmBackend:
    clock = SystemClock()
    return SlurmBackend(
        "node", commands, Reading(Answers(commands, clock.now, Random(1)), clock.now, HASTE), clock, "a"
    )


GARBAGE = [
    ("scontrol show reservation", "Duration=", "D\x8cration="),
    ("scontrol show reservation", "StartTime=2026", "StartTime=2\ufffd26"),
    ("scontrol show reservation", "EndTime=", "XndTime="),
    ("scontrol show config", "ClusterName             = ", "ClusterName             = \x1b\ufffd"),
    ("sprio", "\n", "\n\ufffd"),
    ("squeue", "T08:01:", "T08:\ufffd1:"),
    ("squeue", "PENDING", "PEN\x7fING"),
    ("scontrol show node", "\n", "\n\0"),
]
"""Damage that removed rows silently: one value that could not be read took its record with it."""


@pytest.mark.parametrize(("subject", "before", "after"), GARBAGE)
async def test_one_unreadable_value_is_an_error(subject: str, before: str, after: str) -> None:
    paper, damaged = PaperCluster(), list[bool]()

    def fault(printed: Printed) -> Printed:
        damaged.append(before in printed.stdout)
        return printed._replace(stdout=printed.stdout.replace(before, after, 1))

    paper.faults = {subject: fault}
    assert await rows_or_cause(a_cockpit(paper)[0], READ_BY[subject][0]) is None
    assert any(damaged)


@pytest.mark.parametrize("subject", ["squeue", "sacct", "scontrol show node", "scontrol show reservation", "sprio"])
async def test_a_damaged_answer_over_ssh_never_removes_rows_silently(node: tuple[LoginNode, int], subject: str) -> None:
    login, port = node
    view = READ_BY[subject][-1 if subject == "sacct" else 0]
    commands = OverNode(port)
    truth = await rows_or_cause(cockpit_over(commands), view)
    assert truth
    for damage in DAMAGES:
        for resets in (False, True):
            chance = Random(f"{subject} {damage.__name__} {resets}")
            login.subject, login.resets = subject, resets
            login.damage = lambda sent, damage=damage, chance=chance: damage(sent, chance)
            count = await rows_or_cause(cockpit_over(commands), view)
            assert count is None or count >= truth, (subject, damage.__name__, resets)
    login.subject = ""
    assert await rows_or_cause(cockpit_over(commands), view) == truth, "it recovers by itself"
    await commands.close()


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[Daemon]:
    made = Daemon()
    async with await asyncio.start_unix_server(made.serve, tmp_path / "rest.sock"):
        yield made


@pytest.mark.parametrize(("view", "file"), [("jobs", "jobs"), ("nodes", "nodes"), ("queues", "partitions")])
async def test_a_damaged_answer_of_slurmrestd_never_removes_rows_silently(
    daemon: Daemon, tmp_path: Path, view: str, file: str
) -> None:
    commands = RestCommands(f"slurmrestd+unix://{tmp_path}/rest.sock", str, SystemClock().now)
    truth = size(await VIEWS[view](cockpit_over(commands)))
    body = (DATA / f"{file}.json").read_bytes()
    for damage in DAMAGES:
        for seed in SEEDS:
            chance = Random(f"rest {file} {damage.__name__} {seed}")

            async def answer(target: str, writer: asyncio.StreamWriter, changed: bytes = damage(body, chance)) -> None:
                is_it = target.partition("?")[0].endswith(f"/{file}")
                writer.write(http(changed)) if is_it else await daemon.recorded(target, writer)

            daemon.instead = answer
            try:
                shown = await VIEWS[view](cockpit_over(commands))
            except (Unreachable, RequestRefused):
                continue
            assert size(shown) >= truth, (file, damage.__name__, seed)
