"""What the steps that workers report say about interruptions of an elastic job: where it went on, and what was lost."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.engine import decide
from cockpit.engine.steps import StepLog, report_steps
from cockpit.engine.views.training import speed_with, training
from cockpit.model import events
from cockpit.model.attempt import ExitStatus
from cockpit.model.ids import JobId, ReplicaId
from cockpit.model.job import JobState
from cockpit.model.resilience import JobRestart, WorkerRestart
from cockpit.model.steps import Interruption, SizeSpeed, SpeedSource, StepReport, Training
from tests.builders import HOUR, MINUTE, SECOND, a_spec
from tests.engine.driver import HOLD_SECONDS, EngineDriver
from tests.engine.test_workers import begun, elastic, engine, told


class Trainer:
    """Reports the steps of a job's workers to the engine, as the host does."""

    def __init__(self, driver: EngineDriver, job: JobId) -> None:
        self.driver, self.job, self.log = driver, job, StepLog()

    def replica(self, rank: int) -> ReplicaId:
        attempt = self.driver.job(self.job).attempt
        assert attempt is not None
        return ReplicaId(self.job, attempt.number, rank)

    def at(self, step: int, *ranks: int, began: int = 0, **fields: object) -> None:
        """Let the workers of these ranks report a step, a second later."""
        self.driver.pass_time(SECOND)
        for rank in ranks or (0,):
            self.log.note(self.replica(rank), StepReport(step=step, began=began, **fields))
            self.driver.act(report_steps(self.driver.machine, self.log, self.job))

    def ends(self, rank: int, **status: object) -> None:
        replica = self.replica(rank)
        decided = decide.replica_ended(
            self.driver.machine,
            replica,
            ExitStatus(**status),
            self.driver.now,
            HOLD_SECONDS,
            None,
            self.log.take(replica),
        )
        self.driver.act(decided)

    @property
    def resumed(self) -> list[tuple[Interruption, int | None, int]]:
        return [(each.cause, each.reached, each.resumed) for each in told(self.driver, events.TrainingResumed)]

    def progress(self) -> Training:
        known = training(self.driver.job(self.job), self.log, self.driver.now)
        assert known is not None
        return known


def trains(least: int, wanted: int, most: int, nodes: int = 4, **fields: object) -> Trainer:
    driver = engine(nodes)
    (job,) = begun(driver, elastic("train", least, wanted, most, **fields))
    return Trainer(driver, job)


def preempt(trainer: Trainer, nodes: int) -> JobId:
    (urgent,) = trainer.driver.submit(a_spec("urgent", cpus=4, nodes=nodes, qos="high"))
    trainer.driver.schedule()
    return urgent


@pytest.mark.req("EL-04")
def test_a_suspension_costs_the_steps_since_the_checkpoint_that_was_loaded() -> None:
    trainer = trains(2, 2, 2, nodes=2)
    trainer.at(120, 0, 1, checkpoint=100)
    preempt(trainer, 2)
    for rank in (0, 1):
        trainer.ends(rank, code=255)
    assert trainer.driver.job(trainer.job).shown_state is JobState.SUSPENDED
    assert trainer.progress().unknown == 0, "it is not known yet whether it cost anything"
    trainer.driver.schedule()
    urgent = next(job for job in trainer.driver.machine.state.jobs.values() if job.spec.name == "urgent")
    trainer.driver.started(urgent.id)
    for rank in (0, 1):
        trainer.driver.ended(urgent.id, rank, code=0)
    trainer.driver.schedule()
    trainer.driver.started(trainer.job)
    assert trainer.progress().unknown == 1
    trainer.at(103, 0, 1, began=100)
    trainer.at(104, 0, 1, began=100)
    assert trainer.resumed == [(Interruption.PREEMPTED, 120, 100)]
    progress = trainer.progress()
    assert (progress.step, progress.lost, progress.unknown) == (104, 20, 0)


@pytest.mark.req("EL-04")
def test_a_script_that_reports_after_its_first_step_has_loaded_the_checkpoint_before_it() -> None:
    trainer = trains(1, 1, 1, nodes=1, backoff_limit=3, job_restart_policy=JobRestart.ON_FAILURE)
    trainer.at(120, checkpoint=100)
    trainer.ends(0, code=1)
    trainer.driver.schedule()
    trainer.driver.started(trainer.job)
    trainer.at(101, began=101)
    assert trainer.resumed == [(Interruption.WORKER_FAILED, 120, 100)]


