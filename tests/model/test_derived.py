"""Values that follow from a job's fields: its image, its replicas, and what a best-effort job requests."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.model.cluster import Reservation
from cockpit.model.ids import JobId, Millis
from cockpit.model.image import ImageKind, image_of
from cockpit.model.labels import Taint, Toleration, is_tolerated, pair_text
from cockpit.model.mounts import Algorithm, AlgorithmSource, Dataset, ResolvedEntry
from cockpit.model.resilience import RECLAIM_SECONDS, Elastic, JobRestart, Restart, Resume, WorkerRestart
from cockpit.model.rules.text import tres_name_error
from cockpit.model.spec import LAUNCHER, Dependency, DependencyKind, Mode, NodeSpec, Task, TaskSpread, WorkerPool
from cockpit.model.staging import Progress, is_staged
from tests.builders import a_spec


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("text", "kind", "where"),
    [
        ("dir:/img/a", ImageKind.DIR, "/img/a"),
        ("tar:/b.tar", ImageKind.TAR, "/b.tar"),
        ("torch:1", ImageKind.NAMED, "torch:1"),
    ],
)
def test_an_image_is_of_the_kind_before_its_colon(text: str, kind: ImageKind, where: str) -> None:
    found = image_of(text)
    assert (found.kind, found.where) == (kind, where)


@pytest.mark.req("EL-01")
def test_an_elastic_job_has_at_most_its_largest_number_of_workers() -> None:
    assert [a_spec("x", nodes=each).most_nodes for each in (1, 3)] == [1, 3]
    assert [a_spec("x", nodes=each).least_nodes for each in (1, 3)] == [1, 3]
    grown = a_spec("x", nodes=2, mode=Mode.PYTORCH, elastic=Elastic(workers=2, max_workers=5))
    assert (grown.least_nodes, grown.most_nodes) == (1, 5)


@pytest.mark.req("LA-70")
def test_only_a_best_effort_job_is_queued_without_cpus_and_memory() -> None:
    usual = a_spec("x", cpus=4, memory_mib=2048)
    assert usual.as_accepted is usual
    best_effort = replace(usual, elastic=Elastic(workers=1, max_workers=2, best_effort=True))
    assert [(each.cpus, each.memory_mib) for each in best_effort.as_accepted.specs] == [(0, 0)]


@pytest.mark.req("LA-70")
def test_names_of_resources_are_words_of_at_most_eighty_characters() -> None:
    assert tres_name_error("cpu") is None
    assert tres_name_error("gres/gpu:a100") is None
    assert tres_name_error("gres/" + "x" * 80) is not None


def test_a_reservation_is_for_users_unless_it_is_for_maintenance() -> None:
    assert not Reservation(name="r", nodes=(), start_at=0, end_at=1).maintenance


ELASTIC = Elastic(workers=2, max_workers=4, backoff_limit=7, grace_seconds=90)
RESUME = Resume(max_resumes=5, grace_seconds=60)


@pytest.mark.req("JT-25")
def test_a_dependency_is_written_by_job_or_task_and_a_singleton_by_nothing() -> None:
    after = Dependency(DependencyKind.AFTER_OK, JobId(12))
    assert (after.target, replace(after, task=0).target) == ("12", "12_0")
    assert Dependency(DependencyKind.SINGLETON).target == ""


@pytest.mark.req("SC-05")
@pytest.mark.parametrize(
    ("milli", "whole", "shares"), [(0, 0, False), (1, 0, True), (999, 0, True), (1000, 1, False), (3000, 3, False)]
)
def test_a_node_spec_asks_for_whole_cards_or_for_a_share_of_one(milli: int, whole: int, shares: bool) -> None:
    spec = NodeSpec(card_milli=milli)
    assert (spec.whole_cards, spec.shares_a_card) == (whole, shares)


@pytest.mark.req("JT-17")
def test_a_resumable_job_has_the_grace_period_and_the_retries_of_its_resume() -> None:
    usual = a_spec("x", grace_seconds=30)
    resuming = replace(usual, resume=RESUME, elastic=ELASTIC, mode=Mode.HOROVOD)
    assert (usual.end_grace_seconds, usual.checkpoint_seconds, usual.most_retries) == (30, 0, 0)
    assert (resuming.end_grace_seconds, resuming.checkpoint_seconds, resuming.most_retries) == (60, 60, 5)
    assert not resuming.has_launcher
    assert not resuming.suspends


@pytest.mark.req("EL-07")
def test_an_elastic_job_has_the_retries_of_its_policies() -> None:
    never = a_spec("x", nodes=2, elastic=ELASTIC)
    assert (never.most_retries, never.most_worker_retries, never.checkpoint_seconds) == (0, 0, 90)
    assert replace(never, elastic=replace(ELASTIC, grace_seconds=None)).checkpoint_seconds == 0
    assert replace(never, elastic=replace(ELASTIC, job_restart_policy=JobRestart.ON_FAILURE)).most_retries == 7
    replaced = replace(never, elastic=replace(ELASTIC, worker_restart_policy=WorkerRestart.ALWAYS))
    assert (replaced.most_retries, replaced.most_worker_retries) == (0, 7)
    assert a_spec("x").most_worker_retries == 0
    assert (never.suspends, a_spec("x").suspends) == (True, False)


@pytest.mark.req("JT-18")
def test_a_job_with_restarts_is_requeued_as_often_as_they_say() -> None:
    assert a_spec("x", restart=Restart(max_restarts=4)).most_retries == 4


@pytest.mark.req("JT-25")
def test_the_latest_start_leaves_the_time_limit_before_the_deadline() -> None:
    assert a_spec("x", deadline_at=Millis(100_000), time_limit_seconds=60).latest_start_at == 40_000
    assert a_spec("x").latest_start_at is None


@pytest.mark.req("LA-60")
def test_parameter_servers_and_further_pools_come_after_the_nodes_and_start_with_them() -> None:
    assert a_spec("x", parameter_servers=2, mode=Mode.TENSORFLOW, nodes=3).least_nodes == 5
    assert a_spec("x", parameter_servers=2, mode=Mode.TENSORFLOW, nodes=3).most_nodes == 5
    big, small = NodeSpec(cpus=8), NodeSpec(cpus=2)
    pools = (WorkerPool(replicas=1, spec=big), WorkerPool(replicas=2, spec=small), WorkerPool(), WorkerPool(replicas=1))
    pooled = a_spec("x", mode=Mode.WORKER_POOLS, worker_pools=pools, specs=(big,))
    assert pooled.helpers == (small, small, NodeSpec())
    assert a_spec("x").helpers == ()


@pytest.mark.req("JT-06")
def test_everything_that_a_job_mounts_is_named_by_its_field() -> None:
    data, code = Dataset(name="d", path="/d"), Algorithm(path="/a")
    spec = a_spec(
        "x", datasets=(data, data), algorithm=code, tasks=(Task(command="x"), Task(command="y", algorithm=code))
    )
    fields = [field for field, _ in spec.references()]
    assert fields == ["algorithm", "tasks[1].algorithm", "datasets[0]", "datasets[1]"]


@pytest.mark.req("JT-13")
def test_the_image_of_the_catalogue_takes_the_place_of_its_name() -> None:
    assert a_spec("x", image="torch").root_image == "torch"
    assert a_spec("x", image="torch", image_found="tar:/torch.tar").root_image == "tar:/torch.tar"


@pytest.mark.req("JT-38", "JT-49")
def test_a_mount_has_the_folder_that_it_names_or_that_the_catalogue_has_for_it() -> None:
    found = Algorithm(name="bert", found=ResolvedEntry("nlp", "/catalogue/bert"))
    assert [each.folder for each in (Algorithm(path="/a"), found, Algorithm(name="bert"))] == [
        "/a",
        "/catalogue/bert",
        "",
    ]
    favourite = replace(found, source=AlgorithmSource.FAVORITE)
    assert [each.called for each in (Algorithm(path="/a"), found, favourite)] == ["/a", "bert", "favorite/bert"]


@pytest.mark.req("JT-19")
def test_a_job_is_staged_if_it_copies_datasets_or_an_image_that_is_no_folder() -> None:
    data = (Dataset(name="d", path="/d", read_only=True),)
    pool = WorkerPool(replicas=1, image="torch")
    assert not is_staged(a_spec("x"))
    assert not is_staged(a_spec("x", datasets=data))
    assert not is_staged(a_spec("x", staging=True))
    assert is_staged(a_spec("x", staging=True, datasets=data))
    assert [is_staged(a_spec("x", image=image)) for image in ("dir:/r", "tar:/r.tar", "torch")] == [False, True, True]
    assert [is_staged(a_spec("x", image="dir:/r", staging=on, datasets=data)) for on in (False, True)] == [False, True]
    assert not is_staged(a_spec("x", image="dir:/r", staging=True))
    assert is_staged(a_spec("x", worker_pools=(pool,), mode=Mode.WORKER_POOLS))
    assert not is_staged(a_spec("x", worker_pools=(replace(pool, image=""),), mode=Mode.WORKER_POOLS))


@pytest.mark.req("JT-19")
def test_the_time_left_of_a_copy_is_rounded_up_and_unknown_without_a_rate_or_a_size() -> None:
    assert Progress(done=40, total=100, rate=7).seconds_left == 9
    assert Progress(done=40, total=100, rate=0).seconds_left is None
    assert Progress(done=0, total=0, rate=7).seconds_left is None


@pytest.mark.req("SC-04")
def test_a_taint_is_tolerated_by_its_key_and_value_by_its_key_alone_or_by_any() -> None:
    taint = Taint("gpu", "yes")
    assert [each.of(taint) for each in (Toleration("gpu", "yes"), Toleration("gpu"), Toleration())] == [True] * 3
    assert [each.of(taint) for each in (Toleration("gpu", "no"), Toleration("spot"))] == [False, False]
    assert is_tolerated(taint, (Toleration("spot"), Toleration("gpu")))
    assert not is_tolerated(taint, (Toleration("spot"),))


@pytest.mark.req("SC-04")
def test_taints_and_tolerations_are_written_as_kubectl_does() -> None:
    assert [each.text for each in (Taint("spot"), Taint("gpu", "yes"))] == ["spot", "gpu=yes"]
    tolerations = (Toleration(), Toleration("spot"), Toleration("gpu", "yes"), Toleration("gpu", ""))
    assert [each.text for each in tolerations] == ["*", "spot", "gpu=yes", "gpu="]
    assert [pair_text("disk", value) for value in ("ssd", "")] == ["disk=ssd", "disk"]


@pytest.mark.req("EL-06")
def test_a_launcher_is_limited_to_one_cpu_and_a_gibibyte() -> None:
    assert NodeSpec(cpus=1, memory_mib=1024) == LAUNCHER


@pytest.mark.req("EL-02")
def test_a_reclaimed_worker_has_five_minutes() -> None:
    assert RECLAIM_SECONDS == 5 * 60


@pytest.mark.req("SL-01")
def test_cards_of_spread_tasks_need_no_cpus_and_memory_unless_the_job_says_so() -> None:
    assert TaskSpread(tasks=4, each=NodeSpec()).each_card == NodeSpec(cpus=0, memory_mib=0)
