"""A fleet of real Kubernetes clusters: jobs that are submitted to the host run on members, and the host shows them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cockpit.backends.kubernetes.opening import open_context
from cockpit.formats.foreign.propagation import submission_policy
from cockpit.model.fleet_placement import FleetStep, FleetWaits, MemberObstacle
from cockpit.model.job import JobState
from cockpit.model.spec import Failover, Mode, NodeSpec, Suspension
from tests.builders import a_spec
from tests.real.kubernetes.api import ApiError
from tests.real.kubernetes.daemons import PATIENCE_SECONDS, wait_until
from tests.real.kubernetes.fleet import BINDINGS, POLICIES, Fleet, inside, running_fleet
from tests.real.kubernetes.fleet_kinds import KARMADA_POLICY
from tests.real.kubernetes.test_backend import until
from tools.kubernetes_programs import NODELET, SERVER, TRAINING_OPERATOR

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from cockpit.backends.kubernetes.backend import KubernetesBackend
    from cockpit.model.fleetrow import FleetPodRow
    from cockpit.model.ids import JobId
    from cockpit.model.spec import JobSpec
    from tests.real.kubernetes.api import Api

pytestmark = [pytest.mark.real, pytest.mark.real_kubernetes]
BATCH_JOBS = "/apis/batch/v1/namespaces/default/jobs"
JOB = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/{}"


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """Three control planes for all tests of this file."""
    if not all(each.is_built() for each in (SERVER, NODELET, TRAINING_OPERATOR)) or shutil.which("bwrap") is None:
        pytest.skip("Kubernetes and the training operator are not built: `make setup-tests` says why (it needs Go)")
    with running_fleet() as made:
        yield made


@asynccontextmanager
async def cockpit_of(fleet: Fleet, folder: Path) -> AsyncIterator[KubernetesBackend]:
    """Open the fleet's host, with the user's own contexts for the members."""
    backend = open_context("fleet", {"KUBECONFIG": str(fleet.kubeconfig(folder))})
    try:
        yield backend
    finally:
        await backend.close()


def training(name: str, cards: int = 4, **fields: object) -> JobSpec:
    spec = NodeSpec(cpus=1, memory_mib=1024, card_milli=1000 * cards)
    return a_spec(name, image="example/train:1", mode=Mode.PYTORCH, nodes=3, specs=(spec,), **fields)


async def gone(fleet: Fleet, name: str) -> None:
    """Wait until a job and all that the fleet made of it is gone, so that the next test has the cards."""
    policies = inside(POLICIES[0], "default")
    bindings = inside(BINDINGS, "default")
    places = (JOB.format(name), f"{policies}/{name}", f"{bindings}/{name}-pytorchjob")
    wait_until(f"something of {name} is left", lambda: not any(map(fleet.host.admin.exists, places)))
    for each in fleet.members.values():
        wait_until(f"a member still has {name}", lambda each=each: not _left(each.admin, name))


def _left(api: Api, name: str) -> bool:
    """Return whether a member has the job or pods of it, which hold cards."""
    pods = api.get("/api/v1/namespaces/default/pods")["items"]
    return api.exists(JOB.format(name)) or any(each["metadata"]["name"].startswith(f"{name}-") for each in pods)


@pytest.mark.req("KU-11", "FL-04", "FL-09")
async def test_a_gang_runs_on_one_member_and_the_host_shows_where(fleet: Fleet, tmp_path: Path) -> None:
    async with cockpit_of(fleet, tmp_path) as backend:
        (job,) = await backend.submit([training("gang")])
        row = await until(backend, "gang", lambda row: row.state is JobState.RUNNING)
        assert (row.id, row.clusters) == (job, ("cn-1",) * 3)
        placement = (await backend.job(job)).fleet
        assert placement is not None
        assert placement.policy is not None
        assert (placement.policy.name, placement.policy.gang) == ("gang", True)
        assert placement.event == "Binding has been scheduled successfully. Result: {cn-1:0,[{master 1} {worker 2}]}"
        assert [(each.cluster, each.roles, each.state) for each in placement.bound] == [
            ("cn-1", (("master", 1), ("worker", 2)), "Running")
        ]
        (other,) = placement.elsewhere
        # Three pods of four cards each are too many for the one node of cn-2.
        assert (other.cluster, other.obstacle) == ("cn-2", MemberObstacle.SHORT)
        assert [(each.asked, each.free) for each in other.amounts if each.resource == "nvidia.com/gpu"] == [(12, 8)]
        (shown,) = (await backend.fleet(job=job)).jobs
        assert (shown.cluster, shown.fleet_state, shown.state) == ("cn-1", "Created", "Running")
        assert (shown.adopted, shown.own, shown.replicas, shown.silence) == (True, "PyTorchJob default/gang", 3, "")
        pods = (await backend.fleet(job=job, pods=True)).pods
        assert {each.name for each in pods} == {"gang-master-0", "gang-worker-0", "gang-worker-1"}
        assert {(each.cluster, each.status) for each in pods} == {("cn-1", "Running")}
        there = fleet.members["cn-1"].admin.get(JOB.format("gang"))
        found = json.loads((await backend.own_object(job, cluster="cn-1")).text)
        assert found["metadata"]["uid"] == there["metadata"]["uid"]
        await backend.cancel(job)
    await gone(fleet, "gang")


@pytest.mark.req("FL-07", "KU-11")
async def test_a_suspended_job_waits_for_its_dequeue(fleet: Fleet, tmp_path: Path) -> None:
    async with cockpit_of(fleet, tmp_path) as backend:
        (job,) = await backend.submit([training("waits", suspension=Suspension(scheduling=True))])
        bindings = inside(BINDINGS, "default")
        wait_until("there is no binding", lambda: fleet.host.admin.exists(f"{bindings}/waits-pytorchjob"))
        row = await until(backend, "waits", lambda row: row.state is JobState.QUEUED)
        assert row.reason == FleetWaits(FleetStep.SUSPENDED, "waits")
        await backend.release(job)
        row = await until(backend, "waits", lambda row: row.state is JobState.RUNNING)
        assert row.clusters[0] == "cn-1"
        await backend.cancel(job)
    await gone(fleet, "waits")


@pytest.mark.req("KU-11", "FL-04")
async def test_a_gang_that_fits_nowhere_names_what_each_member_has_free(fleet: Fleet, tmp_path: Path) -> None:
    async with cockpit_of(fleet, tmp_path) as backend:
        (job,) = await backend.submit([training("large", cards=8)])
        row = await until(
            backend,
            "large",
            lambda row: isinstance(row.reason, FleetWaits) and row.reason.step is FleetStep.UNSCHEDULED,
        )
        assert isinstance(row.reason, FleetWaits)
        assert row.reason.message == "0/2 clusters are available: 2 clusters have too little free."
        found = {
            each.cluster: (amount.asked, amount.free)
            for each in row.reason.members
            for amount in each.amounts
            if amount.resource == "nvidia.com/gpu"
        }
        assert found == {"cn-1": (24, 16), "cn-2": (24, 8)}
        # Nothing of a gang runs that does not fit as a whole.
        assert not any(each.admin.exists(JOB.format("large")) for each in fleet.members.values())
        await backend.cancel(job)
    await gone(fleet, "large")


def hand_made(fleet: Fleet, name: str, replicas: int, cards: int, how: dict[str, str]) -> None:
    """Create a Job and its policy, as another client does."""
    limits = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": cards}
    container = {"name": "main", "image": "example/train:1", "command": ["train"], "resources": {"limits": limits}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    selector = {"apiVersion": "batch/v1", "kind": "Job", "name": name}
    policy = {
        "apiVersion": "policy.one.alibabacloud.com/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": name},
        "spec": {"resourceSelectors": [selector], "placement": {"replicaScheduling": how}},
    }
    fleet.host.admin.create(inside(POLICIES[0], "default"), policy)
    spec = {"parallelism": replicas, "completions": replicas, "suspend": True, "template": template}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
    fleet.host.admin.create(BATCH_JOBS, job)


def removed(fleet: Fleet, name: str) -> None:
    fleet.host.admin.delete(f"{BATCH_JOBS}/{name}", propagationPolicy="Background")
    fleet.host.admin.delete(f"{inside(POLICIES[0], 'default')}/{name}")
    for each in fleet.members.values():
        wait_until(f"a member still has {name}", lambda each=each: not _has_any(each.admin, name))


def _has_any(api: Api, name: str) -> bool:
    pods = api.get("/api/v1/namespaces/default/pods")["items"]
    return api.exists(f"{BATCH_JOBS}/{name}") or any(each["metadata"]["name"].startswith(f"{name}-") for each in pods)


@pytest.mark.req("FL-05", "FL-09", "KU-11")
async def test_a_job_divided_without_a_gang_has_a_share_on_each_member(fleet: Fleet, tmp_path: Path) -> None:
    how = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
    async with cockpit_of(fleet, tmp_path) as backend:
        hand_made(fleet, "sweep", 3, 8, how)
        row = await until(backend, "sweep", lambda row: row.clusters == ("cn-1", "cn-1", "cn-2"))
        placement = (await backend.job(row.id)).fleet
        assert placement is not None
        assert placement.policy is not None
        assert (placement.policy.division, placement.policy.gang) == ("Divided", False)
        assert [(each.cluster, each.replicas) for each in placement.bound] == [("cn-1", 2), ("cn-2", 1)]
        assert placement.event == "Binding has been scheduled successfully. Result: {cn-1:2, cn-2:1}"
        for name in fleet.members:
            wait_until(
                "a member has no share", lambda name=name: fleet.members[name].admin.exists(f"{BATCH_JOBS}/sweep")
            )
        rows = (await backend.fleet(job=row.id)).jobs
        assert [(each.cluster, each.replicas, each.division) for each in rows] == [
            ("cn-1", 2, "Divided"),
            ("cn-2", 1, "Divided"),
        ]
        # One part runs while the other does not: nothing makes them start together.
        fleet.members["cn-1"].admin.merge(f"{BATCH_JOBS}/sweep", {"spec": {"suspend": False}})
        pods = await pods_of(backend, row.id, 2)
        assert {each.cluster for each in pods} == {"cn-1"}
        removed(fleet, "sweep")


@pytest.mark.req("FL-05", "FL-09", "KU-11")
async def test_a_duplicated_job_is_whole_on_each_member(fleet: Fleet, tmp_path: Path) -> None:
    async with cockpit_of(fleet, tmp_path) as backend:
        hand_made(fleet, "agent", 1, 1, {"replicaSchedulingType": "Duplicated"})
        row = await until(backend, "agent", lambda row: row.clusters == ("cn-1", "cn-2"))
        for name, each in fleet.members.items():
            wait_until(f"{name} has no copy", lambda each=each: each.admin.exists(f"{BATCH_JOBS}/agent"))
            each.admin.merge(f"{BATCH_JOBS}/agent", {"spec": {"suspend": False}})
        pods = await pods_of(backend, row.id, 2)
        assert sorted(each.cluster for each in pods) == ["cn-1", "cn-2"]
        rows = (await backend.fleet(job=row.id)).jobs
        assert [(each.cluster, each.replicas, each.division) for each in rows] == [
            ("cn-1", 1, "Duplicated"),
            ("cn-2", 1, "Duplicated"),
        ]
        assert (await backend.job(row.id)).fleet.elsewhere == ()  # type: ignore[union-attr] - it is on a fleet
        removed(fleet, "agent")


async def pods_of(backend: KubernetesBackend, job: JobId, count: int) -> tuple[FleetPodRow, ...]:
    """Wait until the members have so many pods of a job."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(pods := (await backend.fleet(job=job, pods=True)).pods) != count:  # noqa: ASYNC110 - the members tell nothing of pods
            await asyncio.sleep(0.2)
    return pods


