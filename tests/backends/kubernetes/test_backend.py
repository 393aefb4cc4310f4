"""The backend over the tests' own API server: lists, changes, logs, and a server that goes away."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cockpit.backends.base import Connection as ConnectionState
from cockpit.backends.base import JobsDelta, Phase
from cockpit.backends.kubernetes import logs, session
from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.backends.kubernetes.wire import reflector
from cockpit.backends.kubernetes.wire.api import Api
from cockpit.backends.kubernetes.wire.connection import Connection
from cockpit.errors import MayBeAccepted, RequestRefused, Unreachable
from cockpit.model.asking import LogRequest, LogSearch, LogStream, WantedLimit
from cockpit.model.attempt import EndCause
from cockpit.model.events import JobPlaced
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import JobState
from cockpit.model.pod_reasons import PodsNotCreated, PodsStarting
from cockpit.model.reasons import Held
from cockpit.model.refusal import RefusalKind
from cockpit.model.spec import Access, Mode, NodeSpec
from cockpit.runtime.clock import SystemClock
from tests.backends.kubernetes.conftest import write_kubeconfig
from tests.backends.kubernetes.objects import GPU, a_condition, a_template, merged
from tests.builders import a_spec
from tests.doubles.kubernetes_api import FakeApi, Reply

JOBS = "/apis/kubeflow.org/v1/namespaces/team-a/pytorchjobs"
PODS = "/api/v1/namespaces/team-a/pods"
LONGEST = 20.0


def a_job(name: str = "train", **changes: Any) -> dict[str, Any]:
    spec = {"pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": a_template()}}, "runPolicy": {}}
    return merged(
        {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name}, "spec": spec}, changes
    )


def a_pod(owner: dict[str, Any] | None = None, name: str = "train-master-0", **changes: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name}
    if owner is not None:
        reference = {"uid": owner["metadata"]["uid"], "kind": owner["kind"], "name": "x", "controller": True}
        metadata["ownerReferences"] = [reference]
    return merged({"kind": "Pod", "metadata": metadata, **a_template(), "status": {"phase": "Pending"}}, changes)


def a_node(name: str) -> dict[str, Any]:
    status = {
        "allocatable": {"cpu": "96", "memory": "1000Gi", GPU: "8"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return {"kind": "Node", "metadata": {"name": name, "labels": {"nvidia.com/gpu.product": "H100"}}, "status": status}


@pytest.fixture
def backend(backend: KubernetesBackend, monkeypatch: pytest.MonkeyPatch) -> KubernetesBackend:
    monkeypatch.setattr(session, "CHECK_SECONDS", 0.01)
    monkeypatch.setattr(session, "RECHECK_SECONDS", 0.01)
    monkeypatch.setattr(reflector, "FIRST_PAUSE_SECONDS", 0.0)
    return backend


async def the_job(backend: KubernetesBackend) -> JobId:
    (row,) = await backend.jobs(ended=True)
    return row.id


@pytest.mark.req("KU-02", "KU-03")
async def test_jobs_and_nodes_are_listed_with_what_they_hold(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create("/api/v1/nodes", a_node("n1"))
    job = server.create(JOBS, a_job())
    running = {"phase": "Running", "containerStatuses": [{"state": {"running": {"startedAt": "2026-03-01T09:00:00Z"}}}]}
    server.create(PODS, a_pod(job, spec={"nodeName": "n1"}, status=running))
    (row,) = await backend.jobs()
    assert (row.name, row.state, row.placed_on, row.card_milli) == ("train", JobState.RUNNING, ("n1",), 8000)
    assert (row.card_models, row.project) == (("H100",), "team-a")
    (node,) = await backend.nodes()
    assert (node.node.name, node.used_cpus, node.used_cards, node.jobs) == (NodeName("n1"), 8, 8, (row.id,))
    shown = await backend.overview()
    assert (shown.nodes, shown.card_milli, shown.used_card_milli) == (1, 8000, 8000)
    assert (backend.user, (await backend.status()).version.partition(",")[0]) == ("alice", "Kubernetes v1.36.3")


@pytest.mark.req("KU-02")
async def test_a_watch_yields_the_list_and_then_each_change(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(JOBS, a_job())
    async with aclosing(backend.watch_jobs()) as watch, asyncio.timeout(LONGEST):
        first = await anext(watch)
        assert [row.reason for row in first.changed] == [PodsNotCreated("PyTorchJob")]
        server.change(f"{JOBS}/train", {"spec": {"runPolicy": {"suspend": True}}})
        held = await anext(watch)
        assert [row.reason for row in held.changed] == [Held("its suspend field", None)]
        # A job that ends stays listed for those who have seen it run.
        server.change(f"{JOBS}/train", {"status": {"conditions": [a_condition("Succeeded")]}})
        ended = await anext(watch)
        assert [row.state for row in ended.changed] == [JobState.SUCCEEDED]
        # Kubernetes forgets it; those who have seen it remember it, until they delete it.
        server.remove(f"{JOBS}/train")
        gone = await anext(watch)
        assert [(row.id, row.state) for row in gone.changed] == [(first.changed[0].id, JobState.SUCCEEDED)]
        await backend.delete(first.changed[0].id)
        assert await anext(watch) == JobsDelta((), (first.changed[0].id,), 5)


@pytest.mark.req("KU-07", "KU-12")
async def test_a_job_that_was_made_anew_under_its_name_is_not_changed(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    """By those who have not seen the new one yet."""
    server.create(JOBS, a_job())
    (row,) = await backend.jobs()
    server.stall()
    server.remove(f"{JOBS}/train")
    new = server.create(JOBS, a_job())
    for change in (backend.hold(row.id), backend.set_time_limit(row.id, WantedLimit(60))):
        with pytest.raises(RequestRefused, match="PyTorchJob team-a/train was deleted and made anew") as refused:
            await change
        assert refused.value.refusal.kind is RefusalKind.CONFLICT
    assert server.object(f"{JOBS}/train") == new


@pytest.mark.req("KU-02")
async def test_a_job_that_starts_while_it_is_watched_is_yielded(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(PODS, a_pod(None, "alone"))
    async with aclosing(backend.watch_jobs()) as watch, asyncio.timeout(LONGEST):
        assert [row.state for row in (await anext(watch)).changed] == [JobState.QUEUED]
        running = {"startedAt": "2026-03-01T09:00:00Z"}
        status = {"phase": "Running", "containerStatuses": [{"state": {"running": running}}]}
        server.change(f"{PODS}/alone", {"spec": {"nodeName": "n1"}, "status": status})
        assert [row.state for row in (await anext(watch)).changed] == [JobState.RUNNING]


@pytest.mark.req("TR-04")
async def test_a_server_that_goes_away_makes_the_list_stale_and_its_return_ends_that(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(JOBS, a_job())
    assert [row.name for row in await backend.jobs()] == ["train"]
    server.answer_next("GET /apis ", Reply.failure(500, "InternalError", "etcdserver: no leader"))
    phases: list[Phase] = []
    async with aclosing(backend.connections()) as states, asyncio.timeout(LONGEST):
        async for state in states:
            phases.append(state.phase)
            good_at = backend._session.good_at
            if state.phase is Phase.STALE:
                assert "no leader" in state.reason
                assert state.good_at == good_at, "the age of the list is that of the last answer"
                assert [row.name for row in await backend.jobs()] == ["train"]
            elif Phase.STALE in phases:
                break
    assert phases == [Phase.CONNECTED, Phase.STALE, Phase.CONNECTED]


async def until_state(backend: KubernetesBackend, phase: Phase, reason: str = "") -> ConnectionState:
    """Wait for a state of the connection, and return it."""
    async with aclosing(backend.connections()) as states, asyncio.timeout(LONGEST):
        async for state in states:
            if state.phase is phase and reason in state.reason:
                return state
    raise AssertionError("states never end")


def refuse_checks(server: FakeApi, reply: Reply, times: int = 1000) -> None:
    for _ in range(times):
        server.answer_next("GET /apis ", reply)


@pytest.mark.req("TR-04")
async def test_whoever_reads_a_silent_server_does_not_make_it_answer(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(JOBS, a_job())
    await backend.jobs()
    refuse_checks(server, Reply.failure(500, "InternalError", "etcdserver: no leader"))
    stale = await until_state(backend, Phase.STALE, "no leader")
    assert [row.name for row in await backend.jobs()] == ["train"]
    assert backend.connection == stale, "the list is as old as it was, and for the same cause"


@pytest.mark.req("TR-04")
async def test_another_cause_of_the_silence_is_told(backend: KubernetesBackend, server: FakeApi) -> None:
    await backend.jobs()
    refuse_checks(server, Reply.failure(500, "InternalError", "etcdserver: no leader"), 1)
    refuse_checks(server, Reply.failure(401, "Unauthorized", "Unauthorized"))
    stale = await until_state(backend, Phase.STALE, "Log in again")
    assert stale.good_at is not None
    server.replies.clear()
    await until_state(backend, Phase.CONNECTED)


@pytest.mark.req("TR-04")
async def test_a_watch_that_cannot_go_on_makes_the_list_stale_at_once(
    backend: KubernetesBackend, server: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "CHECK_SECONDS", 1000.0)
    await backend.jobs()
    for _ in range(50):
        server.answer_next("GET /api/v1/pods?watch", Reply.failure(500, "InternalError", "etcdserver: no leader"))
    server.cut_watches()
    await until_state(backend, Phase.STALE, "no leader")
    server.replies.clear()
    await until_state(backend, Phase.CONNECTED)


@pytest.mark.req("KU-01", "TR-04")
async def test_a_server_that_never_answered_is_unreachable(tmp_path: Path) -> None:
    file = write_kubeconfig(tmp_path, "http://127.0.0.1:9")

    def connect() -> Api:
        return Api(Connection("fake", (str(file),), lambda: Millis(0)))

    backend = KubernetesBackend("fake", connect, "default", SystemClock(), Random(1), "")
    with pytest.raises(Unreachable, match="context 'fake' does not answer"):
        await backend.jobs()
    await backend.close()


@pytest.mark.req("KU-07", "KU-12")
async def test_a_job_is_suspended_and_resumed_and_keeps_what_others_wrote(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(JOBS, a_job(metadata={"annotations": {"theirs": "stays"}}))
    job = await the_job(backend)
    await backend.hold(job)
    assert await _shown(backend, job, JobState.QUEUED, Held)
    assert server.object(f"{JOBS}/train")["spec"]["runPolicy"] == {"suspend": True}
    with pytest.raises(RequestRefused, match=r"\(team-a/train\) is suspended already"):
        await backend.hold(job)
    await backend.release(job)
    assert await _shown(backend, job, JobState.QUEUED, PodsNotCreated)
    assert server.object(f"{JOBS}/train")["metadata"]["annotations"] == {"theirs": "stays"}
    with pytest.raises(RequestRefused, match="is queued and not suspended"):
        await backend.resume(job)


@pytest.mark.req("KU-07")
async def test_the_time_limit_is_changed_on_the_job(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(JOBS, a_job(spec={"runPolicy": {"activeDeadlineSeconds": 600}}))
    job = await the_job(backend)
    await backend.set_time_limit(job, WantedLimit(300, beside=True))
    assert server.object(f"{JOBS}/train")["spec"]["runPolicy"] == {"activeDeadlineSeconds": 900}
    with pytest.raises(RequestRefused, match="A time limit of -300 s is none"):
        await backend.set_time_limit(job, WantedLimit(-1200, beside=True))


@pytest.mark.req("KU-07", "KU-08")
async def test_a_wrapper_keeps_the_time_limit_of_its_start(backend: KubernetesBackend, server: FakeApi) -> None:
    held = {"annotations": {"cockpit/hold-seconds": "300"}}
    job = server.create(JOBS, a_job(metadata=held, spec={"runPolicy": {"activeDeadlineSeconds": 1000}}))
    number = await the_job(backend)
    await backend.set_time_limit(number, WantedLimit(100))
    assert server.object(f"{JOBS}/train")["spec"]["runPolicy"] == {"activeDeadlineSeconds": 520}
    server.create(PODS, a_pod(job, spec={"nodeName": "n1"}))
    assert await _shown(backend, number, JobState.STARTING, PodsStarting)
    with pytest.raises(RequestRefused, match="its wrapper keeps the time limit of its start"):
        await backend.set_time_limit(number, WantedLimit(200))


@pytest.mark.req("KU-07")
async def test_a_change_whose_answer_is_lost_may_have_been_made(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(JOBS, a_job())
    job = await the_job(backend)
    server.answer_next("PATCH", Reply(body=b"{}", cut=0))
    with pytest.raises(MayBeAccepted, match=r"may have been accepted. `cockpit jobs`"):
        await backend.hold(job)


@pytest.mark.req("KU-07")
async def test_a_live_job_is_cancelled_and_an_ended_one_deleted(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(JOBS, a_job())
    job = await the_job(backend)
    with pytest.raises(RequestRefused, match=r"\(team-a/train\) is queued; cancel it first"):
        await backend.delete(job)
    await backend.cancel(job, grace_seconds=5)
    ended = await backend.wait(job, timeout_seconds=LONGEST)
    assert ended is not None
    assert (ended.state, ended.end_cause) == (JobState.STOPPED, EndCause.STOP)
    with pytest.raises(RequestRefused, match=r"\(team-a/train\) is gone: its object was deleted") as refused:
        await backend.cancel(job)
    assert refused.value.refusal.kind is RefusalKind.CONFLICT
    assert [row.state for row in await backend.jobs(ended=True)] == [JobState.STOPPED]
    await backend.delete(job)
    assert await backend.jobs(ended=True) == []


@pytest.mark.req("KU-03", "KU-07")
async def test_jobs_are_tried_before_they_are_created_and_all_or_none_are(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    spec = a_spec(name="new", image="img:1", mode=Mode.PYTORCH, nodes=2, specs=(NodeSpec(card_milli=8000),))
    (job,) = await backend.submit([spec])
    posted = [each for each in server.requests if each.startswith(f"POST {JOBS}")]
    assert posted == [f"POST {JOBS}?fieldValidation=Strict&dryRun=All", f"POST {JOBS}?fieldValidation=Strict"]
    made = server.object(f"{JOBS}/new")
    assert made["metadata"]["annotations"] == {"cockpit/submitted-by": "alice"}
    assert made["apiVersion"] == "kubeflow.org/v1"
    assert await _shown(backend, job, JobState.QUEUED, PodsNotCreated)
    # The second is refused when it is created, although the server had nothing against it before.
    other = a_spec(name="other", image="img:1")
    server.answer_next(
        "POST /apis/batch/v1/namespaces/team-a/jobs?fieldValidation=Strict&dry", Reply(body=b'{"metadata": {}}')
    )
    server.answer_next("POST /apis/batch/v1", Reply.failure(403, "Forbidden", "exceeded quota"))
    with pytest.raises(RequestRefused, match="The cluster refuses this: exceeded quota"):
        await backend.submit([a_spec(name="third", image="img:1", mode=Mode.PYTORCH, nodes=2), other])
    assert server.find(f"{JOBS}/third") is None


@pytest.mark.req("KU-03")
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "Big_Job"}, "name: 'Big_Job' is no name on Kubernetes"),
        ({"image": "host"}, "image: a pod needs an image"),
        ({"nodes": 2, "mode": Mode.SLURM}, "mode: a job of several nodes needs a mode"),
        ({"mode": Mode.TENSORFLOW}, "mode: this cluster does not serve tfjobs.kubeflow.org"),
    ],
)
async def test_a_job_that_the_cluster_cannot_run_is_refused_by_field(
    backend: KubernetesBackend, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(RequestRefused, match=words):
        await backend.submit([a_spec(**{"name": "new", "image": "img:1", **changes})])


@pytest.mark.req("KU-07")
async def test_a_log_is_read_by_offsets_and_both_streams_are_one(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(PODS, a_pod(None, "alone", spec={"nodeName": "n1"}, status={"phase": "Failed"}))
    job = await the_job(backend)
    server.answer_next(f"GET {PODS}/alone/log", Reply(body=b"one\ntwo\nthree\n"))

    async def read(offset: int, limit: int = 100, stream: LogStream = LogStream.STDOUT) -> tuple[bytes, int, bool]:
        chunk = await backend.logs(LogRequest(job=job, offset=offset, limit=limit, stream=stream, wait=True))
        return chunk.data, chunk.offset, chunk.ended

    assert await read(-6) == (b"three\n", 8, True)
    assert await read(4, 4) == (b"two\n", 4, False)
    assert await read(8) == (b"three\n", 8, True)
    assert await read(0, stream=LogStream.STDERR) == (b"", 0, True)
    assert [each for each in server.requests if "/log" in each] == [f"GET {PODS}/alone/log?container=main&follow=true"]


@pytest.mark.req("KU-07")
async def test_the_copy_of_a_long_log_is_bounded_and_says_what_it_left_out(
    backend: KubernetesBackend, server: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "LEAST_BYTES", 1000)
    monkeypatch.setattr(logs, "MOST_BYTES", 1000)
    monkeypatch.setattr(logs, "COPY_BYTES", 100)
    whole = b"".join(b"line %03d\n" % number for number in range(300))
    server.create(PODS, a_pod(None, "alone", spec={"nodeName": "n1"}, status={"phase": "Failed"}))
    job = await the_job(backend)
    server.answer_next(f"GET {PODS}/alone/log", Reply(body=whole))
    last = await backend.logs(LogRequest(job=job, offset=-9, limit=100, wait=True))
    assert (last.data, last.offset, last.ended) == (b"line 299\n", len(whole) - 9, True)
    (copy,) = backend._replicas._logs._copies.values()
    assert copy.first >= len(whole) - 1000
    chunk = await backend.logs(LogRequest(job=job, offset=0, limit=10_000, wait=True))
    said, _, rest = chunk.data.partition(b"\n")
    assert b"left out" in said
    assert whole.endswith(rest)
    assert rest.startswith(b"line ")
    assert (chunk.offset + len(chunk.data), chunk.offset - chunk.left_out) == (len(whole), 0)
    matches = await backend.search_log(LogSearch(job=job, text="LINE 2", most=200))
    assert (matches.begin, matches.end, matches.size) == (copy.first, len(whole), len(whole))
    assert all(whole[at : at + length] == b"line 2" for at, length in matches.found)
    assert len(matches.found) == rest.count(b"line 2")
    elsewhere = LogSearch(job=job, text="line", stream=LogStream.STDERR)
    assert (await backend.search_log(elsewhere)).size == 0, "Kubernetes stores both streams as one"


@pytest.mark.req("KU-07")
async def test_a_node_is_cordoned_with_the_reason(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create("/api/v1/nodes", a_node("n1"))
    with pytest.raises(RequestRefused, match="drains no node by a deadline"):
        await backend.drain_node("n1", "fan broken", within_seconds=60)
    await backend.drain_node("n1", "fan broken")
    node = server.object("/api/v1/nodes/n1")
    assert node["spec"] == {"unschedulable": True}
    assert node["metadata"]["annotations"] == {"cockpit/drained-because": "fan broken"}
    await backend.resume_node("n1")
    node = server.object("/api/v1/nodes/n1")
    assert (node["spec"], node["metadata"]["annotations"]) == ({"unschedulable": False}, {})


async def _shown(backend: KubernetesBackend, job: JobId, state: JobState, reason: type) -> bool:
    """Wait until a watcher sees the job in this state."""
    async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs()) as watch:
        async for delta in watch:
            if any(row.id == job and row.state is state and isinstance(row.reason, reason) for row in delta.changed):
                return True
    return False


@pytest.mark.req("KU-02")
async def test_a_job_that_starts_while_it_is_watched_is_an_event(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create("/api/v1/nodes", a_node("n1"))
    async with aclosing(backend.watch_jobs()) as watch, asyncio.timeout(LONGEST):
        await anext(watch)
        started = {"state": {"running": {"startedAt": "2026-03-01T09:00:00Z"}}}
        status = {"phase": "Running", "containerStatuses": [started]}
        server.create(PODS, a_pod(None, "alone", spec={"nodeName": "n1"}, status=status))
        await anext(watch)
    placed = [each.body for each in await backend.events() if isinstance(each.body, JobPlaced)]
    assert [[part.node for part in each.placement] for each in placed] == [["n1"]]


@pytest.mark.req("KU-01")
async def test_a_user_who_may_list_no_pods_gets_no_empty_tables(backend: KubernetesBackend, server: FakeApi) -> None:
    why = 'pods is forbidden: User "alice" cannot list resource "pods"'
    server.answer_next("GET /api/v1/pods", Reply.failure(403, "Forbidden", why))
    for ask in (backend.jobs, backend.events, backend.priorities, backend.accounting, backend.snapshot):
        with pytest.raises(RequestRefused, match="Pods cannot be listed: pods is forbidden"):
            await ask()
    overview = await backend.overview()
    assert (overview.hidden, len(overview.trouble)) == (True, 1)


@pytest.mark.req("KU-01")
@pytest.mark.parametrize(
    ("rules", "may"),
    [
        ([{"verbs": ["get", "list"], "apiGroups": ["*"], "resources": ["*"]}], Access.RO),
        ([{"verbs": ["patch"], "apiGroups": ["kubeflow.org"], "resources": ["pytorchjobs"]}], Access.RW),
        ([{"verbs": ["*"], "apiGroups": ["batch"], "resources": ["*"]}], Access.RO),
        ([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "resourceNames": ["o"]}], Access.RO),
        ([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}], Access.RW),
    ],
)
async def test_a_job_that_a_user_may_not_change_is_one_to_look_at(
    backend: KubernetesBackend, server: FakeApi, rules: list[dict[str, list[str]]], may: Access
) -> None:
    server.rules = list(rules)
    server.create(JOBS, a_job())
    (row,) = await backend.jobs()
    assert row.may is may


def restarted(times: int) -> dict[str, Any]:
    """The status of a pod whose container was started again so many times."""
    return {
        "phase": "Running",
        "containerStatuses": [{"name": "main", "restartCount": times, "state": {"running": {}}}],
    }


@pytest.mark.req("UI-14", "KU-07")
async def test_the_log_before_a_restart_is_that_of_the_attempt_before(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(PODS, a_pod(None, "alone", spec={"nodeName": "n1"}, status=restarted(3)))
    job = await the_job(backend)
    assert (attempt := (await backend.job(job)).job.attempt) is not None
    assert attempt.number == 4
    server.answer_next(f"GET {PODS}/alone/log?container=main&previous=true", Reply(body=b"step 1\nkilled\n"))
    chunk = await backend.logs(LogRequest(job=job, attempt=3, wait=True))
    assert (chunk.data, chunk.ended) == (b"step 1\nkilled\n", True)
    found = await backend.search_log(LogSearch(job=job, attempt=3, text="killed"))
    assert found.found == ((7, 6),)
    server.answer_next(f"GET {PODS}/alone/log?container=main&follow=true", Reply(body=b"step 2\n"))
    for last in (4, None):
        assert (await backend.logs(LogRequest(job=job, attempt=last, wait=True))).data == b"step 2\n"
    with pytest.raises(RequestRefused, match=r"The log of attempt 2 is gone: .* Attempts 3 and 4 have one"):
        await backend.logs(LogRequest(job=job, attempt=2))
    with pytest.raises(RequestRefused, match=r"Replica 0 of job .* has attempts 1 to 4"):
        await backend.search_log(LogSearch(job=job, attempt=5, text="x"))


@pytest.mark.req("UI-14", "KU-07")
async def test_pods_that_were_replaced_are_earlier_attempts(backend: KubernetesBackend, server: FakeApi) -> None:
    owner = server.create(JOBS, a_job())
    label = {"training.kubeflow.org/replica-index": "0", "training.kubeflow.org/replica-type": "master"}
    for name, phase in (("z-first", "Failed"), ("a-next", "Running")):
        more = {"metadata": {"labels": label}, "spec": {"nodeName": "n1"}}
        server.create(PODS, a_pod(owner, name, **more, status={"phase": phase}))
        server.answer_next(f"GET {PODS}/{name}/log?container=main&follow=true", Reply(body=f"{name}\n".encode()))
    job = await the_job(backend)
    read = [(await backend.logs(LogRequest(job=job, attempt=number, wait=True))).data for number in (1, 2)]
    assert read == [b"z-first\n", b"a-next\n"]
