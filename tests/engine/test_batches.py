"""Batches: to the scheduler an array, of which each task has a command, an algorithm and a folder of its own."""

from __future__ import annotations

import pytest

from cockpit.engine.access import Actor
from cockpit.engine.arrays import addressed
from cockpit.engine.submission.submit import edit, submit
from cockpit.engine.views.rows import job_row
from cockpit.model.cluster import Cluster
from cockpit.model.events import ClusterConfigured
from cockpit.model.job import ArrayTask
from cockpit.model.refusal import Refusal
from cockpit.model.spec import Array, Dependency, DependencyKind, JobKind, PriorityWord
from tests.builders import ANN, a_batch, a_node, a_spec
from tests.engine.driver import EngineDriver


@pytest.fixture
def engine() -> EngineDriver:
    return EngineDriver(a_node("n1", cpus=4))


@pytest.mark.req("JT-03", "JT-06")
def test_each_task_is_a_job_with_its_own_command_algorithm_and_folder(engine: EngineDriver) -> None:
    engine.submit(a_spec("before"))
    tasks = engine.submit(a_batch("a", "b", "c", cpus=2))
    assert tasks == [2, 3, 4]
    for index, each in enumerate(map(engine.job, tasks)):
        assert each.array == ArrayTask(2, index, count=3, first=0, last=2, batch=True)
        assert each.spec.command == "abc"[index]
        assert each.spec.algorithm is not None
        assert each.spec.algorithm.path == f"/algo/{index}"
        assert each.spec.output == f"/data/out/tune-{index}"
        assert each.spec.specs[0].cpus == 2
        assert (each.spec.tasks, each.kind, job_row(each, None).kind) == ((), JobKind.BATCH, JobKind.BATCH)


@pytest.mark.req("JT-03")
def test_the_whole_batch_and_one_task_are_addressed(engine: EngineDriver) -> None:
    tasks = engine.submit(a_batch("a", "b"))
    assert [job.id for job in addressed(engine.machine, tasks[0], None)] == tasks
    assert [job.id for job in addressed(engine.machine, tasks[0], 1)] == [tasks[1]]


@pytest.mark.req("JT-03", "JT-42")
def test_a_batch_task_is_edited_but_remains_a_task(engine: EngineDriver) -> None:
    first, second = engine.submit(a_batch("a", "b"))
    assert engine.act(edit(engine.machine, engine.job(second), a_spec("tune", cpus=2))) is None
    assert (engine.job(second).kind, engine.job(second).spec.command) == (JobKind.BATCH, "python train.py")
    assert engine.job(first).spec.command == "a"
    made_a_batch = edit(engine.machine, engine.job(second), a_batch("a"))
    assert isinstance(made_a_batch, Refusal)
    assert made_a_batch.message.startswith("kind: is fixed")


@pytest.mark.req("JT-03", "SC-10")
def test_batch_tasks_depend_on_the_corresponding_tasks_of_another_batch(engine: EngineDriver) -> None:
    first = engine.submit(a_spec("prepare", array=Array((0, 1))))
    after = (Dependency(DependencyKind.AFTER_CORR, first[0]),)
    tasks = engine.submit(a_batch("a", "b", dependencies=after))
    assert [engine.job(each).waits_for[0].task for each in tasks] == [0, 1]
    refused = submit(engine.machine, [a_batch("a", "b", "c", name="more", dependencies=after)], Actor(ANN, admin=False))
    assert isinstance(refused, Refusal)
    assert f"array {first[0]} has no task 2" in refused.message


@pytest.mark.req("JT-03", "JT-34")
def test_an_urgent_batch_counts_with_all_its_tasks(engine: EngineDriver) -> None:
    engine.tell(ClusterConfigured(Cluster(urgent_jobs=2)))
    three = a_batch("a", "b", "c", priority=PriorityWord.URGENT)
    assert isinstance(submit(engine.machine, [three], Actor(ANN, admin=False)), Refusal)
    two = a_batch("a", "b", priority=PriorityWord.URGENT)
    assert not isinstance(submit(engine.machine, [two], Actor(ANN, admin=False)), Refusal)
