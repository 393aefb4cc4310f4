"""A real slurmrestd: as one of the people on a unix socket, and over HTTP with a token."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import pytest
from msgspec.structs import replace

from cockpit.backends.base import CommandPreview
from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.slurm.mapping import listing
from cockpit.backends.slurm.mapping.nodes import COMMAND as NODES
from cockpit.backends.slurm.wire.rest import RestCommands, token_in
from cockpit.errors import RequestRefused, Unreachable
from cockpit.model.asking import LogRequest, WantedLimit
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.reasons import Held
from cockpit.model.refusal import RefusalKind
from cockpit.model.spec import Array, NodeSpec
from cockpit.runtime.clock import SystemClock
from tests.builders import a_spec
from tests.real.slurm.conftest import eventually
from tests.real.slurm.real_cluster import ADA, RealCluster
from tests.real.slurm.rest_daemon import RestDaemon

pytestmark = [pytest.mark.real, pytest.mark.real_slurm]


@pytest.fixture(scope="module")
def own_daemon(cluster: RealCluster) -> Iterator[RestDaemon]:
    daemon = RestDaemon(cluster, ADA)
    yield daemon
    daemon.stop()


@pytest.fixture(scope="module")
def http_daemon(cluster: RealCluster) -> Iterator[RestDaemon]:
    daemon = RestDaemon(cluster)
    yield daemon
    daemon.stop()


@pytest.fixture
def socket(own_daemon: RestDaemon) -> SlurmBackend:
    return own_daemon.over_socket(ADA)


@pytest.fixture
def http(http_daemon: RestDaemon) -> SlurmBackend:
    return http_daemon.over_http(ADA)


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
    if reason := backend.capabilities.why_not("logs"):
        with pytest.raises(RequestRefused, match=r"slurmrestd reads no files over HTTP") as no:
            await backend.logs(LogRequest(job=job))
        assert (way, no.value.refusal.message) == ("http", reason)
    else:
        chunk = await eventually(lambda: backend.logs(LogRequest(job=job)), lambda found: found.data)
        assert chunk.data == b"of 1\n"
    await backend.cancel(job)
    ended = await backend.wait(job, timeout_seconds=60)
    assert ended is not None
    assert ended.state is JobState.STOPPED


@pytest.mark.req("SL-01", "SL-20")
async def test_a_job_submitted_through_slurmrestd_is_what_was_requested(
    emptied: RealCluster, socket: SlurmBackend, root: SlurmBackend
) -> None:
    spec = replace(a_spec("wanted"), output=str(emptied.home(ADA)), account="vision", hold=True, time_limit_seconds=600)
    spec = replace(spec, specs=(NodeSpec(cpus=2, memory_mib=100, card_milli=2000, card_models=("a100",)),))
    for each in (replace(spec, nodes=2), replace(spec, exclusive=True), replace(spec, partitions=("gpu", "batch"))):
        (job,) = await socket.submit([each])
        listed = (await root.job(job)).job.spec
        assert (listed.nodes, listed.exclusive) == (each.nodes, each.exclusive)
        assert set(listed.partitions) == set(each.partitions or ("batch",))
        assert (listed.specs, listed.time_limit_seconds) == (each.specs, 600)


@pytest.mark.req("SL-01", "SL-20")
@pytest.mark.parametrize(
    "change",
    [
        {"name": "renamed"},
        {"nodes": 2},
        {"nice": 7},
        {"partitions": ("gpu",)},
        {"specs": (NodeSpec(cpus=1, memory_mib=100, card_milli=1000, card_models=("a100",)),)},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_an_edit_through_slurmrestd_is_carried_out_or_refused(
    emptied: RealCluster, socket: SlurmBackend, root: SlurmBackend, change: dict[str, object]
) -> None:
    """Slurm 22.05's slurmrestd accepts a new name and does not change it."""
    spec = replace(a_spec("edited"), output=str(emptied.home(ADA)), account="vision", hold=True)
    (job,) = await socket.submit([replace(spec, specs=(NodeSpec(memory_mib=100),))])
    before = (await socket.job(job)).job.spec
    try:
        await socket.edit(job, replace(before, **change))
    except RequestRefused as no:
        if no.refusal.kind is RefusalKind.UNAVAILABLE and change.keys() <= {"name", "nodes"}:
            return
        raise
    after = (await root.job(job)).job.spec
    assert {name: getattr(after, name) for name in change} == change


@pytest.mark.req("SL-01", "SL-10")
async def test_output_and_steps_of_an_ended_job_are_read_through_slurmrestd(
    emptied: RealCluster, socket: SlurmBackend, root: SlurmBackend
) -> None:
    submitted = [
        emptied.submit(ADA, "--mem=10", "-pdebug", *output, run="echo written; exit 3")
        for output in ((), ("--output=named-%j",))
    ]
    for number in submitted:
        job = JobId(number)
        assert (await socket.wait(job, timeout_seconds=60)) is not None
        assert (await socket.logs(LogRequest(job=job))).data == b"written\n"
        detail = await eventually(lambda job=job: socket.job(job), lambda found: found.steps)
        assert (detail.row.exit_code, detail.log_tail) == (3, "written")
        by_command = (await eventually(lambda job=job: root.job(job), lambda found: found.steps)).steps
        assert [(step.name, step.tasks) for step in detail.steps] == [(step.name, step.tasks) for step in by_command]


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
async def test_an_invalid_and_an_expired_token_are_reported_as_such(http_daemon: RestDaemon) -> None:
    address = http_daemon.address(ADA)
    spent = RestCommands(address, token_in(str(http_daemon.token(ADA, 1)), {}), SystemClock().now)
    await asyncio.sleep(1.1)  # a token counts whole seconds, and cannot be asked to be shorter
    with pytest.raises(Unreachable, match=r"has expired\. A new token comes from `scontrol token`"):
        await spent.run(("squeue",), seconds=5)
    with pytest.raises(Unreachable, match=f"refuses {ADA}: 'Authentication failure'"):
        await RestCommands(address, str, SystemClock().now).run(("squeue",), seconds=5)
