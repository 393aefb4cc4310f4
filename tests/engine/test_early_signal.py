"""The signal that a batch script gets before its time limit."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.engine.effects import SignalKind, SignalReplica
from cockpit.model import events
from cockpit.model.attempt import EndCause
from cockpit.model.batchscript import BatchScript, EarlySignal
from cockpit.model.ids import JobId
from cockpit.model.spec import HomeAccess, JobSpec, Mode
from tests.builders import HOUR, a_node, a_spec
from tests.engine.driver import EngineDriver

pytestmark = pytest.mark.req("LA-71")
MINUTE = HOUR // 60


@pytest.fixture
def engine() -> EngineDriver:
    return EngineDriver(a_node("n1", cpus=4), a_node("n2", cpus=4))


def a_script(seconds: int, **fields: object) -> JobSpec:
    early = EarlySignal(name="USR1", seconds=seconds)
    script = BatchScript(text="#!/bin/sh\n", work_dir="/w", early_signal=early)
    return a_spec("a", time_limit_seconds=3600, mode=Mode.SLURM, home=HomeAccess.RW, script=script, **fields)


def test_the_early_signal_is_sent_once_before_the_limit_and_ends_no_job(engine: EngineDriver) -> None:
    (job,) = engine.run(a_script(600))
    engine.started(job)
    engine.pass_time(49 * MINUTE)
    assert not warned(engine, job)
    engine.pass_time(2 * MINUTE)
    assert warned(engine, job)
    assert engine.job(job).ending is None
    version = engine.job(job).version
    engine.pass_time(MINUTE)
    assert engine.job(job).version == version
    engine.pass_time(9 * MINUTE)
    ending = engine.job(job).ending
    assert ending is not None
    assert ending.cause is EndCause.TIME_LIMIT


def test_the_early_signal_moves_with_a_changed_time_limit(engine: EngineDriver) -> None:
    (job,) = engine.run(a_script(600))
    engine.started(job)
    engine.tell(events.TimeLimitSet(job, 7200))
    engine.pass_time(HOUR)
    assert not warned(engine, job)
    engine.pass_time(51 * MINUTE)
    assert warned(engine, job)


def test_the_early_signal_is_sent_only_to_the_container_of_the_script(engine: EngineDriver) -> None:
    (job,) = engine.run(a_script(600, nodes=2))
    first, _second = engine.replicas(job)
    engine.tell(events.JobWarned(job))
    assert [each for each in engine.effects if isinstance(each, SignalReplica)] == [
        SignalReplica(first, SignalKind.EARLY)
    ]


def test_a_job_without_an_early_signal_is_only_ended(engine: EngineDriver) -> None:
    spec = a_script(600)
    assert spec.script is not None
    (job,) = engine.run(replace(spec, script=replace(spec.script, early_signal=None)))
    engine.started(job)
    engine.pass_time(HOUR + MINUTE)
    assert not warned(engine, job)
    assert engine.job(job).ending is not None


def warned(engine: EngineDriver, job: JobId) -> bool:
    attempt = engine.job(job).attempt
    assert attempt is not None
    return attempt.warned
