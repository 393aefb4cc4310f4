"""A real slurmrestd: as one of the people on a unix socket, and over HTTP with a token."""

from __future__ import annotations

import asyncio
import pwd
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from cockpit.backends.base import CommandPreview
from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.slurm.mapping import listing
from cockpit.backends.slurm.mapping.nodes import COMMAND as NODES
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire.answers import Answers
from cockpit.backends.slurm.wire.local import LocalCommands
from cockpit.backends.slurm.wire.rest import RestCommands, token_in
from cockpit.errors import RequestRefused, Unreachable
from cockpit.model.asking import LogRequest, WantedLimit
from cockpit.model.job import JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.reasons import Held
from cockpit.model.refusal import RefusalKind
from cockpit.model.spec import Array, NodeSpec
from cockpit.runtime.clock import SystemClock
from tests.builders import a_spec
from tests.e2e.slurm_daemons import free_ports
from tests.real.slurm.conftest import HASTE, eventually
from tests.real.slurm.real_cluster import ADA, RealCluster

pytestmark = [pytest.mark.real, pytest.mark.real_slurm]


class Restd:
    """Two of them: Ada's own, and one for everybody who has a token."""

    def __init__(self, cluster: RealCluster) -> None:
        self._cluster, self.folder = cluster, cluster.folder / "rest"
        self.folder.mkdir()
        ada = pwd.getpwnam(ADA)
        (self.folder / "ada").mkdir(mode=0o755)
        (self.folder / "ada").chmod(0o777)
        self.socket = self.folder / "ada" / "rest.sock"
        (self.port,) = free_ports(1)
        self._processes = [
            self._start(ada.pw_uid, ada.pw_gid, "rest_auth/local", f"unix:{self.socket}"),
            self._start(65_534, 65_534, "rest_auth/jwt", f"127.0.0.1:{self.port}", {"SLURM_JWT": "daemon"}),
        ]
        deadline = time.monotonic() + 20
        while not self.socket.exists() or not self.listens():
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def listens(self) -> bool:
        return f":{self.port:04X} 00000000:0000 0A" in Path("/proc/net/tcp").read_text()

    def token(self, seconds: int = 600) -> Path:
        printed = self._cluster.ask("scontrol", "token", f"username={ADA}", f"lifespan={seconds}")
        assert printed is not None
        file = self.folder / f"token-{seconds}"
        file.write_text(printed)
        return file

    def stop(self) -> None:
        for each in self._processes:
            each.terminate()
            each.wait(10)

    def _start(self, uid: int, gid: int, auth: str, where: str, more: dict[str, str] | None = None) -> subprocess.Popen:
        who = ("setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups")
        log = (self.folder / f"{uid}.log").open("wb")
        env = {**self._cluster.env, **(more or {})}
        return subprocess.Popen((*who, "slurmrestd", "-a", auth, where), env=env, stdout=log, stderr=log)


@pytest.fixture(scope="module")
def restd(cluster: RealCluster) -> Iterator[Restd]:
    made = Restd(cluster)
    yield made
    made.stop()


def over(commands: RestCommands) -> SlurmBackend:
    clock = SystemClock()
    return SlurmBackend(
        "cockpit", commands, Reading(Answers(commands, clock.now, Random(1)), clock.now, HASTE), clock, ADA
    )


@pytest.fixture
def socket(restd: Restd, cluster: RealCluster) -> SlurmBackend:
    address = f"slurmrestd+unix://{restd.socket}"
    return over(RestCommands(address, str, SystemClock().now, LocalCommands(cluster.env)))


@pytest.fixture
def http(restd: Restd) -> SlurmBackend:
    token = token_in(str(restd.token()), {})
    return over(RestCommands(f"slurmrestd+http://{ADA}@127.0.0.1:{restd.port}", token, SystemClock().now))


@pytest.mark.req("SL-01", "SL-20")
@pytest.mark.parametrize("way", ["socket", "http"])
async def test_a_job_is_submitted_changed_and_ended_through_slurmrestd(
    emptied: RealCluster, way: str, request: pytest.FixtureRequest
) -> None:
    backend: SlurmBackend = request.getfixturevalue(way)
    spec = replace(
        a_spec("it's $HOME"), command='echo "of $COCKPIT_REPLICAS"; sleep 300', output=str(emptied.home(ADA))
    )
    spec = replace(spec, account="vision", partitions=("debug",), specs=(NodeSpec(memory_mib=100),), hold=True)
    spec = replace(spec, time_limit_seconds=600)
    (job,) = await backend.submit([spec])
    held = await eventually(lambda: backend.job(job), lambda found: isinstance(found.row.reason, Held))
    assert (held.job.spec.name, held.row.time_limit_seconds, held.row.memory_mib) == ("it's $HOME", 600, 100)
    await backend.set_time_limit(job, WantedLimit(1200))
    await backend.release(job)
    running = await eventually(lambda: backend.job(job), lambda found: found.row.state is JobState.RUNNING)
    assert (running.row.placed_on, running.row.time_limit_seconds) == (("n4",), 1200)
    if way == "socket":
        chunk = await eventually(lambda: backend.logs(LogRequest(job=job)), lambda found: found.data)
        assert chunk.data == b"of 1\n"
    await backend.cancel(job)
    ended = await backend.wait(job, timeout_seconds=60)
    assert ended is not None
    assert ended.state is JobState.STOPPED


