from __future__ import annotations

import os
import select
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cockpit.backends.slurm.mapping import acts
from cockpit.errors import NotRun, RequestRefused
from cockpit.model.accountchange import AddQos, AddUser, AssociationChange, LimitsChange, QosChange, RemoveQos
from cockpit.model.asking import LogRequest, ShellRequest, WantedLimit
from cockpit.model.cluster import Reservation
from cockpit.model.directives import MoveToTop, SendSignal, SignalTarget, SubmitScript, UpdateJob
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import JobState
from cockpit.model.reasons import Held
from cockpit.model.refusal import RefusalKind
from cockpit.model.spec import Array, DebugHold, HoldAllocation, NodeSpec, PriorityWord
from tests.builders import a_spec
from tests.real.slurm.conftest import eventually
from tests.real.slurm.real_cluster import ADA

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.backends.base import CommandPreview
    from cockpit.backends.slurm.backend import SlurmBackend
    from cockpit.model.job import Job
    from cockpit.model.spec import JobSpec
    from tests.real.slurm.real_cluster import RealCluster

pytestmark = [pytest.mark.real, pytest.mark.real_slurm]


def a_job(cluster: RealCluster, name: str, command: str, **more: object) -> JobSpec:
    spec = replace(a_spec(name), command=command, output=str(cluster.home(ADA)), time_limit_seconds=600)
    return replace(
        spec, **{"account": "vision", "partitions": ("debug",), "specs": (NodeSpec(memory_mib=100),), **more}
    )


async def state_of(backend: SlurmBackend, job: JobId) -> Job:
    return (await backend.job(job)).job


@pytest.mark.req("SL-20", "SL-21")
async def test_a_job_file_becomes_a_script_that_runs(emptied: RealCluster, ada: SlurmBackend) -> None:
    made = emptied.home(ADA) / "not there" / "yet"
    spec = a_job(emptied, "it's $HOME; a name", 'echo "$COCKPIT_REPLICA of $COCKPIT_REPLICAS: $WORD"; exit 4')
    spec = replace(spec, env={"WORD": "two words; $(id)"}, output=str(made))
    shown: list[CommandPreview] = []

    async def look(commands: Sequence[CommandPreview]) -> bool:
        shown.extend(commands)
        return len(shown) > 2

    ada.announce(look)
    with pytest.raises(NotRun):
        await ada.submit([spec])
    (job,) = await ada.submit([spec])
    commands = [("mkdir", "-p", "--"), ("sbatch", "--parsable", f"--job-name={spec.name}")]
    assert [each.argv[:3] for each in shown] == commands * 2
    ended = await ada.wait(job, timeout_seconds=60)
    assert ended is not None
    assert (ended.spec.name, ended.state, ended.exit and ended.exit.code) == (spec.name, JobState.ERROR, 4)
    assert (await ada.logs(LogRequest(job=job))).data == b"0 of 1: two words; $(id)\n"


@pytest.mark.req("SL-20")
async def test_jobs_are_held_changed_and_ended(emptied: RealCluster, ada: SlurmBackend, root: SlurmBackend) -> None:
    sleeper = a_job(emptied, "sleeper", "sleep 300", hold=True)
    job, other = await ada.submit([sleeper, replace(sleeper, name="other", array=Array((0, 1, 2), 1))])
    held = await eventually(lambda: ada.job(job), lambda found: isinstance(found.row.reason, Held))
    assert held.row.reason == Held(ADA, None)
    assert [row.tasks for row in await ada.jobs() if row.array is not None] == [(0, 1, 2)]
    await ada.edit(job, replace(held.job.spec, name="renamed", nice=7, time_limit_seconds=1200))
    edited = await eventually(lambda: state_of(ada, job), lambda found: found.spec.name == "renamed")
    assert (edited.spec.nice, edited.spec.time_limit_seconds) == (7, 1200)
    await ada.release(job)
    await eventually(lambda: state_of(ada, job), lambda found: found.state is JobState.RUNNING)
    await ada.set_time_limit(job, WantedLimit(-300, beside=True))
    await eventually(lambda: state_of(ada, job), lambda found: found.spec.time_limit_seconds == 900)
    with pytest.raises(RequestRefused, match="only its administrators raise") as no:
        await ada.set_time_limit(job, WantedLimit(3600))
    assert no.value.refusal.kind is RefusalKind.DENIED
    await root.set_time_limit(job, WantedLimit(1500))
    await eventually(lambda: state_of(root, job), lambda found: found.spec.time_limit_seconds == 1500)
    await root.suspend(job)
    await eventually(lambda: state_of(root, job), lambda found: found.state is JobState.SUSPENDED)
    await root.resume(job)
    await eventually(lambda: state_of(root, job), lambda found: found.state is JobState.RUNNING)
    await ada.cancel(job)
    assert (await ada.wait(job, timeout_seconds=60)).state is JobState.STOPPED
    await ada.cancel(other, task=1)
    assert await eventually(ada.jobs, lambda rows: [row.tasks for row in rows if row.array is not None] == [(0, 2)])


