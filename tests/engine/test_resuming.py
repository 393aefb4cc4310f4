"""Jobs that are interrupted and resume from their checkpoints."""

from __future__ import annotations

from datetime import UTC

import pytest

from cockpit.engine import decide, evictions, faults
from cockpit.engine.access import Actor
from cockpit.engine.effects import CheckNodes, SignalKind, SignalReplica, StartReplica
from cockpit.engine.machine import Machine
from cockpit.engine.nodes import service
from cockpit.engine.state import ClusterState
from cockpit.engine.submission.submit import submit
from cockpit.model import events
from cockpit.model.accounts import Accounts, Association, Qos
from cockpit.model.attempt import EndCause
from cockpit.model.cluster import Cluster, Preemption
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import JobState
from cockpit.model.node import NodeState
from cockpit.model.reasons import NotEnoughFree, never_starts
from cockpit.model.refusal import Refusal
from cockpit.model.resilience import ElasticResume, Resume
from cockpit.model.spec import ExcludedNode, JobSpec
from cockpit.present.reasons import reason_sentence
from cockpit.sched.explain import reason_of
from tests.builders import ANN, MINUTE, SECOND, a_node, a_spec
from tests.engine.driver import EngineDriver

LOW, HIGH = Qos(name="low", grace_seconds=20), Qos(name="high", priority=9, preempt=("low",))


def engine(mode: str = "REQUEUE", **rules) -> EngineDriver:
    driver = EngineDriver(a_node("n1", cpus=4, pool="a"), a_node("n2", cpus=4, pool="a"))
    accounts = Accounts().associations | {
        each.key: each for each in (Association(account="lab"), Association(account="lab", user="ann"))
    }
    driver.tell(
        events.ClusterConfigured(Cluster(preemption=Preemption(kind="preempt/qos", mode=(mode,)), **rules)),
        events.AccountsChanged(tuple(accounts.values()), (LOW, HIGH)),
    )
    return driver


def resuming(most: int = 2, grace: int = 60, **fields) -> JobSpec:
    resume = Resume(max_resumes=most, grace_seconds=grace, elastic=fields.pop("sizes", None))
    nodes = fields.get("nodes", 1)
    return a_spec(**{"cpus": 4, "pool": "a", "qos": "low", "resume": resume, "elastic": resume.sizes(nodes), **fields})


def begins_again(driver: EngineDriver, job: JobId) -> None:
    driver.schedule()
    driver.started(job)


def states(driver: EngineDriver, job: JobId) -> list[JobState]:
    """Every state that the job has been in since it was submitted."""
    machine, seen = Machine(ClusterState()), [JobState.QUEUED]
    for record in driver.journal:
        machine.handle(record)
        if job in machine.state.jobs and machine.state.jobs[job].state is not seen[-1]:
            seen.append(machine.state.jobs[job].state)
    return seen


@pytest.mark.req("JT-17", "JT-31")
def test_after_a_failure_a_job_is_shown_as_resuming_until_it_runs() -> None:
    driver = engine()
    (job,) = driver.run(resuming(most=1))
    driver.ended(job, lost="the machine was restarted while it ran")
    begins_again(driver, job)
    driver.ended(job, code=1)
    queued, checked, starting, running = JobState.QUEUED, JobState.PRECHECKING, JobState.STARTING, JobState.RUNNING
    once, again = [queued, checked, starting, running], [queued, checked, JobState.RESUMING, running]
    assert states(driver, job) == [*once, *again, JobState.ERROR]


@pytest.mark.req("JT-17")
def test_a_job_that_never_ran_does_not_resume() -> None:
    driver = engine()
    (job,) = driver.submit(resuming())
    driver.schedule()
    driver.act(faults.precheck_passed(driver.machine, driver.replicas(job)[0], ""))
    driver.ended(job, lost="the container could not be made: no such folder")
    driver.schedule()
    driver.act(faults.precheck_passed(driver.machine, driver.replicas(job)[0], ""))
    assert driver.job(job).state is JobState.STARTING


@pytest.mark.req("JT-17", "EL-02", "SC-08")
@pytest.mark.parametrize("mode", ["CANCEL", "REQUEUE"])
def test_preemption_is_no_failure_and_has_its_own_checkpoint_grace(mode: str) -> None:
    driver = engine(mode)
    (job,) = driver.run(resuming(most=0, grace=300))
    driver.submit(a_spec("urgent", cpus=4, nodes=2, qos="high"))
    driver.schedule()
    ending = driver.job(job).ending
    assert (ending.cause, ending.kill_at, ending.requeue) == (EndCause.PREEMPTED, driver.now + 300 * SECOND, True)
    driver.ended(job, code=255)
    assert (driver.job(job).state, driver.job(job).retries) == (JobState.QUEUED, 0)


