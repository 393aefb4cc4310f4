"""A batch as tasks, and tasks as the batch again."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.launch.sweeps import batch_spec, task_spec
from cockpit.model.ids import JobId
from cockpit.model.spec import Dependency, DependencyKind
from tests.builders import a_batch


@pytest.mark.req("JT-03", "JT-07")
@pytest.mark.parametrize("output", ["/data/out", "/"])
def test_each_task_writes_into_its_own_folder_below_the_output(output: str) -> None:
    batch = replace(a_batch("a", "b"), output=output)
    assert task_spec(batch, 1).output == f"{output.rstrip('/')}/tune-1"


@pytest.mark.req("JT-03", "JT-33")
def test_the_remaining_tasks_of_a_batch_request_the_same_again() -> None:
    batch = a_batch("a", "b", "c", cpus=2)
    assert batch_spec({n: task_spec(batch, n) for n in range(3)}) == batch
    left = batch_spec({n: task_spec(batch, n) for n in (2, 1)})
    assert left is not None
    assert (left.output, left.tasks) == (batch.output, batch.tasks[1:])
    assert batch_spec({}) is None


@pytest.mark.req("JT-03", "SC-10")
def test_dependencies_by_task_are_again_those_of_the_whole_batch() -> None:
    first = replace(task_spec(a_batch("a"), 0), dependencies=(Dependency(DependencyKind.AFTER_CORR, 7, 0),))
    batch = batch_spec({0: first})
    assert batch is not None
    assert batch.dependencies == (Dependency(DependencyKind.AFTER_CORR, 7),)


@pytest.mark.req("JT-33")
def test_a_batch_that_writes_into_the_root_folder_does_so_again() -> None:
    batch = replace(a_batch("a"), output="/")
    again = batch_spec({0: task_spec(batch, 0)})
    assert again is not None
    assert again.output == "/"


@pytest.mark.req("JT-33", "SC-10")
@pytest.mark.parametrize(
    "condition",
    [Dependency(DependencyKind.AFTER_CORR, JobId(7), 1), Dependency(DependencyKind.AFTER_OK, JobId(7), 0)],
)
def test_a_dependency_on_one_certain_task_stays_one(condition: Dependency) -> None:
    batch = batch_spec({0: replace(task_spec(a_batch("a"), 0), dependencies=(condition,))})
    assert batch is not None
    assert batch.dependencies == (condition,)