@pytest.mark.req("SL-01", "SL-21")
async def test_a_refusal_has_slurms_message_and_the_request_is_shown(
    emptied: RealCluster, socket: SlurmBackend
) -> None:
    shown: list[CommandPreview] = []

    async def look(commands: Sequence[CommandPreview]) -> bool:
        shown.extend(commands)
        return True

    socket.announce(look)
    spec = replace(a_spec("x"), output=str(emptied.home(ADA)), account="nobody", specs=(NodeSpec(memory_mib=100),))
    with pytest.raises(RequestRefused, match=r"Slurm refused: .*Invalid account") as no:
        await socket.submit([spec])
    assert no.value.refusal.kind is RefusalKind.INVALID
    assert shown[0].argv[:5] == ("curl", "--unix-socket", shown[0].argv[2], "-X", "POST")
    (job,) = await socket.submit([replace(spec, account="vision", hold=True, array=Array((0, 3, 5), 1))])
    (row,) = await eventually(socket.jobs, lambda rows: rows)
    assert row.array is not None
    assert (row.array.array, row.array.count, row.array.last) == (job, 3, 5)
    await socket.cancel(job)
    await eventually(socket.jobs, lambda rows: not rows)


@pytest.mark.req("SL-01", "SL-11")
async def test_commands_and_slurmrestd_give_the_same_data(
    emptied: RealCluster, socket: SlurmBackend, root: SlurmBackend
) -> None:
    emptied.submit(ADA, "-pgpu", "--gres=gpu:a100:2", "-Jcards", run="sleep 300")
    running = await eventually(root.jobs, lambda rows: rows and rows[0].state is JobState.RUNNING)
    told = await socket.jobs()
    assert [replace(row, output="", may=running[0].may) for row in told] == [replace(row, output="") for row in running]
    assert await socket.nodes() == await root.nodes()
    one, other = [{row.association.key: row for row in (await each.accounts()).rows} for each in (socket, root)]
    assert {key: (row.depth, row.association.shares) for key, row in one.items()} == {
        key: (row.depth, row.association.shares) for key, row in other.items()
    }


@pytest.mark.req("SL-01", "SL-11")
async def test_a_job_cancelled_while_held_has_the_same_record_through_slurmrestd(
    emptied: RealCluster, socket: SlurmBackend, root: SlurmBackend
) -> None:
    held = emptied.submit(ADA, "-H", "-Jheld", run="sleep 300")
    await eventually(root.jobs, lambda rows: any(row.id == held for row in rows))
    assert emptied.ask("scancel", str(held)) is not None

    async def ended(backend: SlurmBackend) -> list[JobRow]:
        return [row for row in await backend.jobs(ended=True) if row.id == held and row.state is JobState.STOPPED]

    (by_command,) = await eventually(lambda: ended(root), bool)
    (by_rest,) = await eventually(lambda: ended(socket), bool)
    assert replace(by_rest, output="", may=by_command.may) == replace(by_command, output="")


@pytest.mark.req("SL-03")
async def test_a_request_through_slurmrestd_is_one_request_to_the_controller(
    emptied: RealCluster, socket: SlurmBackend
) -> None:
    await socket.jobs()
    for argv, kind in ((listing.command(), "REQUEST_JOB_INFO"), (NODES, "REQUEST_NODE_INFO")):
        before = emptied.calls(kind)
        await socket._commands.run(argv, seconds=10)
        assert emptied.calls(kind) - before == 1


@pytest.mark.req("TR-04", "SL-01")
async def test_an_invalid_and_an_expired_token_are_reported_as_such(restd: Restd) -> None:
    address = f"slurmrestd+http://{ADA}@127.0.0.1:{restd.port}"
    spent = RestCommands(address, token_in(str(restd.token(1)), {}), SystemClock().now)
    await asyncio.sleep(1.1)  # a token counts whole seconds, and cannot be asked to be shorter
    with pytest.raises(Unreachable, match=r"has expired\. A new token comes from `scontrol token`"):
        await spent.run(("squeue",), seconds=5)
    with pytest.raises(Unreachable, match=f"refuses {ADA}: 'Authentication failure'"):
        await RestCommands(address, str, SystemClock().now).run(("squeue",), seconds=5)