@pytest.mark.req("JT-17")
def test_the_other_replicas_of_a_gang_are_signalled_to_save_when_one_fails() -> None:
    driver = engine()
    (job,) = driver.run(resuming(nodes=2, grace=60))
    driver.effects.clear()
    driver.ended(job, 1, lost="its container was killed from outside")
    assert driver.effects == [SignalReplica(driver.replicas(job)[0], SignalKind.TERM)]
    driver.pass_time(MINUTE)
    assert driver.effects[-1] == SignalReplica(driver.replicas(job)[0], SignalKind.KILL)
    driver.ended(job, 0, signal=9)
    assert (driver.job(job).state, driver.job(job).retries) == (JobState.QUEUED, 1)


@pytest.mark.req("JT-17", "JT-36")
def test_the_checkpoint_grace_applies_also_to_a_stop_and_a_time_limit() -> None:
    driver = engine()
    stopped, late = driver.run(
        resuming(name="stopped", grace=70), resuming(name="late", grace=80, time_limit_seconds=60)
    )
    driver.act(decide.cancel(driver.job(stopped), driver.now, None))
    assert driver.job(stopped).ending.kill_at == driver.now + 70 * SECOND
    driver.pass_time(MINUTE)
    assert driver.job(late).ending.kill_at == Millis(driver.now + 80 * SECOND)
    driver.ended(late, code=0)
    assert driver.job(late).state is JobState.EXPIRED


@pytest.mark.req("JT-17")
@pytest.mark.parametrize(
    ("rules", "error"),
    [
        ({"max_resumes": 3}, "resume.max_resumes: 4 is more than the 3 that this cluster allows"),
        ({"max_grace_seconds": 30}, "resume.grace_period: 60 s is more than the 30 s that this cluster allows"),
    ],
)
def test_the_administrator_bounds_resumes_and_grace(rules: dict[str, int], error: str) -> None:
    driver = engine(**rules)
    refused = submit(driver.machine, [resuming(most=4)], Actor(ANN, admin=False), now=driver.now)
    assert isinstance(refused, Refusal)
    assert refused.message == error
    driver.submit(resuming(most=3, grace=30))


@pytest.mark.req("JT-17", "EL-12")
def test_a_resuming_job_restarts_with_fewer_nodes_and_grows_when_nodes_are_free() -> None:
    driver = engine()
    scales = ElasticResume(min_nodes=1, allow_scaling=True)
    (job,) = driver.run(resuming(nodes=2, sizes=scales))
    (other,) = driver.submit(a_spec("other", cpus=4))
    driver.ended(job, 0, code=1)
    driver.ended(job, 1, signal=9)
    driver.tell(events.JobHeld(job, "ann"))
    driver.schedule()
    driver.started(other)
    driver.tell(events.JobReleased(job))
    driver.schedule()
    driver.started(job)
    assert len(driver.job(job).attempt.placement) == 1
    driver.ended(other, code=0)
    driver.schedule()
    assert len(driver.job(job).attempt.placement) == 2


@pytest.mark.req("EL-10", "JT-31")
def test_no_job_starts_before_its_nodes_pass_their_checks() -> None:
    driver = engine()
    (job,) = driver.submit(resuming(nodes=2))
    driver.effects.clear()
    driver.schedule()
    (check,) = driver.effects
    assert isinstance(check, CheckNodes)
    assert [part.node for part in check.placement] == ["n1", "n2"]
    assert driver.job(job).state is JobState.PRECHECKING
    driver.effects.clear()
    driver.act(faults.precheck_passed(driver.machine, check.replica, "n1 has its 4 CPUs"))
    assert driver.journal[-1].body == events.PrecheckPassed(job, 1, "n1 has its 4 CPUs")
    assert [type(each) for each in driver.effects] == [StartReplica, StartReplica]
    assert faults.precheck_passed(driver.machine, check.replica, "and again") == []


CARD = "card 1 (A100) does not answer any more"


def fails_check(driver: EngineDriver, job: JobId, because: str = CARD) -> NodeName:
    """Let the check of the job's first node fail, and return the node."""
    (replica, *_) = driver.replicas(job)
    node = driver.job(job).attempt.placement[0].node
    driver.act(faults.precheck_failed(driver.machine, replica, node, because, driver.now))
    return node


