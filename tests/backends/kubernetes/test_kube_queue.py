"""Jobs in queues of KubeQueue, and the quota tree that keeps them there, over the tests' own API server."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cockpit.errors import RequestRefused
from cockpit.formats.quotatree import read_quota_tree
from cockpit.model.capabilities import Ability
from cockpit.model.forecast import Forecast, NoBound
from cockpit.model.job import JobState
from cockpit.model.pod_reasons import PodsNotCreated, QueueWaits
from cockpit.model.quota import QuotaTree
from cockpit.model.reasons import Explanation, QuotaFull, QuotaMaxJobs, QuotaWaits, never_starts
from cockpit.model.refusal import RefusalKind
from cockpit.model.spec import NodeSpec
from tests.backends.kubernetes.conftest import open_fake
from tests.backends.kubernetes.kube_queue_objects import (
    ENQUEUED,
    QUEUES,
    SUSPENDED,
    TREES,
    UNITS,
    a_manifest,
    a_tree,
    a_unit,
    jobs_of,
    queue_job,
    run_job,
    serve_kube_queue,
)
from tests.backends.kubernetes.objects import GPU, merged
from tests.backends.kubernetes.test_backend import a_job
from tests.backends.kubernetes.test_explaining import NODES
from tests.backends.kubernetes.test_explaining import a_node as a_kube_node
from tests.builders import a_spec
from tests.doubles.kubernetes_api import Reply

if TYPE_CHECKING:
    from pathlib import Path

    from cockpit.backends.kubernetes.backend import KubernetesBackend
    from cockpit.model.jobrow import JobRow
    from tests.doubles.kubernetes_api import FakeApi

LONGEST = 20.0


@pytest.fixture
def backend(backend: KubernetesBackend, server: FakeApi) -> KubernetesBackend:
    serve_kube_queue(server)
    return backend


async def rows(backend: KubernetesBackend) -> dict[str, JobRow]:
    return {row.name: row for row in await backend.jobs()}


async def explained(backend: KubernetesBackend, name: str) -> Explanation:
    outlook = await backend.explain((await rows(backend))[name].id)
    assert outlook.explanation is not None
    return outlook.explanation


async def seen(backend: KubernetesBackend, name: str, reason: object) -> JobRow:
    """Wait until a watcher sees the job with this reason."""
    async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs()) as watch:
        async for delta in watch:
            for row in delta.changed:
                if row.name == name and row.reason == reason:
                    return row
    raise AssertionError("a watch never ends")


@pytest.mark.req("KU-04", "KU-05")
async def test_a_job_whose_queue_unit_waits_is_queued_with_kube_queues_words(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    queue_job(server, "train", spec={"queue": "research", "priority": 7})
    row = (await rows(backend))["train"]
    assert (row.state, row.partitions, row.priority) == (JobState.QUEUED, ("research",), 7)
    assert row.reason == QueueWaits("KubeQueue", "research", "Enqueued", ENQUEUED)
    # A phase that this cockpit does not know is shown as it is.
    unit = f"{UNITS.format('team-a')}/train-py-qu"
    server.change(unit, {"status": {"phase": "Pondering", "message": "hm"}})
    await seen(backend, "train", QueueWaits("KubeQueue", "research", "Pondering", "hm"))
    # KubeQueue takes the job from its queue, and then the annotation off the job.
    server.change(unit, {"status": {"phase": "Dequeued"}})
    server.change(f"{jobs_of('team-a')}/train", {"metadata": {"annotations": {"scheduling.x-k8s.io/suspend": "false"}}})
    await seen(backend, "train", PodsNotCreated("PyTorchJob"))


@pytest.mark.req("KU-04", "KU-05")
async def test_a_job_that_kube_queue_has_not_seen_yet_waits_for_it(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(jobs_of("team-a"), a_job(metadata=SUSPENDED))
    assert (await rows(backend))["train"].reason == QueueWaits("KubeQueue", "team-a")


@pytest.mark.req("KU-04")
async def test_the_place_in_the_queue_follows_priority_first_attempt_and_name(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    # The server gives all of them one time of creation.
    for name, priority in (("c", 0), ("b", 0), ("urgent", 9)):
        queue_job(server, name, spec={"queue": "research", "priority": priority})
    queue_job(server, "elsewhere", spec={"queue": "other", "priority": 99})
    job = {name: row.id for name, row in (await rows(backend)).items()}
    last = await explained(backend, "c")
    assert (last.position, last.ahead) == (3, (job["urgent"], job["b"]))
    assert (await explained(backend, "elsewhere")).position == 1


@pytest.mark.req("KU-04")
async def test_the_queue_of_a_job_is_the_one_of_its_node_in_the_quota_tree(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(TREES, a_tree())
    server.create(QUEUES, {"metadata": {"name": "root-a-v5zxz"}})
    server.create(QUEUES, {"metadata": {"name": "mine", "annotations": {"kube-queue/quota-fullname": "root/b"}}})
    queue_job(server, "by-namespace")
    queue_job(server, "by-annotation", "team-b")
    # A label names the node itself, whatever the namespace.
    queue_job(server, "by-label", metadata={"labels": {"quota.scheduling.alibabacloud.com/name": "b"}})
    found = await rows(backend)
    queues = {name: row.partitions for name, row in found.items()}
    assert queues == {"by-namespace": ("root-a-v5zxz",), "by-annotation": ("mine",), "by-label": ("mine",)}


@pytest.mark.req("KU-05", "FL-01")
async def test_the_quota_test_names_the_full_node_the_borrowers_and_when_the_job_fits(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(TREES, a_tree())
    run_job(server, "long", "team-b", seconds=7200)
    run_job(server, "short", "team-b", seconds=3600)
    queue_job(server, "train")
    job = {name: row.id for name, row in (await rows(backend)).items()}
    reason = (await explained(backend, "train")).reason
    assert isinstance(reason, QuotaWaits)
    # Team a uses nothing of its 8 cards: it is the root that is full, since team b borrows.
    assert reason.limit == QuotaFull("root", "gres/gpu", 16, 16, 8)
    assert reason.borrowers == (("root/b", 8),)
    assert reason.waits == QueueWaits("KubeQueue", "root/a", "Enqueued", ENQUEUED)
    # 2026-03-01 10:00, when the job with the shorter time limit ends.
    assert (reason.after, reason.fits_at) == (job["short"], 1772359200000)
    outlook = await backend.explain(job["train"])
    assert (set(outlook.holders), outlook.holders_in_all) == ({job["long"], job["short"]}, 2)
    assert {each.name: each.card_milli for each in outlook.named} == {"long": 8000, "short": 8000}
    detail = await backend.job(job["train"])
    assert detail.explanation is not None
    assert detail.explanation.reason == detail.row.reason == reason


@pytest.mark.req("KU-05")
async def test_without_time_limits_there_is_no_bound_on_when_a_job_fits(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(TREES, a_tree())
    run_job(server, "endless", "team-a")
    queue_job(server, "train")
    reason = (await explained(backend, "train")).reason
    assert isinstance(reason, QuotaWaits)
    assert (reason.limit, reason.after) == (QuotaFull("root/a", "gres/gpu", 12, 8, 8), None)
    assert not reason.never
    # What is more than the node may ever use does not fit whoever ends.
    queue_job(server, "vast", cards=13)
    await seen(backend, "vast", QueueWaits("KubeQueue", "root/a", "Enqueued", ENQUEUED))
    vast = await explained(backend, "vast")
    assert isinstance(vast.reason, QuotaWaits)
    assert vast.reason.never


@pytest.mark.req("KU-05", "FL-02")
@pytest.mark.parametrize("phase", ["Dequeued", "Reserved", "SchedReady", "SchedSucceed"])
async def test_a_job_that_has_its_quota_counts_before_it_has_pods(
    backend: KubernetesBackend, server: FakeApi, phase: str
) -> None:
    """Koord-Queue reserves the quota of a job that waits for admission checks, or for reserved nodes."""
    server.create(TREES, a_tree(max={"kube-queue/max-jobs": 1}))
    server.create(jobs_of("team-a"), a_job("first"))
    server.create(UNITS.format("team-a"), a_unit("first", status={"phase": phase, "message": "checks"}))
    queue_job(server, "second", cards=1)
    reason = (await explained(backend, "second")).reason
    assert isinstance(reason, QuotaWaits)
    assert reason.limit == QuotaMaxJobs("root/a", 1)
    own = (await explained(backend, "first")).reason
    waits = phase in {"Reserved", "SchedReady"}
    assert own == (QueueWaits("KubeQueue", "root/a", phase, "checks") if waits else PodsNotCreated("PyTorchJob"))
    # A job that fits waits for its turn alone.
    queue_job(server, "other", "team-b")
    await seen(backend, "other", QueueWaits("KubeQueue", "root/b", "Enqueued", ENQUEUED))
    assert isinstance((await explained(backend, "other")).reason, QueueWaits)


@pytest.mark.req("KU-05")
async def test_pods_of_no_job_count_to_the_quota_of_their_namespace(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(TREES, a_tree(max={"cpu": 10}))
    plain = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "4"}}}], "nodeName": "n1"}
    pod = {"kind": "Pod", "metadata": {"name": "web"}, "spec": plain, "status": {"phase": "Running"}}
    server.create("/api/v1/namespaces/team-a/pods", pod)
    queue_job(server, "train")
    reason = (await explained(backend, "train")).reason
    assert isinstance(reason, QuotaWaits)
    assert reason.limit == QuotaFull("root/a", "cpu", 10, 4, 8)


@pytest.mark.req("FL-03", "KU-04")
async def test_the_tree_is_shown_with_what_each_node_uses_and_borrows(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(TREES, a_tree())
    server.create(QUEUES, {"metadata": {"name": "root-b-v5zxz"}})
    server.create(QUEUES, {"metadata": {"name": "by-hand"}})
    run_job(server, "one", "team-b")
    run_job(server, "two", "team-b")
    queue_job(server, "train")
    shown = await backend.queues()
    assert shown.tree == "tree"
    found = {row.path: row for row in shown.rows}
    assert [(row.path, row.name, row.level, row.waiting, row.running) for row in shown.rows] == [
        ("root", "root", 0, 1, 2),
        ("root/a", "root/a", 1, 1, 0),
        ("root/b", "root-b-v5zxz", 1, 0, 2),
        ("by-hand", "by-hand", 0, 0, 0),
    ]
    team_b = found["root/b"]
    assert (team_b.used, team_b.min, team_b.projects) == (
        {"cpu": 16_000, "mem": 131_072_000, "gres/gpu": 16_000},
        {"gres/gpu": 8000},
        ("team-b",),
    )
    assert found["root/a"].max == {"cpu": 64_000, "mem": 524_288_000, "gres/gpu": 12_000}
    assert backend.capabilities.has(Ability.QUOTA_TREE)


@pytest.mark.req("KU-01", "KU-04")
async def test_a_cluster_without_quota_trees_says_so(server: FakeApi, tmp_path: Path) -> None:
    backend = open_fake(server, tmp_path)
    await backend.status()
    why = backend.capabilities.why_not(Ability.QUOTA_TREE)
    assert why == ("This cluster has no quota trees: it does not serve elasticquotatrees.scheduling.sigs.k8s.io.")
    assert str(backend.capabilities.why_not("queues")).startswith("This cluster has no queues: ")
    await backend.close()


@pytest.mark.req("KU-01", "KU-04")
async def test_a_tree_that_the_user_may_not_read_is_absent_with_the_servers_words(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    message = 'elasticquotatrees is forbidden: User "alice" cannot list it'
    server.answer_next(f"GET {TREES}", Reply.failure(403, "Forbidden", message))
    server.answer_next("GET /apis/scheduling.x-k8s.io/v1alpha1/queues?", Reply.failure(403, "Forbidden", "not queues"))
    queue_job(server, "train")
    assert (await rows(backend))["train"].reason == QueueWaits("KubeQueue", "team-a", "Enqueued", ENQUEUED)
    assert backend.capabilities.why_not("apply_quota") == f"Quota trees cannot be read: {message}"
    assert "queues.scheduling.x-k8s.io cannot be read: not queues" in (await backend.status()).trouble
    assert isinstance((await explained(backend, "train")).reason, QueueWaits)


@pytest.mark.req("KU-01")
@pytest.mark.parametrize(
    "root",
    [{"name": 7}, {}, {"name": "root", "max": "much"}, {"name": "root", "children": {"name": "a"}}],
    ids=str,
)
async def test_a_tree_that_cannot_be_read_is_none(
    backend: KubernetesBackend, server: FakeApi, root: dict[str, Any]
) -> None:
    tree = a_tree()
    server.create(TREES, {**tree, "spec": {"root": root}})
    queue_job(server, "train")
    assert isinstance((await explained(backend, "train")).reason, QueueWaits)
    assert (await backend.queues()).tree == ""
    assert not (await backend.status()).trouble


@pytest.mark.req("KU-12", "FL-01")
async def test_a_tree_is_applied_with_what_others_wrote_and_after_a_conflict(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    tree = merged(a_tree(), {"metadata": {"annotations": {"theirs": "stays"}}})
    tree["spec"]["root"]["max"]["rdma/hca"] = 4
    server.create(TREES, tree)
    wanted = a_manifest(max={GPU: 16}, min={GPU: 4, "cpu": "500m"})
    # Somebody else was quicker.
    server.answer_next(f"PATCH {TREES}/tree", Reply.failure(409, "Conflict", "the object has been modified"))
    await backend.apply_quota(wanted)
    served = server.object(f"{TREES}/tree")
    root = served["spec"]["root"]
    assert served["metadata"]["annotations"] == {"theirs": "stays"}
    assert root["max"] == {"cpu": 64, "memory": "512Gi", GPU: 16, "rdma/hca": 4}
    assert root["children"][0]["min"] == {GPU: 4, "cpu": "500m"}
    assert root["children"][1]["attributes"] == {"theirs": "stays"}
    assert len([each for each in server.requests if each.startswith(f"PATCH {TREES}/tree")]) == 2
    # The same tree once more changes nothing.
    before = served["metadata"]["resourceVersion"]
    await backend.apply_quota(wanted)
    assert server.object(f"{TREES}/tree")["metadata"]["resourceVersion"] == before


@pytest.mark.req("KU-12", "FL-01")
async def test_attributes_and_other_resources_of_a_file_are_applied_beside_those_of_others(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(TREES, merged(a_tree(), {"spec": {"root": {"attributes": {"theirs": "stays", "both": "old"}}}}))
    file = merged(a_tree(), {"spec": {"root": {"attributes": {"both": "new"}}}})
    file["spec"]["root"]["children"][1] |= {
        "attributes": {"resourceflavors": "fast"},
        "max": {"aliyun.com/gpu-mem": 96},
    }
    wanted = read_quota_tree("file", json.dumps(file))
    await backend.apply_quota(wanted)
    root = server.object(f"{TREES}/tree")["spec"]["root"]
    assert root["attributes"] == {"theirs": "stays", "both": "new"}
    assert root["children"][1]["attributes"] == {"theirs": "stays", "resourceflavors": "fast"}
    assert root["children"][1]["max"] == {"aliyun.com/gpu-mem": "96"}
    # What the cluster has can be applied again, and changes nothing.
    before = server.object(f"{TREES}/tree")
    await backend.apply_quota(read_quota_tree("file", json.dumps(before)))
    assert server.object(f"{TREES}/tree") == before


@pytest.mark.req("KU-12")
async def test_a_change_of_the_tree_meanwhile_is_not_overwritten(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(TREES, a_tree())
    stale = json.dumps({"items": [server.object(f"{TREES}/tree")]}).encode()
    await backend.status()
    server.change(f"{TREES}/tree", {"spec": {"root": {"attributes": {"written": "meanwhile"}}}})
    server.answer_next(f"GET {TREES}", Reply(body=stale))
    await backend.apply_quota(a_manifest(max={GPU: 16}))
    root = server.object(f"{TREES}/tree")["spec"]["root"]
    assert (root["attributes"], root["children"][0]["max"][GPU]) == ({"written": "meanwhile"}, 16)


@pytest.mark.req("FL-01")
async def test_a_tree_is_created_and_removed_and_another_name_is_refused(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    tree = a_manifest()
    with pytest.raises(RequestRefused, match="There is no quota tree"):
        await backend.remove_quota()
    await backend.apply_quota(tree)
    assert f"POST {TREES}?fieldValidation=Strict" in server.requests
    made = server.object(f"{TREES}/tree")
    assert read_quota_tree("made", json.dumps(made)) == tree
    with pytest.raises(RequestRefused, match="Quota tree tree is there, and a cluster has one"):
        await backend.apply_quota(QuotaTree("other", tree.root))
    server.answer_next(f"PATCH {TREES}/tree", Reply.failure(403, "Forbidden", "not an administrator"))
    with pytest.raises(RequestRefused, match="The cluster refuses this: not an administrator") as refused:
        await backend.apply_quota(QuotaTree("tree", replace(tree.root, children=())))
    assert refused.value.refusal.kind is RefusalKind.DENIED
    # The next look knows of each change.
    assert (await backend.queues()).tree == "tree"
    await backend.remove_quota()
    assert server.find(f"{TREES}/tree") is None
    assert (await backend.queues()).tree == ""


@pytest.mark.req("KU-02")
async def test_the_status_of_a_tree_has_no_job_put_together_anew(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(TREES, a_tree())
    queue_job(server, "train")
    await rows(backend)
    counted = backend._inventory.kube_queue
    before = counted.version
    # The scheduler may write what is used with every pod.
    server.change(f"{TREES}/tree", {"status": {"used": "1"}})
    server.change(f"{UNITS.format('team-a')}/train-py-qu", {"status": {"message": "later"}})
    await seen(backend, "train", QueueWaits("KubeQueue", "root/a", "Enqueued", "later"))
    assert counted.version == before + 1
    server.change(f"{TREES}/tree", {"spec": {"root": {"name": "top"}}})
    await seen(backend, "train", QueueWaits("KubeQueue", "top/a", "Enqueued", "later"))
    assert counted.version == before + 2


@pytest.mark.req("KU-04")
async def test_queues_of_one_name_in_two_namespaces_are_two(backend: KubernetesBackend, server: FakeApi) -> None:
    for namespace in ("team-a", "team-b", "team-c"):
        server.create(QUEUES.replace("kube-queue", namespace), {"metadata": {"name": "default"}})
    queue_job(server, "train")
    queue_job(server, "urgent", "team-b", spec={"priority": 9})
    # A queue that the user may not see is known by its jobs.
    queue_job(server, "elsewhere", "team-d", spec={"queue": "hidden"})
    assert (await explained(backend, "train")).position == 1
    shown = (await backend.queues()).rows
    assert [(row.path, row.name, row.waiting, row.projects) for row in shown] == [
        ("team-a/default", "default", 1, ("team-a",)),
        ("team-b/default", "default", 1, ("team-b",)),
        ("team-c/default", "default", 0, ("team-c",)),
        ("hidden", "hidden", 1, ()),
    ]


@pytest.mark.req("KU-04", "KU-05", "SC-12")
async def test_a_job_that_is_not_submitted_is_predicted_by_its_queue_and_the_quota_tree(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(TREES, a_tree())
    for name in ("n1", "n2", "n3"):
        server.create(NODES, a_kube_node(name))
    run_job(server, "endless", "team-b")
    run_job(server, "other", "team-b")
    spec = a_spec("train", image="img:1", project="team-a", card_milli=8000)
    (outlook,) = await backend.predict([spec])
    assert outlook.explanation is not None
    reason = outlook.explanation.reason
    assert isinstance(reason, QuotaWaits)
    # The same as KubeQueue tells of a submitted one.
    assert (reason.limit, reason.borrowers) == (QuotaFull("root", "gres/gpu", 16, 16, 8), (("root/b", 8),))
    assert (reason.waits, outlook.scheduler) == (QueueWaits("KubeQueue", "root/a"), "KubeQueue")
    assert (outlook.position, outlook.holders_in_all, never_starts(reason)) == (1, 2, False)
    # The jobs that have the quota have no time limit: that makes no start.
    assert outlook.forecast == Forecast(no_bound=NoBound.NO_TIME_LIMIT)
    (vast,) = await backend.predict([replace(spec, specs=(NodeSpec(card_milli=13_000),))])
    assert vast.explanation is not None
    assert never_starts(vast.explanation.reason)
    # A job of no node of the tree waits for nodes alone.
    (free,) = await backend.predict([replace(spec, project="elsewhere")])
    assert (free.scheduler, free.forecast.now) == ("Kubernetes", True)


@pytest.mark.req("KU-04", "SC-12")
@pytest.mark.parametrize("is_behind", [False, True])
async def test_time_limits_say_when_a_job_fits_that_is_the_first_of_its_queue(
    backend: KubernetesBackend, server: FakeApi, *, is_behind: bool
) -> None:
    server.create(TREES, a_tree())
    run_job(server, "other", "team-a", seconds=3600)
    if is_behind:
        queue_job(server, "first")
    numbers = {name: row.id for name, row in (await rows(backend)).items()}
    now = backend._clock.now()
    (outlook,) = await backend.predict([a_spec("train", image="img:1", project="team-a", card_milli=8000)])
    assert outlook.explanation is not None
    forecast = outlook.forecast
    if is_behind:
        assert (outlook.position, outlook.explanation.ahead) == (2, (numbers["first"],))
        assert forecast == Forecast()
    else:
        # The other one has outlived its limit, and is about to end.
        assert forecast.likely_at is not None
        assert 0 <= forecast.likely_at - now < 60_000
        assert ([each.job for each in forecast.after], forecast.latest_at) == ([numbers["other"]], None)
        assert forecast.no_bound is NoBound.LATER_SUBMISSIONS
