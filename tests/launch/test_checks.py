from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.launch.checks import meeting_errors, submission_errors, warnings
from cockpit.model.batchscript import BatchScript
from cockpit.model.resilience import Elastic, Resume
from cockpit.model.spec import JobSpec, Mode, NodeSpec, Task, WorkerPool
from tests.builders import a_spec


@pytest.mark.req("JT-01", "JT-16", "LA-01")
def test_a_forged_request_is_checked_against_every_rule() -> None:
    errors = submission_errors(JobSpec(name="a\x1b", command="a && b", output="out", nodes=-1))
    assert [error.split(":")[0] for error in errors] == ["name", "output", "nodes", "command"]


@pytest.mark.parametrize("command", ["", "x" * 100_000, "a" + ";" * 100_000])
def test_an_empty_or_oversized_command_has_one_error(command: str) -> None:
    errors = submission_errors(JobSpec(name="a", command=command, output="/out"))
    assert [error.split(":")[0] for error in errors] == ["command"]


def test_unsupervised_best_effort_workers_cause_a_warning() -> None:
    unwatched = a_spec(
        "x", elastic=Elastic(workers=2, max_workers=2, best_effort=True), specs=(NodeSpec(cpus=0, memory_mib=0),)
    )
    (warning,) = warnings(unwatched)
    assert warning.startswith("elastic.supervised: without it")
    assert (
        warnings(replace(unwatched, elastic=Elastic(workers=2, max_workers=2, best_effort=True, supervised=True))) == ()
    )
    assert warnings(a_spec("x", elastic=Elastic(workers=2, max_workers=2))) == ()


def test_a_valid_spec_has_no_errors() -> None:
    assert submission_errors(JobSpec(name="[bold]", command="x ';'", output="/out")) == []


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("image", "command", "warned"),
    [
        ("host", "entrypoint", True),
        ("dir:/srv/root", "entrypoint --lr 1", True),
        ("localhost/torch:2", "entrypoint", False),
        ("host", "python entrypoint", False),
    ],
)
def test_an_images_own_command_needs_an_image_that_has_one(image: str, command: str, warned: bool) -> None:
    found = warnings(JobSpec(name="a", command=command, output="/out", image=image))
    assert [each.partition(":")[0] for each in found] == (["command"] if warned else [])


@pytest.mark.req("JT-08")
@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"nodes": 1}, False),
        ({"nodes": 2}, True),
        ({"nodes": 10_000}, True),
        ({"nodes": 10_001}, False),
        ({"nodes": 2, "mode": Mode.PYTORCH}, False),
        ({"nodes": 2, "divide_over_clusters": True}, False),
        ({"nodes": 2, "elastic": Elastic(workers=2, max_workers=4)}, False),
        (
            {
                "nodes": 2,
                "elastic": Elastic(workers=2, max_workers=2),
                "resume": Resume(max_resumes=1, grace_seconds=1),
            },
            True,
        ),
        ({"nodes": 2, "resume": Resume(max_resumes=1, grace_seconds=1)}, True),
    ],
)
def test_a_job_of_several_nodes_needs_a_mode_unless_they_find_each_other_without(
    fields: dict[str, object], wrong: bool
) -> None:
    found = meeting_errors(JobSpec(name="a", command="x", output="/out", **fields))
    assert [each.partition(":")[0] for each in found] == (["mode"] if wrong else [])


@pytest.mark.req("LA-71")
@pytest.mark.parametrize(("folder", "warned"), [("/usr/share/run", True), ("/home/ann", False)])
def test_a_script_in_a_system_folder_is_warned_that_its_files_are_lost(folder: str, warned: bool) -> None:
    found = warnings(a_spec("x", script=BatchScript(text="#!/bin/sh", work_dir=folder)))
    assert [each.partition(":")[0] for each in found] == (["script.work_dir"] if warned else [])


@pytest.mark.req("LA-01")
def test_the_grammar_of_every_command_is_checked_and_the_error_names_its_field() -> None:
    pools = (WorkerPool(replicas=1), WorkerPool(replicas=1, command="a | b"))
    batch = JobSpec(name="a", command="", output="/out", tasks=(Task(command="x"), Task(command="a; b")))
    pooled = JobSpec(name="a", command="x", output="/out", worker_pools=pools)
    assert any(each.startswith("tasks[1].command: ") for each in submission_errors(batch))
    assert any(each.startswith("worker_pools[1].command: ") for each in submission_errors(pooled))


@pytest.mark.req("LA-70")
def test_a_command_of_a_pool_or_a_task_needs_an_image_that_has_one_too() -> None:
    pools = (WorkerPool(replicas=1), WorkerPool(replicas=1, command="entrypoint"))
    batch = JobSpec(name="a", output="/out", tasks=(Task(command="entrypoint"),))
    for spec in (batch, JobSpec(name="a", command="x", output="/out", worker_pools=pools)):
        assert [each.partition(":")[0] for each in warnings(spec)] == ["command"]
    named = replace(pools[1], image="localhost/torch:2")
    assert warnings(JobSpec(name="a", command="x", output="/out", worker_pools=(pools[0], named))) == ()
