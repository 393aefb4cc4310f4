"""The last value that each rule of a job permits, and the error for the first one beyond."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.model.batchscript import BatchScript, EarlySignal
from cockpit.model.ids import JobId
from cockpit.model.labels import Toleration
from cockpit.model.mounts import Dataset, DatasetSource, Model, ModelSource, Volume
from cockpit.model.resilience import Elastic, ElasticResume, Performance, Restart, Resume
from cockpit.model.rules import bounds
from cockpit.model.rules.bounds import Bounds
from cockpit.model.rules.spec import spec_errors
from cockpit.model.spec import (
    Array,
    DebugHold,
    Dependency,
    DependencyKind,
    Failover,
    HomeAccess,
    Hooks,
    JobKind,
    JobSpec,
    Mode,
    NodeSpec,
    Sweep,
    Task,
    WorkerPool,
)

GOOD = JobSpec(name="train", command="/bin/train", output="/data/out")
DAY = 86_400
AFTER = Dependency(DependencyKind.AFTER_OK, JobId(1))
SCRIPT = BatchScript(text="#!/bin/bash\n", work_dir="/data")


def names(count: int) -> tuple[str, ...]:
    return tuple(f"n{each}" for each in range(count))


def elastic(**fields: Any) -> dict[str, Any]:
    given = Elastic(**{"workers": 1, "max_workers": 1, **fields})
    return {"elastic": given, "nodes": given.workers}


def resume(**fields: Any) -> dict[str, Any]:
    given = Resume(**{"max_resumes": 1, "grace_seconds": 1, **fields})
    return {"resume": given, "pool": "p", "elastic": given.sizes(1)}


def script(**fields: Any) -> dict[str, Any]:
    return {"script": replace(SCRIPT, **fields), "mode": Mode.SLURM, "home": HomeAccess.RW}


def sweep(**fields: Any) -> dict[str, Any]:
    return {"sweep": Sweep(**{"parameters": {"lr": ("1",)}, **fields})}


def pools(*helpers: WorkerPool, **fields: Any) -> dict[str, Any]:
    first = WorkerPool(replicas=1, **fields)
    return {"worker_pools": (first, *helpers), "mode": Mode.WORKER_POOLS, "specs": (first.spec,)}


def spec(**fields: Any) -> dict[str, Any]:
    return {"specs": (NodeSpec(**{"card_milli": 1000, **fields}),)}


def errors(fields: dict[str, Any]) -> list[str]:
    return spec_errors(replace(GOOD, **fields))


@pytest.mark.req("JT-09", "JT-25")
@pytest.mark.parametrize(
    ("bound", "low", "high"),
    [
        ("NODES", 1, 10_000),
        ("PARAMETER_SERVERS", 0, 1000),
        ("CPUS", 1, 65_536),
        ("MEMORY_MIB", 1, 1024**3),
        ("CARDS", 0, 1024),
        ("TIME_LIMIT_SECONDS", 1, 3660 * DAY),
        ("GRACE_SECONDS", 0, DAY),
        ("WAIT_SECONDS", 1, 366 * DAY),
        ("PRICE_MILLI", 0, 10**9),
        ("WINDOW_SECONDS", 1, 366 * DAY),
        ("TOLERATION_SECONDS", 0, DAY),
        ("RESTARTS", 0, 1000),
        ("NICE", -2_147_483_645, 2_147_483_645),
        ("SITE_FACTOR", -2_147_483_645, 2_147_483_645),
        ("ARRAY_INDEX", 0, 4_000_000),
        ("DIRECT_PRIORITY", 1, 4_294_967_294),
    ],
)
def test_a_bound_permits_its_ends_and_refuses_what_is_beyond(bound: str, low: int, high: int) -> None:
    within: Bounds = getattr(bounds, bound)
    assert [within.error(each) for each in (low, high)] == [None, None]
    assert all(within.error(each) for each in (low - 1, high + 1))


@pytest.mark.req("JT-25")
def test_the_last_moment_of_a_job_is_the_last_millisecond_of_the_year_9999() -> None:
    assert errors({"begin_at": 0}) == errors({"begin_at": 253_402_300_799_999}) == []
    assert errors({"begin_at": -1}) == ["begin_at: -1 ms is not between 0 ms and 253402300799999 ms"]
    assert errors({"deadline_at": 253_402_300_800_000})[0].startswith("deadline: 253402300800000 ms is not between")


WITHIN_AND_BEYOND: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("specs", {"specs": (NodeSpec(),) * 64}, {"specs": (NodeSpec(),) * 65}, "has 65 entries; give 1 to 64"),
    ("specs[0].cards", spec(card_milli=1_024_000), spec(card_milli=1_024_001), "1024 is not between 0 and 1024"),
    ("specs[0].cards", spec(card_milli=1000), spec(card_milli=1001), "1.001 is neither whole nor a share below 1"),
    ("specs[0].card_models", spec(card_models=names(64)), spec(card_models=names(65)), "has 65 entries; give 0 to 64"),
    ("specs[0].name", spec(name="big"), spec(name="a/b"), '"a/b" contains "/"'),
    ("node_names", {"node_names": names(10_000)}, {"node_names": names(10_001)}, "has 10001 entries"),
    ("pool", {"pool": "p" * 253}, {"pool": "p" * 254}, "has 254 characters; give 1 to 253"),
    ("partitions", {"partitions": names(64)}, {"partitions": names(65)}, "has 65 entries; give 0 to 64"),
    ("account", {"account": "a"}, {"account": ""}, "has 0 characters"),
    ("qos", {"qos": "a"}, {"qos": ""}, "has 0 characters"),
    ("reservation", {"reservation": ""}, {"reservation": "a\n"}, '"a\\n" contains characters that cannot be seen'),
    ("dependencies", {"dependencies": (AFTER,) * 1000}, {"dependencies": (AFTER,) * 1001}, "has 1001 entries"),
    ("tolerations", {"tolerations": (Toleration("k"),) * 64}, {"tolerations": (Toleration("k"),) * 65}, "has 65"),
    ("tolerations[0]", {"tolerations": (Toleration(""),)}, {"tolerations": (Toleration("k", "/"),)}, "is no value"),
    ("labels", {"labels": dict.fromkeys(names(64), "")}, {"labels": dict.fromkeys(names(65), "")}, "has 65 entries"),
    ("labels.a", {"labels": {"a": "b"}}, {"labels": {"a": "/"}}, "is no value of a label"),
    ("env", {"env": dict.fromkeys(names(1000), "")}, {"env": dict.fromkeys(names(1001), "")}, "has 1001 entries"),
    ("env.A", {"env": {"A": "x" * 65_536}}, {"env": {"A": "x" * 65_537}}, "has 65537 bytes; use at most 65536"),
    (
        "env",
        {"env": dict.fromkeys(map(str.upper, "abcdefgh"), "x" * 65_535)},
        {"env": dict.fromkeys(map(str.upper, "abcdefgh"), "x" * 65_535) | {"I": ""}},
        "has 524289 bytes in all; use at most 524288",
    ),
    ("time_limit", {"time_limit_seconds": 1}, {"time_limit_seconds": 0}, "0 s is not between 1 s"),
    ("grace_period", {"grace_seconds": DAY}, {"grace_seconds": DAY + 1}, "86401 s is not between 0 s and 86400 s"),
    ("parameter_servers", {}, {"parameter_servers": 1001}, "1001 is not between 0 and 1000"),
    (
        "failover.toleration_seconds",
        {"failover": Failover(toleration_seconds=DAY)},
        {"failover": Failover(toleration_seconds=DAY + 1)},
        "86401 s is not between 0 s and 86400 s",
    ),
    (
        "debug_hold.window",
        {"debug_hold": DebugHold(window_seconds=366 * DAY)},
        {"debug_hold": DebugHold(window_seconds=366 * DAY + 1)},
        "31622401 s is not between 1 s and 31622400 s",
    ),
    ("elastic.workers", elastic(), elastic(workers=10_001), "10001 is not between 1 and 10000"),
    ("elastic.min_workers", elastic(), elastic(min_workers=0), "0 is not between 1 and 10000"),
    ("elastic.max_workers", elastic(max_workers=10_000), elastic(max_workers=10_001), "10001 is not between"),
    ("elastic.backoff_limit", elastic(backoff_limit=1000), elastic(backoff_limit=1001), "1001 is not between 0 and"),
    ("elastic.grace_period", elastic(grace_seconds=0), elastic(grace_seconds=-1), "-1 s is not between 0 s and"),
    ("elastic.max_wait_time", elastic(max_wait_seconds=1), elastic(max_wait_seconds=0), "0 s is not between 1 s and"),
    (
        "elastic.max_price",
        elastic(spot=True, max_price_milli=0),
        elastic(spot=True, max_price_milli=-1),
        "-1 is not between 0 and 1000000000",
    ),
    (
        "elastic.launcher_selector.k",
        elastic(launcher_selector={"k": "v"}) | {"mode": Mode.HOROVOD},
        elastic(launcher_selector={"k": "/"}) | {"mode": Mode.HOROVOD},
        "is no value of a label",
    ),
    (
        "restart.max_restarts",
        {"restart": Restart(max_restarts=1000)},
        {"restart": Restart(max_restarts=1001)},
        "1001 is not between 0 and 1000",
    ),
    ("resume.max_resumes", resume(max_resumes=1000), resume(max_resumes=1001), "1001 is not between 0 and 1000"),
    ("resume.grace_period", resume(grace_seconds=DAY), resume(grace_seconds=DAY + 1), "86401 s is not between"),
    (
        "resume.elastic.min_nodes",
        resume(elastic=ElasticResume(min_nodes=1)),
        resume(elastic=ElasticResume(min_nodes=0)),
        "0 is not between 1 and 10000",
    ),
    (
        "resume.performance.threshold",
        resume(performance=Performance(threshold=1)),
        resume(performance=Performance(threshold=1.01)),
        "1.01 is not above 0 and at most 1",
    ),
    (
        "resume.performance.threshold",
        resume(performance=Performance(threshold=0.01)),
        resume(performance=Performance(threshold=0)),
        "0 is not above 0 and at most 1",
    ),
    ("hooks.before_start", {"hooks": Hooks(before_start="x" * 65_536)}, {"hooks": Hooks(before_start="\0")}, '"\\x00"'),
    ("hooks.after_end", {"hooks": Hooks()}, {"hooks": Hooks(after_end="x" * 65_537)}, "has 65537 bytes"),
    ("image", {"image": "i" * 253}, {"image": "i" * 254}, "has 254 characters"),
    ("image", {"image": "torch"}, {"image": "-torch"}, '"-torch" begins with "-"'),
    ("image", {"image": "dir:/a"}, {"image": "dir:a"}, '"a" is not absolute'),
    ("image", {"image": "host"}, {"image": ""}, "is empty; give one"),
    ("volumes[0].path", {"volumes": (Volume(name="v", path="/v"),)}, {"volumes": (Volume(name="v", path="v"),)}, '"v"'),
    (
        "datasets",
        {"datasets": tuple(Dataset(name=each, path="/d") for each in names(64))},
        {"datasets": tuple(Dataset(name=each, path="/d") for each in names(65))},
        "has 65 entries; give 0 to 64",
    ),
    (
        "datasets[0].version",
        {"datasets": (Dataset(name="d", source=DatasetSource.FAVORITE, version="1"),)},
        {"datasets": (Dataset(name="d", source=DatasetSource.FAVORITE),)},
        "is missing: a favorite one has versions; name one",
    ),
    (
        "models[0].version",
        {"models": (Model(name="m", source=ModelSource.PRETRAINED),)},
        {"models": (Model(name="m", source=ModelSource.PRETRAINED, version="1"),)},
        "is none of a pretrained one's; remove it, or name another source",
    ),
    ("worker_pools", pools(*[WorkerPool()] * 3), pools(*[WorkerPool()] * 4), "has 5 pools; at most 4 are possible"),
    (
        "worker_pools",
        pools(WorkerPool(replicas=1000)),
        pools(WorkerPool(replicas=1000), WorkerPool(replicas=1)),
        "come to 1001 replicas beside the first; at most 1000 are possible",
    ),
    (
        "worker_pools[1].replicas",
        pools(WorkerPool(replicas=0)),
        pools(WorkerPool(replicas=-1)),
        "-1 is not between 0 and 1000",
    ),
    (
        "worker_pools[0].bandwidth_gbps",
        pools(bandwidth_gbps=100_000),
        pools(bandwidth_gbps=100_001),
        "100001 is not between 0 and 100000",
    ),
    (
        "worker_pools[0].disk_size",
        pools(disk_gib=1_048_576),
        pools(disk_gib=1_048_577),
        "1048577 is not between 0 and 1048576",
    ),
    ("worker_pools[0].command", pools(command="x" * 65_536), pools(command="x" * 65_537), "has 65537 bytes"),
    ("worker_pools[0].image", pools(image=""), pools(image="-i"), '"-i" begins with "-"'),
    ("worker_pools[0].machine_type", pools(machine_type=""), pools(machine_type="a\n"), '"a\\n" contains'),
    ("worker_pools[0].disk_type", pools(disk_type="ssd"), pools(disk_type="a\n"), '"a\\n" contains'),
    ("worker_pools[0].spec.cpus", pools(spec=NodeSpec(cpus=1)), pools(spec=NodeSpec(cpus=0)), "0 is not between 1"),
    (
        "sweep.parameters",
        sweep(parameters=dict.fromkeys(names(64), ("1",))),
        sweep(parameters=dict.fromkeys(names(65), ("1",))),
        "has 65 parameters; give 1 to 64",
    ),
    ("sweep.parameters.a b", sweep(), sweep(parameters={"a b": ("1",)}), "is no name of an option"),
    ("sweep.parameters.lr", sweep(parameters={"lr": ("1",) * 10_000}), sweep(parameters={"lr": ()}), "has 0 entries"),
    ("sweep.parameters.lr", sweep(), sweep(parameters={"lr": ("1",) * 10_001}), "has 10001 entries; give 1 to 10000"),
    ("sweep.parameters.lr[0]", sweep(parameters={"lr": ("",)}), sweep(parameters={"lr": ("x" * 1025,)}), "has 1025"),
    ("sweep.parameters.lr[0]", sweep(parameters={"lr": ("x" * 1024,)}), sweep(parameters={"lr": ("\0",)}), '"\\x00"'),
    ("sweep.max_trials", sweep(max_trials=100_000), sweep(max_trials=100_001), "100001 is not between 0 and 100000"),
    ("sweep.parallel", sweep(parallel=0), sweep(parallel=-1), "-1 is not between 0 and 100000"),
    ("sweep.seed", sweep(seed=2**32 - 1), sweep(seed=2**32), f"{2**32} is not between 0 and {2**32 - 1}"),
    ("script.text", script(), script(text="true\n"), "does not begin with an interpreter"),
    ("script.text", script(), script(text="#!/bin/sh\r\n"), "has DOS line breaks (\\r\\n), which no shell takes"),
    ("script.text", script(text="#!" + "x" * 65_534), script(text="#!" + "x" * 65_535), "has 65537 bytes; use at most"),
    ("script.arguments", script(arguments=("",) * 4096), script(arguments=("",) * 4097), "has 4097 entries"),
    (
        "script.arguments",
        script(arguments=("x" * 32_768,) * 2),
        script(arguments=("x" * 32_768, "x" * 32_769)),
        "have 65537 bytes together; use at most 65536",
    ),
    ("script.arguments[0]", script(arguments=("",)), script(arguments=("\0",)), '"\\x00" contains a NUL character'),
    ("script.work_dir", script(), script(work_dir="data"), '"data" is not absolute'),
    ("script.submit_dir", script(submit_dir=""), script(submit_dir="data"), '"data" is not absolute'),
    ("script.file", script(file=""), script(file="run.sh"), '"run.sh" is not absolute'),
    ("script.output", script(output="x" * 4095), script(output="x" * 4096), "has 4096 bytes; use at most 4095"),
    ("script.error", script(error=""), script(error="\0"), '"\\x00" contains a NUL character'),
    ("script.input", script(input=""), script(input="\0"), '"\\x00" contains a NUL character'),
    (
        "script.early_signal.name",
        script(early_signal=EarlySignal(name="USR1", seconds=65_535)),
        script(early_signal=EarlySignal(name="SIGUSR1")),
        "SIGUSR1 is no name of a signal; write USR1",
    ),
    (
        "script.early_signal.seconds",
        script(early_signal=EarlySignal(name="TERM", seconds=0)),
        script(early_signal=EarlySignal(name="TERM", seconds=65_536)),
        "65536 s is not between 0 s and 65535 s",
    ),
    ("array", {"array": Array(tuple(range(100_000)))}, {"array": Array(tuple(range(100_001)))}, "has 100001 tasks"),
    ("array", {"array": Array((0,), 100_000)}, {"array": Array((0,), 100_001)}, "100001 is not between 0 and 100000"),
    ("array", {"array": Array((1, 2))}, {"array": Array((1, 1))}, "names its tasks out of order or twice"),
    ("array", {"array": Array((0,))}, {"array": Array((-1,))}, "-1 is not between 0 and 4000000"),
    ("array", {"array": Array((0,))}, {"array": Array(())}, "has 0 tasks; give 1 to 100000"),
    (
        "tasks[0].command",
        {"kind": JobKind.BATCH, "command": "", "tasks": (Task(command="x" * 65_536),)},
        {"kind": JobKind.BATCH, "command": "", "tasks": (Task(command=""),)},
        "is empty; give one",
    ),
    ("output", {"output": "/" + "x" * 4094}, {"output": "/" + "x" * 4095}, "has 4096 bytes; use at most 4095"),
    ("output", {"output": "/"}, {"output": "/a/./b"}, '"/a/./b" contains an empty part, "." or ".."; write it without'),
]


@pytest.mark.req("JT-09", "JT-16", "JT-25")
@pytest.mark.parametrize(("path", "within", "beyond", "error"), WITHIN_AND_BEYOND)
def test_a_field_may_have_its_last_permitted_value_and_the_error_beyond_names_the_field(
    path: str, within: dict[str, Any], beyond: dict[str, Any], error: str
) -> None:
    assert errors(within) == []
    assert any(each.startswith(f"{path}: {error}") for each in errors(beyond)), errors(beyond)[:3]


@pytest.mark.req("JT-25")
@pytest.mark.parametrize(
    ("dependency", "error"),
    [
        (AFTER, None),
        (Dependency(DependencyKind.AFTER_OK, JobId(1), 4_000_000), None),
        (Dependency(DependencyKind.SINGLETON), None),
        (Dependency(DependencyKind.AFTER_OK, JobId(1), 4_000_001), "4000001 is not between 0 and 4000000"),
        (Dependency(DependencyKind.AFTER_OK), "afterok needs a job: afterok:123"),
        (Dependency(DependencyKind.AFTER_OK, JobId(-1)), "afterok needs a job: afterok:123"),
        (Dependency(DependencyKind.SINGLETON, JobId(1)), "singleton takes no job"),
        (Dependency(DependencyKind.SINGLETON, JobId(0), 1), "singleton takes no job"),
    ],
)
def test_a_dependency_names_a_job_unless_it_is_a_singleton(dependency: Dependency, error: str | None) -> None:
    found = errors({"dependencies": (dependency,)})
    assert found == ([] if error is None else [f"dependencies[0]: {error}"])


@pytest.mark.req("EL-08")
def test_only_a_best_effort_job_may_request_neither_cpus_nor_memory() -> None:
    nothing = {"specs": (NodeSpec(cpus=0, memory_mib=0),)}
    assert errors(elastic(best_effort=True) | nothing) == []
    assert [each.partition(":")[0] for each in errors(elastic() | nothing)] == ["specs[0].cpus", "specs[0].memory"]
    one = {"specs": (NodeSpec(cpus=1, memory_mib=0),)}
    assert [each.partition(":")[0] for each in errors(elastic(best_effort=True) | one)] == ["specs[0].memory"]