def on_one_node(**rules) -> EngineDriver:
    """One node of the pool serves, so that every job is checked there."""
    driver = engine(**rules)
    others = [name for name, node in driver.machine.state.nodes.items() if node.pool == "a"][1:]
    driver.tell(*(events.NodeDrained(name, "root", "repair") for name in others))
    return driver


@pytest.mark.req("EL-10")
def test_a_node_that_fails_its_check_is_excluded_for_the_job_which_keeps_its_place_in_the_queue() -> None:
    driver = engine()
    (job,) = driver.submit(resuming())
    began = driver.job(job).accrues_from
    driver.schedule()
    driver.pass_time(SECOND)
    node = fails_check(driver, job)
    waiting = driver.job(job)
    assert (waiting.state, waiting.retries, waiting.accrues_from) == (JobState.QUEUED, 0, began)
    assert driver.machine.state.nodes[node].state is NodeState.UP
    excluded = ExcludedNode(node=node, because=CARD, until=Millis(driver.now + 60 * MINUTE))
    assert waiting.spec.excluded == (excluded,)
    begins_again(driver, job)
    assert driver.job(job).attempt.placement[0].node != node
    assert driver.job(job).state is JobState.RUNNING
    (other,) = driver.submit(resuming(name="other"))
    driver.schedule()
    assert driver.job(other).attempt.placement[0].node == node


@pytest.mark.req("EL-10", "SC-20")
def test_a_job_that_may_use_no_other_node_waits_and_says_which_check_failed() -> None:
    driver = on_one_node()
    (job,) = driver.submit(resuming())
    driver.schedule()
    fails_check(driver, job)
    driver.schedule()
    assert driver.job(job).state is JobState.QUEUED
    reason = reason_of(driver.plan, driver.job(job))
    assert reason.excluded == (("n1", CARD),)
    assert not never_starts(reason)
    sentence = reason_sentence(reason, driver.now, UTC)
    assert f"n1 is excluded for this job, whose check failed there: {CARD}" in sentence


@pytest.mark.req("EL-10", "SC-20")
def test_a_job_that_waits_for_busy_nodes_names_the_excluded_one_too() -> None:
    driver = engine()
    (job,) = driver.submit(resuming())
    driver.schedule()
    node = fails_check(driver, job)
    driver.tell(events.JobHeld(job, "ann"))
    driver.run(*(a_spec(name=f"other{at}", cpus=4, pool="a", qos="low") for at in range(2)))
    driver.tell(events.JobReleased(job))
    driver.schedule()
    reason = reason_of(driver.plan, driver.job(job))
    assert isinstance(reason, NotEnoughFree)
    assert reason.excluded == ((node, CARD),)
    assert node not in [each.node for each in reason.nearest]


@pytest.mark.req("EL-10")
def test_an_exclusion_ends_after_its_time_and_the_job_tries_the_node_again() -> None:
    driver = on_one_node()
    (job,) = driver.submit(resuming())
    driver.schedule()
    fails_check(driver, job)
    driver.schedule()
    assert driver.machine.next_at == driver.now + 60 * MINUTE
    driver.pass_time(60 * MINUTE)
    assert driver.job(job).spec.excluded == ()
    assert driver.machine.state.failed_prechecks == {}
    driver.schedule()
    assert driver.job(job).state is JobState.PRECHECKING


@pytest.mark.req("EL-10")
def test_the_check_of_a_second_job_that_fails_drains_the_node() -> None:
    driver = on_one_node()
    first, second = driver.submit(resuming(name="first"), resuming(name="second"))
    driver.tell(events.JobHeld(second, "ann"))
    driver.schedule()
    node = fails_check(driver, first)
    driver.tell(events.JobReleased(second))
    driver.schedule()
    fails_check(driver, second, "the disk is full")
    failed = driver.machine.state.nodes[node]
    assert (failed.state, failed.state_reason, failed.drained_by) == (NodeState.DRAINED, "the disk is full", "engine")
    assert isinstance(service.resume(driver.machine, node, "root"), list)
    driver.act(service.resume(driver.machine, node, "root"))
    assert driver.job(first).spec.excluded == driver.job(second).spec.excluded == ()
    driver.schedule()
    again = fails_check(driver, first)
    assert driver.machine.state.nodes[again].state is NodeState.UP  # failures before the resume count no more


@pytest.mark.req("EL-10")
def test_failures_of_one_job_alone_never_drain_a_node() -> None:
    driver = on_one_node()
    (job,) = driver.submit(resuming())
    for _ in range(3):
        driver.schedule()
        node = fails_check(driver, job)
        driver.pass_time(60 * MINUTE)
    assert driver.machine.state.nodes[node].state is NodeState.UP