@pytest.mark.req("EL-04")
def test_what_an_attempt_without_reports_has_reached_stays_unknown_and_is_never_zero() -> None:
    trainer = trains(1, 1, 1, nodes=1, backoff_limit=3, job_restart_policy=JobRestart.ON_FAILURE)
    trainer.ends(0, code=1)
    trainer.driver.schedule()
    trainer.driver.started(trainer.job)
    assert trainer.progress().unknown == 1
    trainer.at(7, began=5)
    assert trainer.resumed == [(Interruption.WORKER_FAILED, None, 5)]
    (resumption,) = trainer.progress().resumptions
    assert resumption.lost is None
    assert trainer.progress().unknown == 1


@pytest.mark.req("EL-01")
def test_a_reclaim_after_which_the_others_train_on_has_cost_nothing() -> None:
    trainer = trains(1, 3, 3, nodes=3)
    trainer.at(50, 0, 1, 2)
    preempt(trainer, 1)
    trainer.at(51, 0, 1, 2)
    assert trainer.resumed == []
    trainer.at(52, 0, 1)
    assert trainer.resumed == [], "the step that was under way may have been one of the old ring"
    trainer.at(54, 0, 1)
    trainer.at(60, 0, 1)
    assert trainer.progress().checkpoint is None
    assert trainer.resumed == [(Interruption.PREEMPTED, 51, 51)]
    assert (trainer.progress().lost, trainer.progress().unknown) == (0, 0)


@pytest.mark.req("EL-07")
def test_a_killed_worker_costs_the_steps_by_which_the_others_fall_back_once_for_all_of_them() -> None:
    trainer = trains(2, 3, 3, nodes=3, worker_restart_policy=WorkerRestart.ON_FAILURE, backoff_limit=3)
    trainer.at(80, 0, 1, 2)
    now = trainer.driver.now
    trainer.ends(0, signal=9)
    fallen = {"began": 60, "run": 1, "before": 81, "began_at": now}
    trainer.at(61, 2, **fallen)
    assert trainer.resumed == [], "the first worker that is left has not reported it"
    trainer.at(62, 1, **fallen)
    trainer.at(63, 1, 2, **fallen)
    assert trainer.resumed == [(Interruption.WORKER_FAILED, 81, 60)]
    # The next interruption: worker 1 leaves, and worker 2 is the first. Its old fall is not a new one.
    trainer.driver.pass_time(2 * MINUTE)
    trainer.ends(1, signal=9)
    trainer.at(90, 2, **fallen)
    trainer.at(95, 2, **fallen)
    assert trainer.resumed[1:] == [(Interruption.WORKER_FAILED, 90, 90)]


@pytest.mark.req("EL-01")
def test_a_checkpoint_outlives_the_worker_that_saved_it() -> None:
    trainer = trains(2, 3, 3, nodes=3, worker_restart_policy=WorkerRestart.ON_FAILURE, backoff_limit=3)
    trainer.at(80, 0, checkpoint=50)
    trainer.at(80, 1, 2)
    trainer.ends(0, signal=9)
    trainer.at(83, 1)
    assert (trainer.progress().step, trainer.progress().checkpoint) == (83, 50)


@pytest.mark.req("EL-07")
def test_others_that_fall_back_after_some_more_steps_have_lost_them() -> None:
    trainer = trains(2, 2, 2, nodes=2, worker_restart_policy=WorkerRestart.ON_FAILURE, backoff_limit=3)
    trainer.at(80, 0, 1)
    trainer.ends(1, signal=9)
    trainer.at(81, 0)
    trainer.at(83, 0)
    trainer.at(64, 0, began=60, run=1, before=83, began_at=trainer.driver.now + SECOND)
    assert trainer.resumed == [(Interruption.WORKER_FAILED, 81, 81), (Interruption.WORKER_FAILED, 83, 60)]
    assert trainer.progress().lost == 23


@pytest.mark.req("EL-13")
def test_counted_lines_give_a_speed_and_no_steps_lost() -> None:
    trainer = trains(1, 3, 3, nodes=3)
    lines = {"counted": True, "speeds": (SizeSpeed(3, 50, 25_000.0),)}
    trainer.at(50, 0, **lines)
    preempt(trainer, 1)
    for step in (60, 70, 80):
        trainer.at(step, 0, **lines)
    assert trainer.resumed == []
    progress = trainer.progress()
    assert (progress.step, progress.counted, progress.unknown) == (80, True, 1)
    assert [(each.workers, each.per_second) for each in progress.speeds] == [(3, 2.0)]


