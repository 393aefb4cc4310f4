"""Arrays: one job per task, named and addressed as one."""

from __future__ import annotations

import pytest

from cockpit.engine import decide
from cockpit.engine.access import Actor
from cockpit.engine.arrays import addressed, task
from cockpit.engine.submission.submit import edit, submit
from cockpit.model.events import JobArchived, JobSubmitted
from cockpit.model.job import ArrayTask
from cockpit.model.refusal import Refusal
from cockpit.model.spec import Array
from tests.builders import ANN, HOUR, a_node, a_spec
from tests.engine.driver import EngineDriver


@pytest.fixture
def engine() -> EngineDriver:
    return EngineDriver(a_node("n1", cpus=4))


@pytest.mark.req("SC-10", "JT-25")
def test_each_task_is_a_job_and_their_ids_are_consecutive(engine: EngineDriver) -> None:
    engine.submit(a_spec("before"))
    tasks = engine.submit(a_spec("sweep", array=Array((1, 4, 9), 2)))
    assert tasks == [2, 3, 4]
    assert [engine.job(each).array for each in tasks] == [
        ArrayTask(2, index, at_once=2, count=3, first=1, last=9) for index in (1, 4, 9)
    ]
    assert all(engine.job(each).spec.array is None for each in tasks)


@pytest.mark.req("SC-10")
def test_the_array_name_is_in_use_until_its_last_task_has_ended(engine: EngineDriver) -> None:
    first, second = engine.run(a_spec("sweep", array=Array((0, 1))))
    engine.ended(first, code=0)
    refused = submit(engine.machine, [a_spec("sweep")], Actor(ANN, admin=False))
    assert isinstance(refused, Refusal)
    assert refused.message.startswith(f"name: job {first}_1 ")
    engine.ended(second, code=0)
    assert not isinstance(submit(engine.machine, [a_spec("sweep")], Actor(ANN, admin=False)), Refusal)


@pytest.mark.req("SC-10")
def test_a_task_and_the_array_are_addressed_by_their_ids(engine: EngineDriver) -> None:
    (alone,) = engine.submit(a_spec("alone"))
    tasks = engine.submit(a_spec("sweep", array=Array((1, 4, 9))))
    machine = engine.machine
    assert [job.id for job in addressed(machine, tasks[0], None)] == tasks
    assert [job.id for job in addressed(machine, tasks[0], 4)] == [tasks[1]]
    assert [job.id for job in addressed(machine, tasks[1], None)] == [tasks[1]]
    assert [job.id for job in addressed(machine, alone, None)] == [alone]
    assert addressed(machine, alone, 0) == []
    assert task(machine, tasks[2], 1) is engine.job(tasks[0])
    assert task(machine, tasks[0], 2) is None


@pytest.mark.req("SC-10", "JT-25")
def test_a_refusal_names_a_task_as_its_user_does(engine: EngineDriver) -> None:
    engine.submit(a_spec("before"))
    _, second = engine.run(a_spec("sweep", array=Array((1, 4))))
    held, released = decide.hold(engine.job(second), "ann"), decide.release(engine.job(second))
    assert [refused.message for refused in (held, released) if isinstance(refused, Refusal)] == [
        "Job 2_4 is running; only a queued job can be held.",
        "Job 2_4 is not held; it is running.",
    ]


@pytest.mark.req("SC-10")
def test_an_array_is_addressed_after_its_first_task_has_ended(engine: EngineDriver) -> None:
    first, second = engine.run(a_spec("sweep", array=Array((0, 1))))
    engine.ended(first, code=0)
    engine.pass_time(HOUR)
    assert [job.id for job in addressed(engine.machine, first, None)] == [second]
    assert [job.id for job in addressed(engine.machine, first, 1)] == [second]


@pytest.mark.req("SC-10", "JT-42")
def test_a_task_is_edited_but_keeps_the_arrays_name_and_size(engine: EngineDriver) -> None:
    first, second = engine.submit(a_spec("sweep", array=Array((0, 1))))
    assert engine.act(edit(engine.machine, engine.job(second), a_spec("sweep", cpus=2))) is None
    assert engine.job(first).spec.specs[0].cpus == 1
    renamed = edit(engine.machine, engine.job(second), a_spec("other"))
    assert isinstance(renamed, Refusal)
    assert renamed.message.startswith("name: job 1_1 is a task")
    larger = edit(engine.machine, engine.job(second), a_spec("sweep", array=Array((0, 1, 2))))
    assert isinstance(larger, Refusal)
    assert larger.message.startswith("array: is fixed")


@pytest.mark.req("SC-10")
def test_a_large_array_costs_one_spec_a_task(engine: EngineDriver) -> None:
    decided = submit(engine.machine, [a_spec("sweep", array=Array(tuple(range(20_000)), 2))], Actor(ANN, admin=False))
    assert not isinstance(decided, Refusal)
    bodies = [body for body in decided if isinstance(body, JobSubmitted)]
    assert len(bodies) == 20_000
    assert len({id(body.spec) for body in bodies}) == 1


def test_more_tasks_than_the_engine_accepts_are_refused(engine: EngineDriver) -> None:
    engine.submit(a_spec("one"))
    refused = submit(engine.machine, [a_spec("sweep", array=Array(tuple(range(100_000))))], Actor(ANN, admin=False))
    assert isinstance(refused, Refusal)
    assert "at most 100000" in refused.message


@pytest.mark.req("JT-09", "SC-10")
@pytest.mark.parametrize("order", [(0, 2, 1), (2, 1, 0), (0, 1, 2), (1, 0, 2)])
def test_failed_tasks_are_remembered_until_the_last_task_is_archived(
    engine: EngineDriver, order: tuple[int, ...]
) -> None:
    tasks = engine.run(a_spec("sweep", array=Array((0, 1, 2))))
    for at, each in enumerate(tasks):
        engine.ended(each, code=at)
    failed = engine.machine.state.failed_tasks
    assert set(failed) == {tasks[0]}
    for at, place in enumerate(order, 1):
        engine.act([JobArchived(tasks[place])])
        assert (tasks[0] in engine.machine.state.failed_tasks) is (at < 3)