@pytest.mark.req("SL-20")
async def test_every_field_that_slurm_permits_is_changed(
    emptied: RealCluster, ada: SlurmBackend, root: SlurmBackend
) -> None:
    waits = a_job(emptied, "waits", "true", hold=True, partitions=("batch",))
    job, many = await ada.submit([waits, replace(waits, name="many", array=Array((0, 1, 2), 1))])
    fields = {"Comment": "two; $(id) words", "ExcNodeList": "n2", "Nice": "70", "MinCPUsNode": "2"}
    await ada.direct(UpdateJob(job, fields))
    said = emptied.ask("scontrol", "show", "job", str(job)) or ""
    assert "Comment=two; $(id) words" in said
    assert "ExcNodeList=n2" in said
    with pytest.raises(RequestRefused, match="Slurm refused"):
        await ada.direct(UpdateJob(job, {"Features": "no-such-thing"}))
    with pytest.raises(RequestRefused, match="negative nice"):
        await ada.direct(UpdateJob(job, {"Nice": "-5"}))
    waiting = await eventually(lambda: state_of(ada, job), lambda found: found.spec.nice == 70)
    changed = replace(waiting.spec, partitions=("debug",))
    await ada.edit(job, changed)
    whole, dated = replace(changed, exclusive=True), replace(changed, deadline_at=Millis(4_102_444_800_000))
    with pytest.raises(RequestRefused, match="only its administrators change `exclusive`"):
        await ada.edit(job, whole)
    with pytest.raises(RequestRefused, match="only its administrators change `deadline`"):
        await ada.edit(job, dated)
    if emptied.version >= acts.EXCLUSIVE_IS_FIXED:
        with pytest.raises(RequestRefused, match="Slurm changes no exclusive of a job that waits"):
            await root.edit(job, whole)
    else:
        await root.edit(job, whole)
        await eventually(lambda: state_of(ada, job), lambda found: found.spec.exclusive)
    await root.edit(job, replace((await state_of(root, job)).spec, deadline_at=dated.deadline_at))
    assert (await state_of(ada, job)).spec.partitions == ("debug",)
    assert "Deadline=2100-01-01" in (emptied.ask("scontrol", "show", "job", str(job)) or "")
    array = (await ada.job(many)).job
    await ada.edit(many, replace(array.spec, array=Array(array.spec.array.indices, 2)))
    assert "ArrayTaskThrottle=2" in (emptied.ask("scontrol", "show", "job", str(many)) or "")


@pytest.mark.req("SL-20")
async def test_a_job_is_moved_before_its_owners_others(emptied: RealCluster, ada: SlurmBackend) -> None:
    later = a_job(emptied, "first", "true", begin_at=Millis(4_102_444_800_000))
    first, second = await ada.submit([later, replace(later, name="second", nice=50)])

    async def priorities() -> dict[JobId, int]:
        return {row.id: row.priority or 0 for row in await ada.jobs()}

    await eventually(priorities, lambda found: found.get(first, 0) > found.get(second, 0) > 0)
    await ada.direct(MoveToTop((str(second),)))
    await eventually(priorities, lambda found: found[second] > found[first])