@pytest.mark.req("FL-08", "KU-11")
async def test_a_placement_that_fails_is_given_up_and_made_on_another_member(fleet: Fleet, tmp_path: Path) -> None:
    spec = training("moves", cards=1, failover=Failover(toleration_seconds=1))
    async with cockpit_of(fleet, tmp_path) as backend:
        (job,) = await backend.submit([spec])
        await until(backend, "moves", lambda row: row.state is JobState.RUNNING and row.clusters[0] == "cn-1")
        _fail(fleet, "cn-1", "moves")
        row = await until(backend, "moves", lambda row: row.state is JobState.RUNNING and row.clusters[0] == "cn-2")
        placement = (await backend.job(row.id)).fleet
        assert placement is not None
        assert [(each.cluster, each.reason) for each in placement.evictions] == [("cn-1", "ApplicationFailure")]
        assert [(each.cluster, each.obstacle) for each in placement.elsewhere] == [("cn-1", MemberObstacle.EVICTED)]
        await backend.cancel(job)
    await gone(fleet, "moves")


@pytest.mark.req("FL-08", "FL-07", "KU-11")
async def test_with_suspended_scheduling_a_failed_job_goes_back_to_its_queue(fleet: Fleet, tmp_path: Path) -> None:
    suspended = Suspension(scheduling=True)
    spec = training("again", cards=1, failover=Failover(toleration_seconds=1), suspension=suspended)
    async with cockpit_of(fleet, tmp_path) as backend:
        (job,) = await backend.submit([spec])
        policy = f"{inside(POLICIES[0], 'default')}/again"
        await until(backend, "again", lambda row: isinstance(row.reason, FleetWaits))
        binding = f"{inside(BINDINGS, 'default')}/again-pytorchjob"
        wait_until("there is no binding", lambda: fleet.host.admin.exists(binding))
        # What KubeQueue does: it dequeues the binding, and leaves the policy as it is.
        fleet.host.admin.merge(binding, {"spec": {"suspension": None}})
        await until(backend, "again", lambda row: row.state is JobState.RUNNING)
        _fail(fleet, "cn-1", "again")
        row = await until(backend, "again", lambda row: row.reason == FleetWaits(FleetStep.SUSPENDED, "again"))
        assert (row.state, row.clusters) == (JobState.QUEUED, ())
        assert fleet.host.admin.get(policy)["spec"]["suspension"] == {"scheduling": True}
        await backend.release(job)
        await until(backend, "again", lambda row: row.state is JobState.RUNNING)
        await backend.cancel(job)
    await gone(fleet, "again")


