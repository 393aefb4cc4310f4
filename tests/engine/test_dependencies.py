"""Conditions on other jobs: each kind, on jobs and arrays, before and after they have ended."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.engine import decide
from cockpit.engine.access import Actor
from cockpit.engine.evictions import requeue
from cockpit.engine.submission.admission import named_elsewhere
from cockpit.engine.submission.submit import edit, submit
from cockpit.model.events import DependencyFailed, DependencyMet
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.reasons import DependencyNever, WaitsForJob
from cockpit.model.refusal import Refusal
from cockpit.model.spec import Array, Dependency, DependencyKind
from cockpit.sched.conditions import first_unmet_condition
from tests.builders import ANN, BOB, HOUR, a_node, a_spec
from tests.engine.driver import EngineDriver

OK, ANY, NOT_OK, CORR, ALONE = DependencyKind
SINGLETON = Dependency(ALONE)


@pytest.fixture
def engine() -> EngineDriver:
    return EngineDriver(a_node("n1", cpus=8))


def after(kind: DependencyKind, *jobs: JobId) -> dict[str, object]:
    return {"dependencies": tuple(Dependency(kind, job) for job in jobs)}


def waits(engine: EngineDriver, job: JobId) -> bool | None:
    """None: for ever."""
    found = engine.job(job)
    return None if found.never is not None else bool(found.waits_for)


@pytest.mark.req("SC-10", "JT-25")
@pytest.mark.parametrize(
    ("kind", "code", "waiting"),
    [
        (OK, 0, False),
        (OK, 1, None),
        (ANY, 0, False),
        (ANY, 1, False),
        (NOT_OK, 0, None),
        (NOT_OK, 1, False),
        (CORR, 0, False),
        (CORR, 1, None),
    ],
)
@pytest.mark.parametrize("ended_before", [False, True])
def test_each_kind_of_dependency_on_a_job(
    engine: EngineDriver, kind: DependencyKind, code: int, waiting: bool | None, ended_before: bool
) -> None:
    (first,) = engine.run(a_spec("first"))
    if ended_before:
        engine.ended(first, code=code)
    (second,) = engine.submit(a_spec("second", **after(kind, first)))
    if not ended_before:
        assert waits(engine, second)
        engine.ended(first, code=code)
    assert waits(engine, second) is waiting
    assert (engine.job(second).accrues_from is not None) is (waiting is False)
    assert engine.job(second).never == (first if waiting is None else None)


@pytest.mark.req("SC-10")
def test_all_dependencies_must_be_satisfied(engine: EngineDriver) -> None:
    first, second = engine.run(a_spec("first"), a_spec("second"))
    (third,) = engine.submit(a_spec("third", **after(OK, first, second)))
    engine.ended(first, code=0)
    assert engine.job(third).waits_for == (Dependency(OK, second),)
    engine.ended(second, code=0)
    assert not waits(engine, third)


@pytest.mark.req("SC-10")
def test_a_chain_continues_after_a_cancelled_job(engine: EngineDriver) -> None:
    (first,) = engine.submit(a_spec("first", hold=True))
    (second,) = engine.submit(a_spec("second", **after(ANY, first)))
    (third,) = engine.submit(a_spec("third", **after(OK, first)))
    engine.act(decide.cancel(engine.job(first), engine.now, None))
    assert (waits(engine, second), waits(engine, third)) == (False, None)


@pytest.mark.req("SC-10")
@pytest.mark.parametrize(
    ("kind", "codes", "waiting"),
    [
        (OK, (0, 0, 0), [True, True, False]),
        (OK, (0, 1, 0), [True, None, None]),
        (ANY, (1, 0, 1), [True, True, False]),
        (NOT_OK, (1, 0, 0), [True, True, False]),
        (NOT_OK, (0, 0, 0), [True, True, None]),
    ],
)
def test_a_condition_on_an_array_is_one_on_all_its_tasks(
    engine: EngineDriver, kind: DependencyKind, codes: tuple[int, ...], waiting: list[bool | None]
) -> None:
    tasks = engine.run(a_spec("sweep", array=Array((0, 1, 2))))
    (other,) = engine.submit(a_spec("other", **after(kind, tasks[0])))
    seen = []
    for job, code in zip(tasks, codes, strict=True):
        engine.ended(job, code=code)
        engine.pass_time(HOUR)  # what has ended leaves the live state
        seen.append(waits(engine, other))
    assert seen == waiting
    assert engine.machine.state.failed_tasks == {}


@pytest.mark.req("SC-10")
def test_ended_tasks_still_count(engine: EngineDriver) -> None:
    tasks = engine.run(a_spec("sweep", array=Array((0, 1))))
    engine.ended(tasks[0], code=1)
    engine.pass_time(HOUR)
    late, later = engine.submit(a_spec("late", **after(OK, tasks[0])), a_spec("later", **after(NOT_OK, tasks[0])))
    assert (waits(engine, late), waits(engine, later)) == (None, True)
    engine.ended(tasks[1], code=0)
    assert waits(engine, later) is False


@pytest.mark.req("SC-10")
def test_aftercorr_pairs_the_tasks_of_two_arrays(engine: EngineDriver) -> None:
    first = engine.run(a_spec("first", array=Array((0, 5))))
    second = engine.submit(a_spec("second", array=Array((0, 5)), **after(CORR, first[0])))
    engine.ended(first[1], code=0)
    assert [waits(engine, job) for job in second] == [True, False]
    engine.ended(first[0], code=1)
    assert [waits(engine, job) for job in second] == [None, False]
    missing = submit(
        engine.machine, [a_spec("third", array=Array((0, 6)), **after(CORR, first[0]))], Actor(ANN, admin=False)
    )
    assert isinstance(missing, Refusal)
    assert "has no task 6" in missing.message


@pytest.mark.req("SC-10", "JT-25")
@pytest.mark.parametrize("kind", [OK, CORR])
def test_a_condition_on_a_task_waits_for_that_task_alone(engine: EngineDriver, kind: DependencyKind) -> None:
    tasks = engine.run(a_spec("sweep", array=Array((0, 3, 5))))
    on = [Dependency(kind, tasks[0], index) for index in (0, 3, 5)]
    waiting = engine.submit(*[a_spec(f"on{each.task}", dependencies=(each,)) for each in on])
    engine.ended(tasks[1], code=0)
    assert [waits(engine, job) for job in waiting] == [True, False, True]
    engine.ended(tasks[0], code=1)
    assert [waits(engine, job) for job in waiting] == [None, False, True]
    assert first_unmet_condition(engine.job(waiting[0]), engine.now) == DependencyNever(kind, tasks[0], 0)
    assert first_unmet_condition(engine.job(waiting[2]), engine.now) == WaitsForJob(kind, tasks[0], 0, 5)


@pytest.mark.req("SC-10", "SC-13")
def test_the_reason_names_the_dependency_that_failed(engine: EngineDriver) -> None:
    tasks = engine.run(a_spec("sweep", array=Array((0, 1, 2))))
    conditions = tuple(Dependency(OK, tasks[0], index) for index in (0, 1, 2))
    (other,) = engine.submit(a_spec("other", dependencies=conditions))
    engine.ended(tasks[2], code=1)
    assert first_unmet_condition(engine.job(other), engine.now) == DependencyNever(OK, tasks[0], 2)


@pytest.mark.req("SC-10", "JT-25")
def test_an_ended_task_counts_while_others_of_its_array_run(engine: EngineDriver) -> None:
    tasks = engine.run(a_spec("sweep", array=Array((0, 1, 2))))
    engine.ended(tasks[1], code=1)
    gone = engine.job(tasks[1])
    engine.pass_time(HOUR)
    spec = a_spec("other", dependencies=(Dependency(OK, tasks[0], 1),))
    assert named_elsewhere(engine.machine, [spec]) == {tasks[1]}
    engine.act(submit(engine.machine, [spec], Actor(ANN, admin=False), remembered=[gone]))
    (other,) = engine.machine.queue
    assert waits(engine, other) is None


@pytest.mark.req("SC-10", "JT-25")
def test_a_task_that_never_was_is_refused_by_its_name(engine: EngineDriver) -> None:
    tasks = engine.run(a_spec("sweep", array=Array((0, 1))))
    (alone,) = engine.submit(a_spec("alone"))
    for condition in (Dependency(OK, tasks[0], 7), Dependency(OK, alone, 0), Dependency(OK, tasks[1], 0)):
        refused = submit(engine.machine, [a_spec("other", dependencies=(condition,))], Actor(ANN, admin=False))
        assert isinstance(refused, Refusal)
        assert refused.message.startswith(f"dependencies: there is no job {condition.target};")


@pytest.mark.req("SC-10", "JT-42")
def test_an_edited_task_may_wait_for_another_task_but_not_for_itself(engine: EngineDriver) -> None:
    tasks = engine.submit(a_spec("sweep", array=Array((0, 1)), hold=True))
    held = engine.job(tasks[1])
    itself = edit(engine.machine, held, replace(held.spec, dependencies=(Dependency(OK, tasks[0], 1),)))
    assert isinstance(itself, Refusal)
    engine.act(edit(engine.machine, held, replace(held.spec, dependencies=(Dependency(OK, tasks[0], 0),))))
    assert waits(engine, tasks[1])


@pytest.mark.req("SC-10")
def test_a_singleton_waits_for_its_namesakes_in_turn(engine: EngineDriver) -> None:
    (first,) = engine.run(a_spec("nightly"))
    second, third = engine.submit(*[a_spec("nightly", dependencies=(SINGLETON,))] * 2)
    (bobs,) = engine.submit(a_spec("nightly", dependencies=(SINGLETON,)), by=BOB)
    assert [waits(engine, job) for job in (second, third, bobs)] == [True, True, False]
    engine.ended(first, code=1)
    assert [waits(engine, job) for job in (second, third)] == [False, True]
    engine.act(decide.cancel(engine.job(second), engine.now, None))
    assert waits(engine, third) is False


@pytest.mark.req("SC-10")
def test_the_tasks_of_a_singleton_array_run_one_by_one(engine: EngineDriver) -> None:
    tasks = engine.submit(a_spec("sweep", array=Array((0, 1, 2)), dependencies=(SINGLETON,)))
    assert [waits(engine, job) for job in tasks] == [False, True, True]
    engine.act(decide.cancel(engine.job(tasks[0]), engine.now, None))
    assert [waits(engine, job) for job in tasks[1:]] == [False, True]


@pytest.mark.req("SC-10")
def test_renaming_a_singleton_releases_it(engine: EngineDriver) -> None:
    (first,) = engine.submit(a_spec("nightly", hold=True))
    (second,) = engine.submit(a_spec("nightly", dependencies=(SINGLETON,)))
    (third,) = engine.submit(a_spec("third", **after(OK, first)))
    engine.act(edit(engine.machine, engine.job(first), a_spec("other")))
    assert waits(engine, second) is False
    assert waits(engine, third)


@pytest.mark.req("SC-10")
def test_all_jobs_that_end_together_satisfy_dependencies_together(engine: EngineDriver) -> None:
    tasks = engine.submit(a_spec("sweep", array=Array((0, 1)), hold=True))
    (other,) = engine.submit(a_spec("other", **after(ANY, tasks[0])))
    engine.act([body for job in tasks for body in decide.cancel(engine.job(job), engine.now, None)])
    assert waits(engine, other) is False
    assert sum(isinstance(record.body, DependencyMet) for record in engine.journal) == 1


@pytest.mark.req("SC-10")
def test_jobs_cancelled_together_record_no_failed_dependency(engine: EngineDriver) -> None:
    (first,) = engine.submit(a_spec("first", hold=True))
    engine.submit(a_spec("second", **after(OK, first)))
    engine.act(decide.cancel_all(engine.machine, engine.now))
    assert not any(isinstance(record.body, DependencyFailed) for record in engine.journal)


@pytest.mark.req("SC-10", "JT-25")
def test_unknown_jobs_and_those_of_others_are_refused(engine: EngineDriver) -> None:
    (bobs,) = engine.submit(a_spec("bobs"), by=BOB)
    for job in (JobId(99), bobs):
        refused = submit(engine.machine, [a_spec("mine", **after(OK, job))], Actor(ANN, admin=False))
        assert isinstance(refused, Refusal)
        assert refused.message.startswith(f"dependencies: there is no job {job}")
    assert not isinstance(submit(engine.machine, [a_spec("mine", **after(OK, bobs))], Actor(ANN, admin=True)), Refusal)


@pytest.mark.req("SC-10")
def test_jobs_known_only_to_accounting_satisfy_dependencies(engine: EngineDriver) -> None:
    (first,) = engine.run(a_spec("first"))
    engine.ended(first, code=3)
    gone = engine.job(first)
    engine.pass_time(HOUR)
    spec = a_spec("second", **after(OK, first))
    assert named_elsewhere(engine.machine, [spec]) == {first}
    assert isinstance(submit(engine.machine, [spec], Actor(ANN, admin=False)), Refusal)
    engine.act(submit(engine.machine, [spec], Actor(ANN, admin=False), remembered=[gone]))
    (second,) = engine.machine.queue
    assert waits(engine, second) is None


@pytest.mark.req("SC-10", "JT-42")
def test_an_edit_evaluates_new_dependencies_and_keeps_satisfied_ones(engine: EngineDriver) -> None:
    first, second = engine.run(a_spec("first"), a_spec("second"))
    (third,) = engine.submit(a_spec("third", **after(OK, first, second)))
    engine.ended(first, code=0)
    engine.act(edit(engine.machine, engine.job(third), a_spec("third", cpus=2, **after(OK, first, second))))
    assert engine.job(third).waits_for == (Dependency(OK, second),)
    engine.act(edit(engine.machine, engine.job(third), a_spec("third", **after(OK, first))))
    assert waits(engine, third) is False
    engine.act(edit(engine.machine, engine.job(third), a_spec("third", **after(NOT_OK, first))))
    assert waits(engine, third) is None
    engine.act(edit(engine.machine, engine.job(third), a_spec("third")))
    assert waits(engine, third) is False
    assert engine.job(third).state is JobState.QUEUED


@pytest.mark.req("SC-10", "JT-42")
def test_jobs_that_would_wait_for_each_other_are_refused(engine: EngineDriver) -> None:
    (first,) = engine.submit(a_spec("first", hold=True))
    (second,) = engine.submit(a_spec("second", **after(OK, first)))
    (third,) = engine.submit(a_spec("third", **after(OK, second)))
    for other in (first, third):
        refused = edit(engine.machine, engine.job(first), a_spec("first", **after(OK, other)))
        assert isinstance(refused, Refusal)
        assert "neither would ever start" in refused.message


@pytest.mark.req("SC-10")
@pytest.mark.parametrize(("code", "waiting"), [(0, False), (1, None)])
def test_a_requeued_job_learns_of_dependencies_that_ended_while_it_was_over(
    engine: EngineDriver, code: int, waiting: bool | None
) -> None:
    (first,) = engine.run(a_spec("first"))
    (second,) = engine.submit(a_spec("second", **after(OK, first)))
    engine.act(decide.cancel(engine.job(second), engine.now, None))
    engine.ended(first, code=code)
    engine.act(requeue(engine.machine, engine.job(second), engine.now))
    assert waits(engine, second) is waiting


@pytest.mark.req("SC-10")
def test_a_failed_condition_is_named_first_and_the_others_are_kept(engine: EngineDriver) -> None:
    first, second, third = engine.run(a_spec("a"), a_spec("b"), a_spec("c"))
    (last,) = engine.submit(a_spec("d", **after(OK, first, second, third)))
    engine.ended(second, code=1)
    assert [each.job for each in engine.job(last).waits_for] == [second, first, third]
    assert engine.job(last).never == second