@pytest.mark.req("SL-20")
async def test_a_script_runs_unchanged_and_is_sent_signals(emptied: RealCluster, ada: SlurmBackend) -> None:
    script = (
        "#!/bin/bash\n#SBATCH --partition=debug --mem=100M --time=5\n"
        f"#SBATCH --account=vision --chdir={emptied.home(ADA)}\n"
        "trap 'echo told; exit 5' USR1\nwhile :; do sleep 0.2; done\n"
    )
    job = await ada.direct(SubmitScript(script, ("--job-name=as it is",)))
    await eventually(lambda: state_of(ada, job), lambda found: found.state is JobState.RUNNING)

    async def told() -> Job:
        with suppress(RequestRefused):  # it is over by now
            await ada.direct(SendSignal(job, "USR1", SignalTarget.SCRIPT))
        return await state_of(ada, job)

    await eventually(told, lambda found: found.state is not JobState.RUNNING)
    ended = await ada.wait(job, timeout_seconds=60)
    assert (ended.spec.name, ended.exit.code) == ("as it is", 5)


@pytest.mark.req("SL-20")
async def test_a_refusal_is_reported_with_slurms_message(emptied: RealCluster, ada: SlurmBackend) -> None:
    with pytest.raises(RequestRefused, match=r"Slurm refused: .*partition"):
        await ada.submit([a_job(emptied, "lost", "true", partitions=("nowhere",))])
    with pytest.raises(RequestRefused, match="volumes: Slurm mounts nothing"):
        await ada.submit([replace(a_job(emptied, "x", "true"), pool="p", volumes=(object(),))])


@pytest.mark.req("SL-20")
async def test_a_refused_qos_is_explained_with_those_that_exist(
    emptied: RealCluster, ada: SlurmBackend, root: SlurmBackend
) -> None:
    (job,) = await ada.submit([a_job(emptied, "soon", "true", hold=True)])
    missing = "no QOS urgent, which the priority urgent is on Slurm. You may use: high, normal"
    with pytest.raises(RequestRefused, match=missing):
        await ada.set_priority(job, PriorityWord.URGENT)
    with pytest.raises(RequestRefused, match=missing):
        await ada.submit([a_job(emptied, "now", "true", priority=PriorityWord.URGENT)])
    with pytest.raises(RequestRefused, match="You may use: high, normal"):
        await ada.direct(SubmitScript("#!/bin/sh\n#SBATCH --account=vision --qos=night\ntrue\n"))
    await root.change_accounts(AddQos("night", QosChange()))
    try:
        with pytest.raises(RequestRefused, match="The QOS night is not among those of the job's user and account"):
            await ada.direct(UpdateJob(job, {"QOS": "night"}))
    finally:
        await root.change_accounts(RemoveQos("night"))


@pytest.mark.req("SL-20")
async def test_an_edit_of_the_environment_with_another_field_changes_nothing(
    emptied: RealCluster, ada: SlurmBackend
) -> None:
    (job,) = await ada.submit([a_job(emptied, "soon", "true", hold=True, env={"A": "1"})])
    spec = (await state_of(ada, job)).spec
    for fixed in ({"env": {"A": "2"}}, {"output": "/elsewhere"}):
        with pytest.raises(RequestRefused, match=f"Slurm changes no {next(iter(fixed))} of a job that waits"):
            await ada.edit(job, replace(spec, nice=7, **fixed))
    await ada.edit(job, replace(spec, nice=7))
    assert (await state_of(ada, job)).spec.nice == 7


@pytest.mark.req("SL-22")
async def test_a_shell_opens_on_the_node_of_a_running_job_at_the_size_of_the_screen(
    emptied: RealCluster, ada: SlurmBackend
) -> None:
    (job,) = await ada.submit([a_job(emptied, "entered", "sleep 300")])
    await eventually(lambda: state_of(ada, job), lambda found: found.state is JobState.RUNNING)
    asked = ShellRequest(job=job, command=("sh", "-c", "stty size; echo $SLURMD_NODENAME; exit 7"), terminal=True)
    shell = await ada.open_shell(replace(asked, rows=33, columns=111))
    said = read_all(shell.terminal_fd)
    assert b"33 111" in said
    assert b"n4" in said
    assert shell.exit_code() == 7


def read_all(terminal: int | None) -> bytes:
    """Until the other side is gone."""
    assert terminal is not None
    said = b""
    while select.select([terminal], [], [], 30)[0]:
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            break
        if not piece:
            break
        said += piece
    return said


