"""Submission, holding back, and the order of starts."""

from __future__ import annotations

import pytest

from cockpit.engine import decide
from cockpit.engine.access import Actor
from cockpit.engine.evictions import requeue
from cockpit.engine.submission.submit import edit, submit
from cockpit.model import events
from cockpit.model.attempt import EndCause
from cockpit.model.events import EventRecord
from cockpit.model.ids import NodeName
from cockpit.model.job import JobState
from cockpit.model.reasons import Held, NeverFits, NotEnoughFree
from cockpit.model.refusal import Refusal
from cockpit.sched.explain import reason_of
from tests.builders import ANN, BOB, a_node, a_spec
from tests.engine.driver import EngineDriver


@pytest.fixture
def engine() -> EngineDriver:
    return EngineDriver(a_node("n1", cpus=4, cards=4), a_node("n2", cpus=4, cards=4))


@pytest.mark.req("JT-01")
def test_a_name_is_in_use_until_its_job_ends(engine: EngineDriver) -> None:
    (job,) = engine.run(a_spec("bert"))
    refused = submit(engine.machine, [a_spec("bert")], Actor(ANN, admin=False))
    assert isinstance(refused, Refusal)
    assert refused.message.startswith("name: job 1 ")
    assert not isinstance(submit(engine.machine, [a_spec("bert")], Actor(BOB, admin=False)), Refusal)
    engine.ended(job, code=0)
    assert not isinstance(submit(engine.machine, [a_spec("bert")], Actor(ANN, admin=False)), Refusal)


@pytest.mark.req("JT-01")
def test_one_invalid_job_refuses_the_submission_and_every_error_is_reported(engine: EngineDriver) -> None:
    refused = submit(engine.machine, [a_spec("a"), a_spec("a"), a_spec("b/c", nodes=0)], Actor(ANN, admin=False))
    assert isinstance(refused, Refusal)
    lines = refused.message.splitlines()
    assert [line.split(":")[0] for line in lines] == ["jobs[1].name", "jobs[2].name", "jobs[2].nodes"]


@pytest.mark.req("JT-14", "SC-04")
def test_a_job_that_can_never_run_is_refused_with_the_field(engine: EngineDriver) -> None:
    refused = submit(engine.machine, [a_spec(card_milli=9000)], Actor(ANN, admin=False))
    assert isinstance(refused, Refusal)
    ((path, reason),) = refused.reasons
    assert path == "specs[0].cards"
    assert isinstance(reason, NeverFits)
    assert reason.most == 4


@pytest.mark.req("SC-04", "JT-14")
def test_a_gang_waits_whole_and_starts_whole(engine: EngineDriver) -> None:
    (small,) = engine.run(a_spec("small", card_milli=1000))
    (gang,) = engine.submit(a_spec("gang", nodes=2, card_milli=4000))
    engine.schedule()
    assert engine.job(gang).state is JobState.QUEUED
    assert isinstance(reason_of(engine.plan, engine.job(gang)), NotEnoughFree)
    engine.ended(small, code=0)
    engine.schedule()
    attempt = engine.job(gang).attempt
    assert attempt is not None
    assert {each.node for each in attempt.placement} == {NodeName("n1"), NodeName("n2")}


@pytest.mark.req("SC-13")
def test_a_held_job_names_the_user_who_held_it_and_starts_when_released(engine: EngineDriver) -> None:
    (job,) = engine.submit(a_spec(hold=True))
    engine.schedule()
    assert reason_of(engine.plan, engine.job(job)) == Held("ann", engine.now)
    assert isinstance(decide.hold(engine.job(job), "bob"), Refusal)
    engine.act(decide.release(engine.job(job)))
    engine.schedule()
    assert engine.job(job).state is JobState.STARTING
    assert isinstance(decide.release(engine.job(job)), Refusal)
    assert isinstance(decide.hold(engine.job(job), "ann"), Refusal)


@pytest.mark.req("JT-42")
def test_a_queued_job_is_edited_in_its_place(engine: EngineDriver) -> None:
    job, other = engine.submit(a_spec("a", hold=True), a_spec("b", hold=True))
    assert engine.act(edit(engine.machine, engine.job(job), a_spec("c", cpus=2))) is None
    assert list(engine.machine.queue) == [job, other]
    assert engine.machine.live_job_named("ann", "a") is None
    assert engine.machine.live_job_named("ann", "c") == job
    assert engine.machine.live_job_named("bob", "c") is None
    taken = edit(engine.machine, engine.job(job), a_spec("b"))
    assert isinstance(taken, Refusal)
    assert taken.message.startswith("name: job 2 ")
    too_much = edit(engine.machine, engine.job(job), a_spec("c", cpus=99))
    assert isinstance(too_much, Refusal)
    assert too_much.reasons[0][0] == "specs[0].cpus"
    engine.act(decide.release(engine.job(job)))
    engine.schedule()
    assert isinstance(edit(engine.machine, engine.job(job), a_spec("d")), Refusal)


@pytest.mark.req("SC-14")
def test_a_job_held_after_the_plan_does_not_start(engine: EngineDriver) -> None:
    (job,) = engine.submit(a_spec())
    from cockpit.sched.cycle import cycle
    from cockpit.sched.policy import Policy

    plan = cycle(engine.machine.snapshot(engine.now), None, Policy())
    assert plan.starts
    engine.act(decide.hold(engine.job(job), "ann"))
    assert decide.carry_out_plan(engine.machine, plan) == []


@pytest.mark.req("SC-14")
def test_a_job_that_ended_and_was_archived_between_views_is_in_no_view_of_the_queue(engine: EngineDriver) -> None:
    (stays, goes) = engine.submit(a_spec("stays"), a_spec("goes"))
    machine = engine.machine
    assert [job.id for job in machine.peek(engine.now).queue] == [stays, goes]
    for body in (events.JobEnded(goes, JobState.STOPPED, EndCause.STOP), events.JobArchived(goes)):
        machine.follow(EventRecord(seq=machine.state.seq + 1, at=engine.now, actor="test", origin="test", body=body))
    assert [job.id for job in machine.peek(engine.now).queue] == [stays]


@pytest.mark.req("JT-42")
def test_an_ended_job_is_not_requeued_while_another_has_its_name(engine: EngineDriver) -> None:
    (first,) = engine.run(a_spec("a"))
    engine.ended(first)
    (other,) = engine.submit(a_spec("a", hold=True))
    refused = requeue(engine.machine, engine.job(first), engine.now)
    assert isinstance(refused, Refusal)
    assert refused.message.startswith("Another job of project ann has the name of job 1 now")
    engine.act(decide.cancel(engine.job(other), engine.now, None))
    assert engine.act(requeue(engine.machine, engine.job(first), engine.now)) is None
    assert engine.job(first).state is JobState.QUEUED