@pytest.mark.req("FL-09", "KU-11")
async def test_a_member_that_is_not_reachable_is_shown_so_and_gets_no_job(fleet: Fleet, tmp_path: Path) -> None:
    async with cockpit_of(fleet, tmp_path) as backend:
        (job,) = await backend.submit([training("stays", cards=1)])
        await until(backend, "stays", lambda row: row.state is JobState.RUNNING and row.clusters[0] == "cn-1")
        fleet.unreachable.add("cn-1")
        try:
            clusters = "/apis/cluster.karmada.io/v1alpha1/clusters/cn-1"
            wait_until("the host has not noticed", lambda: _ready(fleet.host.admin.get(clusters)) == "False")
            (second,) = await backend.submit([training("next", cards=1)])
            row = await until(backend, "next", lambda row: row.state is JobState.RUNNING)
            assert row.clusters[0] == "cn-2"
            rows = {row.name: row for row in (await backend.fleet()).jobs}
            assert rows["stays"].silence == "cluster is not reachable"
            assert (rows["stays"].state, rows["stays"].heard_at) == ("Running", None)
            assert (rows["next"].state, rows["next"].silence) == ("Running", "")
        finally:
            fleet.unreachable.clear()
        for each in (job, second):
            await backend.cancel(each)
    for name in ("stays", "next"):
        await gone(fleet, name)


