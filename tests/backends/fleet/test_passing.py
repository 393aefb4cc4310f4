"""Which questions a fleet passes on to the cluster of a job, and with which arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cockpit.backends.fleet.backend import FleetBackend
from cockpit.backends.fleet.id_translation import Words, in_fleet
from cockpit.backends.fleet.member import Opened
from cockpit.backends.slurm.backend import CAPABILITIES, SlurmBackend
from cockpit.backends.slurm.opening import open_recorded
from cockpit.clusters.choosing import CLUSTERS
from cockpit.clusters.several import Watching, every_cluster
from cockpit.errors import CockpitError, RequestRefused, StoreError, Unreachable
from cockpit.model.asking import LogChunk, LogRequest, ShellRequest
from cockpit.model.capabilities import Capabilities
from cockpit.model.ids import JobId, Millis, NodeName, member_id
from cockpit.model.node import Allocation
from cockpit.model.requests import RequestIds
from cockpit.model.view import ClusterRow, ClusterState
from tests.doubles.samples import job

pytestmark = pytest.mark.req("UI-10")
NOW = Millis(1_795_300_000_000)


class Noting(SlurmBackend):
    """A recorded cluster that notes what it is asked. `request_ids`: the ids that it was given."""

    asked: list[tuple[str, Any]]
    request_ids: RequestIds | None

    @property
    def capabilities(self) -> Capabilities:
        # Unlike a recording it is asked for changes, too.
        return CAPABILITIES

    async def wait(self, job: JobId, *, timeout_seconds: float | None = None) -> Any:
        self.asked.append(("wait", (job, timeout_seconds)))
        return (await super().job(job)).job

    async def logs(self, request: LogRequest) -> LogChunk:
        self.asked.append(("logs", request))
        return LogChunk(b"its log", 0, ended=True)

    async def open_shell(self, request: ShellRequest) -> Any:
        self.asked.append(("open_shell", request))
        return "a shell"

    async def events(
        self, *, job: JobId | None = None, after: int = -1, limit: int = 1000, rank: int | None = None
    ) -> list[Any]:
        self.asked.append(("events", (job, after, limit, rank)))
        return []

    async def accounting(self, **given: Any) -> list[Any]:
        self.asked.append(("accounting", given))
        return await super().accounting(**given)

    async def jobs(self, *, ended: bool = False) -> Any:
        self.asked.append(("jobs", ended))
        return await super().jobs(ended=ended)

    async def job(self, job: JobId, *, task: int | None = None) -> Any:
        self.asked.append(("job", (job, task)))
        return await super().job(job)

    async def explain(self, job: JobId, *, task: int | None = None) -> Any:
        self.asked.append(("explain", (job, task)))
        return await super().explain(job)

    def identify(self, ids: RequestIds) -> None:
        self.request_ids = ids

    async def read(self, op: str, args: Any, answer: Any) -> Any:
        self.asked.append((f"read {op}", args))
        return await super().read(op, args, answer)

    async def act(self, op: str, args: Any, answer: Any) -> Any:
        self.asked.append((op, args))
        return answer() if answer is not type(None) else None


async def noting() -> Noting:
    backend, _ = await open_recorded("24.11")
    backend.__class__ = Noting
    assert isinstance(backend, Noting)
    backend.asked, backend.request_ids = [], None
    return backend


def fleet_of(*backends: SlurmBackend) -> FleetBackend:
    def opening(backend: SlurmBackend) -> Any:
        async def opened() -> Opened:
            return Opened(backend, lambda: NOW, backend.close)

        return opened

    return FleetBackend("all", [(f"c{n}", "", opening(each)) for n, each in enumerate(backends, 1)], lambda: NOW)


async def test_a_question_about_a_job_is_asked_with_its_own_id_and_all_other_arguments() -> None:
    first, second = await noting(), await noting()
    fleet = fleet_of(first, second)
    here = member_id(2, 9)
    waited = await fleet.wait(here, timeout_seconds=7)
    assert waited is not None
    assert waited.id == here
    assert await fleet.logs(LogRequest(job=here, rank=3, wait=True)) == LogChunk(b"its log", 0, ended=True)
    assert await fleet.open_shell(ShellRequest(job=here, command=("ls",), terminal=True)) == "a shell"
    assert await fleet.events(job=here, after=5, limit=6, rank=2) == []
    assert (await fleet.job(here, task=4)).row.id == here
    assert (await fleet.explain(here, task=4)).job == here
    own = JobId(9)
    assert [each for each in second.asked if not each[0].startswith("read")] == [
        ("wait", (own, 7)),
        ("logs", LogRequest(job=own, rank=3, wait=True)),
        ("open_shell", ShellRequest(job=own, command=("ls",), terminal=True)),
        ("events", (own, 5, 6, 2)),
        ("job", (own, 4)),
        ("explain", (own, 4)),
    ]
    assert first.asked == []
    second.asked.clear()
    await fleet.events(job=here)
    await fleet.wait(here)
    assert second.asked[:2] == [("events", (own, -1, 1000, None)), ("wait", (own, None))]
    await fleet.close()


async def test_a_list_is_asked_of_every_cluster_with_the_same_arguments() -> None:
    backends = await noting(), await noting()
    fleet = fleet_of(*backends)
    await fleet.jobs(ended=True)
    await fleet.jobs()
    await fleet.accounting(since=Millis(1), until=NOW, user="alice")
    for backend in backends:
        assert [each for each in backend.asked if not each[0].startswith("read")] == [
            ("jobs", True),
            ("jobs", False),
            ("accounting", {"since": 1, "until": NOW, "user": "alice"}),
        ]
    await fleet.close()


async def test_a_question_that_any_cluster_answers_goes_to_that_of_the_job() -> None:
    """The steps of a job are read; no operation of a job is only awaited today, but the way is there."""
    backend = await noting()
    fleet = fleet_of(await noting(), backend)
    for ask in (fleet.read, fleet.await_answer):
        with pytest.raises(RequestRefused, match="A Slurm cluster has no x"):
            await ask("x", LogRequest(job=member_id(2, 9)), list)
    assert backend.asked == [("read x", LogRequest(job=9))] * 2
    await fleet.close()


async def test_an_act_with_a_request_id_is_refused_where_none_is_remembered() -> None:
    backend = await noting()
    fleet = fleet_of(backend)
    fleet.identify(RequestIds("mine"))
    with pytest.raises(RequestRefused, match="remembers no request ids"):
        await fleet.cancel(member_id(1, 9))
    assert (backend.asked, backend.request_ids) == ([], None)
    ids = RequestIds("mine", required=False)
    fleet.identify(ids)
    await fleet.cancel(member_id(1, 9))
    assert [op for op, _ in backend.asked] == ["cancel"]
    assert backend.request_ids is ids
    await fleet.close()


@pytest.mark.parametrize("name", ["n1", "c9:n1", ":n1", "c1"])
async def test_a_node_that_names_no_cluster_is_refused(name: str) -> None:
    backend = await noting()
    fleet = fleet_of(backend)
    with pytest.raises(RequestRefused, match="each cluster's own"):
        await fleet.drain_node(name, "disk")
    for job_id in (JobId(9), member_id(2, 9)):
        with pytest.raises(RequestRefused, match="Name the cluster, too, such as lab:9"):
            await fleet.cancel(job_id)
    assert backend.asked == []
    await fleet.close()


async def test_the_answer_of_a_jobs_cluster_is_the_fleets() -> None:
    backend = await noting()
    fleet = fleet_of(await noting(), backend)
    here = LogRequest(job=member_id(2, 9))

    async def answering(_op: str, args: Any, _answer: Any) -> Any:
        return {"job": args.job, "seconds": 5}

    for how in ("read", "await_answer", "act"):
        setattr(backend, how, answering)
        assert await getattr(fleet, how)("x", here, dict) == {"job": 9, "seconds": 5}, "plain values stay"
    await fleet.close()


async def test_what_only_one_cluster_has_is_refused_for_all() -> None:
    fleet = fleet_of(await noting(), await noting())
    for ask in (fleet.priorities, fleet.snapshot):
        with pytest.raises(RequestRefused):
            await ask()
    with pytest.raises(RequestRefused, match="each cluster's own"):
        await fleet.read_pieces("priorities", LogRequest(job=member_id(2, 9)))
    await fleet.close()


@pytest.mark.parametrize(
    ("failures", "kind"),
    [
        ((StoreError("Its disk is full."), StoreError("Its disk is full.")), StoreError),
        ((Unreachable("No route."), Unreachable("No route.")), Unreachable),
        ((StoreError("Its disk is full."), Unreachable("No route.")), Unreachable),
    ],
)
async def test_only_clusters_that_all_cannot_read_their_stores_fail_as_a_store(
    failures: tuple[CockpitError, ...], kind: type[CockpitError]
) -> None:
    """A script tries again where a cluster does not answer, and not where a store is damaged."""

    def failing(failure: CockpitError) -> Any:
        async def opened() -> Opened:
            raise failure

        return opened

    fleet = FleetBackend("all", [(f"c{n}", "", failing(each)) for n, each in enumerate(failures, 1)], lambda: NOW)
    with pytest.raises(CockpitError) as raised:
        await fleet.jobs()
    assert type(raised.value) is kind
    assert str(raised.value) == " ".join(f"c{n} does not answer: {each}" for n, each in enumerate(failures, 1))
    await fleet.close()


async def test_a_fleet_forgets_those_that_no_longer_watch() -> None:
    fleet = fleet_of()
    watching = fleet.watch_jobs()
    await anext(watching)
    assert len(fleet._listeners) == 1
    await watching.aclose()
    assert fleet._listeners == set()
    await fleet.close()


async def test_a_cluster_that_fails_to_close_keeps_no_other_open() -> None:
    closed = []

    async def fails() -> None:
        raise Unreachable("gone")

    async def closes() -> None:
        closed.append("second")

    fleet = fleet_of(await noting(), await noting())
    for member, close in zip(fleet.members, (fails, closes), strict=True):
        await member.backend()
        member._open_cluster = member._open_cluster._replace(close=close)
    await fleet.close()
    assert closed == ["second"]


def test_ids_times_and_nodes_are_translated_wherever_they_are() -> None:
    words = Words(2, "lab", 500)
    there = job(7, held_until=None)
    here, *rest = in_fleet([there, None, "text", 7], words)
    assert rest == [None, "text", 7]
    assert (here.id, here.submitted_at, here.held_until) == (member_id(2, 7), there.submitted_at + 500, None)
    assert [place.node for place in here.attempt.placement] == ["lab:n03"]
    assert [replica.started_at for replica in here.attempt.replicas] == [there.attempt.replicas[0].started_at + 500]
    allocation = Allocation(0, NodeName("n1"), 4, 1024, ())
    assert in_fleet({"a": (allocation,)}, words)["a"][0].node == "lab:n1"
    assert in_fleet(Allocation(0, NodeName(""), 4, 1024, ()), words).node == ""
    row = ClusterRow(name="x", way="y", state=ClusterState.LIVE, heard_at=Millis(1_000))
    assert in_fleet(row, words).heard_at == 1_500
    assert in_fleet(row, Words(2, "lab")) is row
    nothing = ClusterRow(name="x", way="y", state=ClusterState.LIVE)
    assert in_fleet(nothing, words) is nothing


class Rows:
    """What the view of clusters asks."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def begin(self) -> None:
        self.calls.append("begin")

    async def clusters(self) -> list[ClusterRow]:
        self.calls.append("clusters")
        heard = [Millis(1_000), None]
        return [ClusterRow(name="x", way="y", state=ClusterState.LIVE, heard_at=at) for at in heard]

    async def close(self) -> None:
        self.calls.append("close")


