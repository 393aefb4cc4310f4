"""What a cycle reads is the engine's state itself, looked at: never a copy of it."""

from __future__ import annotations

import pytest

from cockpit.engine import decide
from cockpit.model.attempt import EndCause, Suspension
from cockpit.model.events import EventRecord, JobArchived, JobEnded, JobSuspended
from cockpit.model.job import JobState
from tests.builders import a_node, a_spec
from tests.engine.driver import EngineDriver

pytestmark = pytest.mark.req("SC-14")


def test_a_snapshot_shows_what_happens_after_it_was_taken() -> None:
    engine = EngineDriver(a_node("n1"))
    (job,) = engine.submit(a_spec())
    seen = engine.machine.snapshot(engine.now)
    engine.schedule()
    assert seen.jobs[job] is engine.job(job)
    assert job in seen.occupied
    assert job in seen.ends


def test_every_value_of_a_snapshot_view_equals_the_engines() -> None:
    engine = EngineDriver(a_node("n1"), a_node("n2"))
    engine.submit(a_spec("a"), a_spec("b", hold=True))
    engine.schedule()
    state, seen = engine.machine.state, engine.machine.snapshot(engine.now)
    assert all(seen.jobs[job] is state.jobs[job] for job in state.jobs)
    assert all(seen.nodes[name] is state.nodes[name] for name in state.nodes)
    assert all(each is state.jobs[each.id] for each in seen.queue)
    assert (seen.cluster, seen.accounts) == (state.cluster, state.accounts)
    assert seen.usage is state.usage
    assert seen.reservations is state.reservations


def test_a_snapshot_view_is_read_only() -> None:
    engine = EngineDriver(a_node("n1"))
    engine.submit(a_spec())
    seen = engine.machine.snapshot(engine.now)
    for mapping in (seen.jobs, seen.nodes, seen.occupied, seen.ends):
        assert not hasattr(mapping, "__setitem__")
    with pytest.raises(AttributeError):
        seen.version = 0


def test_the_version_of_a_view_grows_with_every_event_and_identifies_its_changes() -> None:
    engine = EngineDriver(a_node("n1"))
    (job,) = engine.submit(a_spec())
    first = engine.machine.snapshot(engine.now)
    engine.act(decide.hold(engine.job(job), "root"))
    second = engine.machine.snapshot(engine.now)
    assert second.version > first.version == second.changes_from
    assert list(second.touched) == [job]


@pytest.mark.req("SC-08")
def test_a_suspended_job_that_ends_and_is_archived_at_once_is_forgotten() -> None:
    engine = EngineDriver(a_node("n1", cpus=4))
    (job,) = engine.run(a_spec("a"))
    engine.act([JobSuspended(job, Suspension(by="root"))])
    assert list(engine.machine.peek(engine.now).suspended) == [job]
    for body in (JobEnded(job, JobState.STOPPED, EndCause.STOP), JobArchived(job)):
        seq = engine.machine.state.seq + 1
        engine.machine.follow(EventRecord(seq=seq, at=engine.now, actor="root", origin="test", body=body))
    assert list(engine.machine.peek(engine.now).suspended) == []
    assert job not in engine.machine.occupied