def _ready(member: dict[str, object]) -> str:
    return str(member["status"]["conditions"][0]["status"])  # type: ignore[index] - decoded JSON


def _fail(fleet: Fleet, member: str, job: str) -> None:
    """Have the job fail on a member: its master ends with an exit code, which the operator makes the job's end."""
    api = fleet.members[member].admin
    pod = f"/api/v1/namespaces/default/pods/{job}-master-0"
    ended = {"exitCode": 1, "reason": "Error", "startedAt": None, "finishedAt": None}
    name = api.get(pod)["spec"]["containers"][0]["name"]
    state = {"terminated": {key: value for key, value in ended.items() if value is not None}}
    api.merge(f"{pod}/status", {"status": {"phase": "Failed", "containerStatuses": [{"name": name, "state": state}]}})


@pytest.mark.req("KU-11", "FL-07")
def test_each_dialect_of_policies_takes_its_own_form_alone(fleet: Fleet) -> None:
    fleet.host.admin.apply(KARMADA_POLICY)
    spec = training("train", suspension=Suspension(scheduling=True))
    job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "train"}}
    own, of_ack = submission_policy(spec, job, karmada=True), submission_policy(spec, job)
    trial = "{}?dryRun=All&fieldValidation=Strict"
    of_karmada = trial.format(inside(POLICIES[1], "default"))
    fleet.host.admin.create(of_karmada, own)
    fleet.host.admin.create(trial.format(inside(POLICIES[0], "default")), of_ack)
    with pytest.raises(ApiError) as refused:
        fleet.host.admin.create(of_karmada, {**of_ack, "apiVersion": own["apiVersion"]})
    assert all(each in str(refused.value) for each in ("customSchedulingType", "suspension.scheduling"))