@pytest.mark.req("EL-01")
def test_the_end_is_predicted_for_the_sizes_that_the_job_has_had_and_others() -> None:
    trainer = trains(1, 2, 4, nodes=2, time_limit_seconds=3600)
    trainer.at(100, 0, total=1100, speeds=(SizeSpeed(2, 100, 50_000.0),))
    ends = {each.workers: each for each in trainer.progress().ends}
    assert [*ends] == [1, 2, 3, 4]
    assert (ends[2].per_second, ends[2].source, ends[4].per_second, ends[4].source) == (
        *(2.0, SpeedSource.MEASURED),
        *(4.0, SpeedSource.PROPORTIONAL),
    )
    assert ends[2].end_at == trainer.driver.now + 500 * SECOND
    assert ends[4].end_at == trainer.driver.now + 250 * SECOND
    assert trainer.progress().limit_at == trainer.driver.job(trainer.job).attempt.replicas[0].started_at + HOUR
    # Without a total, the speed is known, and the end is not.
    trainer.at(101, 0, speeds=(SizeSpeed(2, 100, 50_000.0),))
    assert {each.end_at for each in trainer.progress().ends} == {None}


@pytest.mark.req("EL-01")
def test_a_job_that_has_not_been_measured_has_no_predicted_end() -> None:
    trainer = trains(1, 2, 4, nodes=2)
    assert trainer.progress().ends == ()
    trainer.at(2, 0, total=1100, speeds=(SizeSpeed(2, 2, 1.0),))
    assert trainer.progress().ends == (), "two steps are no measurement"


@pytest.mark.req("EL-01")
def test_speeds_at_other_sizes_follow_from_two_measured_ones() -> None:
    # t(n) = 0.1 s + 0.8 s / n
    measured = {1: 1 / 0.9, 4: 1 / 0.3}
    for workers, seconds in ((2, 0.5), (8, 0.2)):
        per_second, source = speed_with(workers, measured)
        assert per_second == pytest.approx(1 / seconds)
        assert source is SpeedSource.ESTIMATED
    assert speed_with(4, measured) == (measured[4], SpeedSource.MEASURED)
    # More workers made it slower: they are assumed to help nothing, and never less.
    assert speed_with(8, {1: 2.0, 4: 1.0})[0] == pytest.approx(1 / 0.75)
    # Better than in proportion: no part of a step can take less than no time.
    assert speed_with(8, {1: 1.0, 2: 4.0})[0] > 0


@pytest.mark.req("EL-01", "EL-08")
def test_what_the_job_had_above_its_minimum_counts_by_the_time_of_each_size() -> None:
    trainer = trains(1, 3, 3, nodes=3, card_milli=1000)
    trainer.driver.pass_time(HOUR - SECOND)
    preempt(trainer, 1)
    trainer.ends(2, code=255)
    trainer.driver.pass_time(HOUR)
    extra = trainer.progress().extra
    # Two workers above one for the first hour, one for the second.
    assert extra.card_milli_ms == pytest.approx(3 * 1000 * HOUR, rel=1e-3)
    assert extra.cpu_ms == pytest.approx(3 * 4 * HOUR, rel=1e-3)


@pytest.mark.req("EL-01")
def test_an_ordinary_job_has_no_training() -> None:
    driver = engine()
    (job,) = begun(driver, a_spec("other", cpus=4))
    assert training(driver.job(job), StepLog(), driver.now) is None


@pytest.mark.req("EL-01")
def test_reports_of_jobs_that_have_gone_or_end_are_ignored() -> None:
    trainer = trains(1, 2, 2, nodes=2)
    trainer.at(5)
    assert report_steps(trainer.driver.machine, trainer.log, JobId(99)) == []
    job = trainer.driver.job(trainer.job)
    trainer.driver.act(decide.cancel(job, trainer.driver.now, None))
    assert report_steps(trainer.driver.machine, trainer.log, trainer.job) == []
    stored = replace(StepReport(step=5, began=0))
    trainer.log.note(trainer.replica(1), stored)
    trainer.ends(1, code=255)
    assert trainer.driver.job(trainer.job).attempt.replicas[1].steps == stored
