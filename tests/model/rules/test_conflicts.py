"""Fields of a job that exclude or need each other: the error of each conflict, and the same job without it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.model.batchscript import BatchScript
from cockpit.model.mounts import Algorithm, Dataset, DatasetSource, Volume
from cockpit.model.resilience import Elastic, ElasticResume, Restart, Resume
from cockpit.model.rules.spec import spec_errors
from cockpit.model.spec import Array, HomeAccess, JobKind, JobSpec, Mode, NodeSpec, Search, Sweep, Task, WorkerPool

GOOD = JobSpec(name="train", command="/bin/train", output="/data/out")
CARD = (NodeSpec(card_milli=1000),)
ELASTIC = Elastic(workers=2, max_workers=4)
RESUME = Resume(max_resumes=1, grace_seconds=1)
SWEEP = Sweep(parameters={"lr": ("1", "2")})
SCRIPT = BatchScript(text="#!/bin/bash\n", work_dir="/data")
POOL = WorkerPool(replicas=1)

BATCH = {"kind": JobKind.BATCH, "command": "", "tasks": (Task(command="x"), Task(command="y"))}
SESSION = {"kind": JobKind.INTERACTIVE}
GROWING = {"elastic": ELASTIC, "nodes": 2}
RESUMING = {"resume": RESUME, "pool": "p"}
SWEEPING = {"sweep": SWEEP}
SCRIPTED = {"script": SCRIPT, "mode": Mode.SLURM, "home": HomeAccess.RW}
POOLED = {"mode": Mode.WORKER_POOLS, "worker_pools": (POOL, POOL)}
COPIED = {"staging": True, "datasets": (Dataset(name="d", path="/d", read_only=True),)}


def growing(**fields: Any) -> dict[str, Any]:
    return GROWING | {"elastic": replace(ELASTIC, **fields)}


CONFLICTS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"pool": "p"}, {"node_names": ("n1",)}, "pool: cannot be used with node_names"),
    ({"driver_version": "5", "specs": CARD}, {"node_names": ("n1",)}, "driver_version: cannot be used with node_names"),
    ({"driver_version": "5", "specs": (NodeSpec(), *CARD)}, {"specs": (NodeSpec(),)}, "driver_version: needs a spec"),
    ({}, {"specs": (*CARD, NodeSpec(card_models=("A100",)))}, "specs[1].card_models: needs cards"),
    ({"partitions": ("a", "b")}, {"partitions": ("a", "a")}, 'partitions: the name "a" is there twice'),
    (
        {"algorithm": Algorithm(path="/a")},
        {"algorithm": Algorithm(path="/a", name="a")},
        "algorithm.name: cannot be used with path",
    ),
    ({}, {"algorithm": Algorithm()}, "algorithm: says neither path (a folder) nor name (of the catalogue)"),
    ({"algorithm": Algorithm(name="a")}, {"algorithm": Algorithm(name="/")}, 'algorithm.name: "/" contains "/"'),
    ({"volumes": (Volume(name="v", path="/v"),)}, {"volumes": (Volume(name="v", path="/v"),) * 2}, "volumes: the name"),
    (COPIED, {"datasets": ()}, "staging: has nothing to copy; add datasets, or remove staging"),
    (COPIED, {"datasets": (Dataset(name="d", path="/d"),)}, "datasets[0].read_only: must be true with staging"),
    (
        {"mode": Mode.STANDALONE},
        {"nodes": 2},
        "mode: standalone has one node, and there are 2; write nodes: 1, or one of horovod",
    ),
    (
        {"mode": Mode.PYTORCH, "nodes": 2},
        {"divide_over_clusters": True},
        "mode: cannot be used with divide_over_clusters",
    ),
    (
        {"divide_over_clusters": True, "nodes": 2},
        {"mode": Mode.PYTORCH},
        "mode: cannot be used with divide_over_clusters",
    ),
    ({"divide_over_clusters": True, "mode": Mode.STANDALONE}, {"nodes": 3}, "mode: standalone has one node"),
    (growing(min_workers=2), growing(min_workers=3), "elastic.min_workers: 3 is more than the 2 workers"),
    (growing(max_workers=2), growing(max_workers=1), "elastic.max_workers: 1 is less than the 2 workers"),
    (GROWING, {"nodes": 3}, "nodes: 3 is not elastic.workers (2)"),
    (
        growing(max_price_milli=1, spot=True, shrink_above_price=True),
        growing(spot=True, shrink_above_price=True),
        "elastic.shrink_above_price: is about max_price",
    ),
    (growing(max_price_milli=1, spot=True), growing(max_price_milli=1), "elastic.max_price: is for spot nodes"),
    (growing(supervised=True, best_effort=True), growing(supervised=True), "elastic.supervised: is for best-effort"),
    (growing(best_effort=True), {"exclusive": True}, "exclusive: cannot be used with elastic.best_effort"),
    (
        growing(launcher_selector={"a": "b"}) | {"mode": Mode.HOROVOD},
        {"mode": Mode.PYTORCH},
        "elastic.launcher_selector: is for jobs with a launcher; write mode: horovod",
    ),
    (GROWING, {"divide_over_clusters": True}, "elastic: cannot be used with divide_over_clusters"),
    ({"restart": Restart(max_restarts=1)}, RESUMING, "restart: cannot be used with resume"),
    ({"restart": Restart(max_restarts=1)}, GROWING, "restart: cannot be used with elastic"),
    (RESUMING, {"pool": None}, "resume: needs a dedicated pool of nodes"),
    (RESUMING, GROWING, "resume: cannot be used with elastic"),
    (
        RESUMING,
        {"resume": replace(RESUME, elastic=ElasticResume(min_nodes=2))},
        "resume.elastic.min_nodes: 2 is more than the job's 1 nodes",
    ),
    (RESUMING, {"kind": JobKind.INTERACTIVE}, "resume: is for regular jobs alone"),
    ({}, {"tasks": BATCH["tasks"]}, "tasks: cannot be used in a job of the kind regular"),
    (BATCH, {"tasks": ()}, "tasks: is missing"),
    (BATCH, {"command": "x"}, "command: cannot be used with tasks"),
    (BATCH, {"algorithm": Algorithm(path="/a")}, "algorithm: cannot be used with tasks"),
    (BATCH, {"array": Array((1,))}, "array: cannot be used with tasks"),
    (
        BATCH | {"name": "\U0001d54f" * 63},
        {"tasks": (Task(command="x"),) * 101},
        "name: becomes a folder with each task's number, of more than 255 bytes",
    ),
    (
        BATCH | {"output": "/" + "x" * (4094 - len("/train-1"))},
        {"output": "/" + "x" * (4095 - len("/train-1"))},
        "output: with a task's folder in it has 4096 bytes",
    ),
    (SESSION, {"array": Array((1,))}, "array: cannot be used in a session"),
    (SESSION, COPIED, "staging: cannot be used in a session"),
    (SCRIPTED, {"mode": Mode.STANDALONE}, "script: is for the mode slurm"),
    (SCRIPTED, SESSION, "script: cannot be used in a job of the kind interactive"),
    (SCRIPTED, {"home": HomeAccess.RO}, "home: must be rw beside script"),
    (SCRIPTED, GROWING, "elastic: cannot be used with script"),
    (SCRIPTED, SWEEPING, "sweep: cannot be used with script"),
    (SWEEPING, {"array": Array((1,))}, "sweep: cannot be used with array"),
    (SWEEPING, BATCH, "sweep: cannot be used with tasks"),
    (SWEEPING | SESSION, {"command": ""}, "sweep: needs a command that its values are appended to"),
    (
        {"sweep": Sweep(parameters={"a": ("1",) * 1000, "b": ("1",) * 100})},
        {"sweep": Sweep(parameters={"a": ("1",) * 1001, "b": ("1",) * 100})},
        "sweep.max_trials: is needed: there are 100100 combinations, and at most 100000 trials",
    ),
    (
        {"sweep": replace(SWEEP, search=Search.RANDOM, max_trials=1)},
        {"sweep": replace(SWEEP, search=Search.RANDOM)},
        "sweep.max_trials: is needed for a random choice",
    ),
    ({"mode": Mode.TENSORFLOW, "parameter_servers": 1}, {"mode": Mode.PYTORCH}, "parameter_servers: are TensorFlow's"),
    (POOLED, {"mode": None}, "worker_pools: and mode: worker-pools require each other"),
    ({}, {"mode": Mode.WORKER_POOLS}, "worker_pools: and mode: worker-pools require each other"),
    (POOLED, {"nodes": 2}, "nodes: cannot be used with worker_pools"),
    (POOLED, {"specs": CARD}, "specs: cannot be used with worker_pools"),
    (
        POOLED,
        {"worker_pools": (POOL, replace(POOL, spec=NodeSpec(name="big")))},
        "worker_pools[1].spec.name: names of the catalogue mean nothing in a pool",
    ),
]


@pytest.mark.req("JT-03", "JT-25", "JT-27")
@pytest.mark.parametrize(("valid", "added", "error"), CONFLICTS)
def test_each_conflict_is_reported_at_the_field_that_has_to_change_and_only_where_there_is_one(
    valid: dict[str, Any], added: dict[str, Any], error: str
) -> None:
    assert spec_errors(replace(GOOD, **valid)) == []
    found = spec_errors(replace(GOOD, **(valid | added)))
    assert any(each.startswith(error) for each in found), found[:5]


@pytest.mark.req("JT-05")
def test_two_versions_of_a_dataset_may_be_mounted_and_two_annotations_of_it_may_not() -> None:
    def about(source: DatasetSource, *versions: str) -> list[str]:
        given = tuple(Dataset(name="d", source=source, version=each) for each in versions)
        return spec_errors(replace(GOOD, datasets=given))

    twice = ['datasets: the name "annotation/d" is there twice; each may be there once']
    assert about(DatasetSource.FAVORITE, "1", "2") == []
    assert about(DatasetSource.ANNOTATION, "1", "2") == twice
    assert about(DatasetSource.FAVORITE, "1", "1") != []


@pytest.mark.req("JT-25")
def test_a_time_limit_that_the_user_did_not_choose_makes_no_deadline_too_early() -> None:
    fields = {"begin_at": 1000, "deadline_at": 2000, "time_limit_seconds": 60}
    assert [each.partition(":")[0] for each in spec_errors(replace(GOOD, **fields))] == ["deadline"]
    assert spec_errors(replace(GOOD, limit_by_default=True, **fields)) == []


@pytest.mark.req("JT-17")
def test_a_resumable_job_has_the_sizes_that_it_may_resume_with() -> None:
    resume = replace(RESUME, elastic=ElasticResume(min_nodes=2, allow_scaling=True))
    sizes = Elastic(workers=3, min_workers=2, max_workers=3, allow_scaling=True)
    assert resume.sizes(3) == sizes
    assert spec_errors(replace(GOOD, resume=resume, pool="p", nodes=3, elastic=sizes)) == []
    other = replace(sizes, max_workers=4)
    assert spec_errors(replace(GOOD, resume=resume, pool="p", nodes=3, elastic=other)) != []