PAGE = (Path(__file__).parents[3] / "docs/fleet.md").read_text()


def page_commands() -> list[tuple[list[str], list[str]]]:
    """Return the commands of docs/fleet.md in their order, each with the lines that the page shows."""
    found: list[tuple[list[str], list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((shlex.split(line.removeprefix("$ ")), []))
            else:
                found[-1][1].append(" ".join(line.split()))
    return found


class PageCommand:
    """A command of the page. `lines`: what the page shows of its output."""

    def __init__(self, arguments: list[str], lines: list[str], folder: Path, env: dict[str, str]) -> None:
        self._arguments, self._lines, self._folder, self._env = arguments, lines, folder, env
        self._last = ""

    def words(self) -> str:
        return f"{self._arguments} printed\n{self._last}"

    def prints(self) -> bool:
        """Run it; return whether it prints these lines, and maybe others."""
        program = Path(sys.executable).with_name("cockpit")
        run = subprocess.run(
            [program, *self._arguments], cwd=self._folder, env=self._env, capture_output=True, text=True, check=False
        )
        self._last = run.stdout + run.stderr
        # Columns are as wide as their longest value.
        printed = {" ".join(line.split()) for line in run.stdout.splitlines()}
        return run.returncode == 0 and {*self._lines} <= printed


@pytest.mark.req("FL-09", "KU-11", "FL-01")
def test_every_command_of_the_page_prints_what_the_page_shows(fleet: Fleet, tmp_path: Path) -> None:
    for name, text in re.findall(r"^```yaml\n# (\S+\.yaml)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(text)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "KUBECONFIG": str(fleet.kubeconfig(tmp_path))}
    commands = page_commands()
    assert len(commands) > 8
    for (_, *arguments), lines in commands:
        command = PageCommand(arguments, lines, tmp_path, env)
        # The members need a moment; only what changes nothing is asked again.
        wait_until(command.words, command.prints, seconds=PATIENCE_SECONDS if lines else 0.0)
    policy = inside(POLICIES[0], "default")
    wait_until("the policy is left", lambda: not fleet.host.admin.exists(f"{policy}/pytorch-test"))