@pytest.mark.req("EL-10")
def test_the_administrators_setting_drains_a_node_at_the_first_failure() -> None:
    driver = engine(drain_after_prechecks=1)
    (job,) = driver.submit(resuming())
    driver.schedule()
    node = fails_check(driver, job)
    assert driver.machine.state.nodes[node].state_reason == CARD
    assert driver.job(job).spec.excluded[0].node == node


@pytest.mark.req("EL-10")
def test_resuming_a_node_in_service_readmits_it_for_the_jobs_that_exclude_it() -> None:
    driver = on_one_node()
    (job,) = driver.submit(resuming())
    driver.schedule()
    node = fails_check(driver, job)
    assert service.resume(driver.machine, node, "root") == [events.NodeReadmitted(job, node, "root")]
    driver.act(service.resume(driver.machine, node, "root"))
    assert isinstance(service.resume(driver.machine, node, "root"), Refusal)
    driver.schedule()
    assert driver.job(job).state is JobState.PRECHECKING


@pytest.mark.req("EL-10", "TR-03")
def test_a_journal_from_before_exclusions_gives_its_old_result() -> None:
    driver = on_one_node()
    (job,) = driver.submit(resuming())
    driver.schedule()
    # what an engine without exclusions wrote
    driver.tell(events.NodeDrained("n1", "engine", CARD), events.PrecheckFailed(job, 1, NodeName("n1"), CARD))
    assert driver.machine.state.nodes["n1"].state is NodeState.DRAINED
    assert driver.job(job).spec.excluded == ()
    driver.act(service.resume(driver.machine, "n1", "root"))
    driver.schedule()
    assert driver.job(job).state is JobState.PRECHECKING


@pytest.mark.req("EL-10")
def test_an_edit_keeps_the_excluded_nodes() -> None:
    driver = on_one_node()
    (job,) = driver.submit(resuming())
    driver.schedule()
    fails_check(driver, job)
    excluded = driver.job(job).spec.excluded
    driver.tell(events.JobEdited(job, resuming(name="other"), "lab", "low"))
    assert (driver.job(job).spec.name, driver.job(job).spec.excluded) == ("other", excluded)


@pytest.mark.req("EL-10", "JT-36")
def test_a_job_whose_nodes_are_being_checked_stops_at_once() -> None:
    driver = engine()
    (job,) = driver.submit(resuming())
    driver.schedule()
    driver.act(decide.cancel(driver.job(job), driver.now, None))
    assert driver.job(job).state is JobState.STOPPED
    assert faults.precheck_passed(driver.machine, driver.replicas(job)[0], "") == []


@pytest.mark.req("EL-10", "JT-31")
@pytest.mark.parametrize("fails", [False, True])
def test_a_requested_end_during_the_node_checks_happens_after_them(fails: bool) -> None:
    driver = engine()
    again, stopped = driver.submit(resuming(name="again"), resuming(name="stopped", time_limit_seconds=60))
    driver.schedule()
    driver.act(evictions.requeue(driver.machine, driver.job(again), driver.now))
    driver.pass_time(MINUTE)
    assert driver.job(stopped).ending is None  # its time has not begun
    driver.act(decide.cancel(driver.job(stopped), driver.now, None))
    for job in (again, stopped):
        (replica,) = driver.replicas(job)
        node = driver.job(job).attempt.placement[0].node
        driver.act(
            faults.precheck_failed(driver.machine, replica, node, "no room", driver.now)
            if fails
            else faults.precheck_passed(driver.machine, replica, "")
        )
    assert driver.job(again).state is JobState.QUEUED
    assert (driver.job(stopped).state, driver.job(stopped).end_cause) == (JobState.STOPPED, EndCause.STOP)


@pytest.mark.req("EL-10")
def test_an_exclusion_outlives_its_job_and_ends_without_it() -> None:
    driver = engine(precheck_exclusion_seconds=7200)
    (job,) = driver.submit(resuming())
    driver.schedule()
    fails_check(driver, job)
    driver.act(decide.cancel(driver.job(job), driver.now, None))
    driver.pass_time(61 * MINUTE)
    assert job not in driver.machine.state.jobs  # archived
    assert driver.machine.state.failed_prechecks == {"n1": {job: driver.machine.next_at}}
    driver.pass_time(60 * MINUTE)
    assert driver.machine.state.failed_prechecks == {}