@pytest.mark.req("SL-23")
async def test_a_failed_job_keeps_its_allocation_until_it_is_released(
    emptied: RealCluster, ada: SlurmBackend, root: SlurmBackend
) -> None:
    spec = a_job(emptied, "kept", "echo gone; exit 3", terminal=True, debug_hold=DebugHold(window_seconds=120))
    (job,) = await ada.submit([spec])
    kept = await eventually(lambda: state_of(ada, job), lambda found: found.kept)
    assert (kept.state, kept.exit and kept.exit.code) == (JobState.ERROR, 3)
    assert kept.spec.time_limit_seconds == 720
    (hold,) = await ada.holds()
    assert (hold.job, hold.exit_code, hold.nodes) == (job, 3, ("n4",))
    shell = await ada.open_shell(ShellRequest(job=job, command=("sh", "-c", "echo inside")))
    assert shell.pipe_fds is not None
    assert os.read(shell.pipe_fds[1], 100) == b"inside\n"
    until = await ada.extend_hold(job, seconds=300)
    assert until == hold.held_until + 300_000
    await eventually(ada.holds, lambda found: [each.held_until for each in found] == [until])
    with pytest.raises(RequestRefused, match=r"cockpit holds extend \d+ --by \d+m` is the most"):
        await ada.extend_hold(job, seconds=3600)
    assert await root.extend_hold(job, seconds=3600) == until + 3_600_000
    await eventually(lambda: state_of(ada, job), lambda found: found.spec.time_limit_seconds > 3600)
    await ada.end_hold(job)
    ended = await ada.wait(job, timeout_seconds=60)
    assert ended is not None
    assert (ended.state, ended.exit and ended.exit.code) == (JobState.ERROR, 3)
    done = await eventually(ada.accounting, lambda found: any(each.row.id == job for each in found))
    assert next(each.row.exit_code for each in done if each.row.id == job) == 3


@pytest.mark.req("SL-23")
async def test_a_failed_job_that_releases_its_nodes_leaves_a_copy_of_its_folder(
    emptied: RealCluster, ada: SlurmBackend
) -> None:
    folder = emptied.home(ADA) / "copied"
    folder.mkdir()
    shutil.chown(folder, ADA)
    freed = DebugHold(allocation=HoldAllocation.FREE)
    spec = a_job(emptied, "freed", "echo made >file; exit 3", terminal=True, debug_hold=freed, output=str(folder))
    (job,) = await ada.submit([spec])
    waits = await eventually(
        lambda: state_of(ada, job),
        lambda found: found.state is JobState.QUEUED and found.spec.debug_hold.allocation is HoldAllocation.FREE,
    )
    assert waits.held_by == "Slurm"
    (copy,) = folder.glob(".cockpit-copy-*")
    assert (copy / "file").read_text() == "made\n"
    shell = await ada.open_shell(ShellRequest(job=job, command=("sh", "-c", "pwd; cat file")))
    assert shell.pipe_fds is not None
    assert read_all(shell.pipe_fds[1]).decode().split() == [str(copy), "made"]
    await ada.release(job)
    assert not (await eventually(lambda: state_of(ada, job), lambda found: not found.held_by)).held_by


@pytest.mark.req("SL-20")
async def test_administrators_change_nodes_reservations_and_accounts(emptied: RealCluster, root: SlurmBackend) -> None:
    await root.drain_node("n2", "bad disk; $(reboot)")
    nodes = await eventually(root.nodes, lambda rows: any(row.node.state == "drained" for row in rows))
    assert next(row.node.state_reason for row in nodes if row.node.name == "n2").startswith("bad disk; $(reboot)")
    await root.resume_node("n2")
    start = Millis(4_102_444_800_000)
    await root.make_reservation(
        Reservation(name="course", nodes=(NodeName("n1"),), start_at=start, end_at=start + 3_600_000, users=(ADA,))
    )
    (made,) = await eventually(root.reservations, len)
    assert (made.name, made.nodes, made.start_at, made.users) == ("course", ("n1",), start, (ADA,))
    await root.end_reservation("course")
    limits = AssociationChange(limits=LimitsChange(max_jobs=3))
    await root.change_accounts(AddUser(ADA, "nlp", change=limits))
    rows = await eventually(
        root.accounts, lambda shown: any(row.association.limits.max_jobs == 3 for row in shown.rows)
    )
    assert any(row.association.account == "nlp" and row.association.user == ADA for row in rows.rows)