@pytest.mark.parametrize(("ahead", "heard"), [(0, [1_000, None]), (60_000, [61_000, None])])
async def test_the_view_of_clusters_opens_them_once_and_shows_the_open_clusters_time(ahead: int, heard: list) -> None:
    made: list[Rows] = []

    def make() -> Any:
        made.append(Rows())
        return made[-1]

    watching = Watching(make, lambda: ahead)
    await watching.close()
    assert made == []
    for _ in range(2):
        assert [row.heard_at for row in await watching.clusters()] == heard
    await watching.close()
    assert [each.calls for each in made] == [["begin", "clusters", "clusters", "close"]]
    assert not watching.is_complete


async def test_a_cluster_that_is_open_already_is_not_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from cockpit.clusters import several

    monkeypatch.setattr(several, "_addresses", lambda may_be_empty=False: iter([("lab", "ssh://lab")]))
    opened: list[str] = []

    async def open_member(name: str) -> Opened:
        opened.append(name)
        raise Unreachable(name)

    async def already() -> Opened:
        opened.append("already")
        raise Unreachable("already")

    fleet = every_cluster(open_member, {"demo": already})
    assert [(member.name, member.way) for member in fleet.members] == [("demo", CLUSTERS["demo"]), ("lab", "ssh://lab")]
    assert (await fleet.clusters())[0].state is ClusterState.SILENT
    assert sorted(opened) == ["already", "lab"]
    assert (await fleet_overview_name(fleet)) == "all · 2 clusters"
    await fleet.close()


async def fleet_overview_name(fleet: FleetBackend) -> str:
    return (await fleet.overview()).cluster


def test_clusters_of_the_configuration_come_first_and_none_is_listed_twice(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from types import SimpleNamespace

    from cockpit.clusters import several
    from cockpit.config.cluster_names import OWN, SLURM, SYSTEM

    named = {"lab": SimpleNamespace(address="ssh://lab"), "here": SimpleNamespace(address=SLURM)}
    monkeypatch.setattr(several, "members", lambda: named)
    monkeypatch.setattr(several, "slurm_if_configured", lambda: SLURM)
    monkeypatch.setattr(several, "system_runs", lambda: True)
    monkeypatch.setattr(several, "_own_runs", lambda: False)
    assert [name for name, _ in several._addresses()] == ["lab", "here", SYSTEM]
    monkeypatch.setattr(several, "_own_runs", lambda: True)
    named.clear()
    assert [name for name, _ in several._addresses()] == [SLURM, SYSTEM, OWN]
