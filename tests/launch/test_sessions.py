"""Sessions that are made from jobs of every kind, and jobs that are made from sessions."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.launch.checks import meeting_errors, submission_errors
from cockpit.launch.sessions import development, training
from cockpit.model.batchscript import BatchScript
from cockpit.model.mounts import Algorithm
from cockpit.model.resilience import Elastic, Restart
from cockpit.model.spec import Array, JobKind, JobSpec, Mode, NodeSpec, Sweep, Task, WorkerPool
from tests.builders import a_spec

BIG = NodeSpec(cpus=4, memory_mib=4096, card_milli=2000)
POOLS = (WorkerPool(replicas=1, spec=BIG), WorkerPool(replicas=2, spec=BIG))
SCRIPT = BatchScript(text="#!/bin/bash\npython t.py\n", work_dir="/home/ann")
JOBS: dict[str, JobSpec] = {
    "plain": a_spec("job", specs=(BIG,)),
    "script": a_spec("job", specs=(BIG,), mode=Mode.SLURM, script=SCRIPT, nodes=2),
    "array": a_spec("job", specs=(BIG,), array=Array((0, 1)), hold=True),
    "sweep": a_spec("job", specs=(BIG,), array=Array((0, 1)), sweep=Sweep(parameters={"lr": ("1", "2")})),
    "pools": a_spec("job", specs=(BIG,), mode=Mode.WORKER_POOLS, worker_pools=POOLS),
    "servers": a_spec("job", specs=(BIG,), mode=Mode.TENSORFLOW, parameter_servers=2, nodes=2),
    "nodes": a_spec("job", specs=(BIG,), mode=Mode.PYTORCH, nodes=4, restart=Restart(max_restarts=2)),
    "elastic": a_spec("job", specs=(BIG,), nodes=2, elastic=Elastic(workers=2, max_workers=4)),
    "batch": replace(a_spec("job", specs=(BIG,), kind=JobKind.BATCH, tasks=(Task(command="x"),)), command=""),
}


@pytest.mark.req("JT-39")
@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_a_session_is_created_from_any_job_and_a_job_from_the_session(job: JobSpec) -> None:
    session = development(job)
    assert [*submission_errors(session), *meeting_errors(session)] == []
    assert (session.name, session.kind, session.command, session.nodes) == ("job-dev", JobKind.INTERACTIVE, "", 1)
    again = training(session, "python t.py --lr 1")
    assert [*submission_errors(again), *meeting_errors(again)] == []
    assert (again.name, again.kind, again.command) == ("job", JobKind.REGULAR, "python t.py --lr 1")
    kept: dict[str, Any] = {name: getattr(job, name) for name in ("output", "env", "image", "specs", "project", "home")}
    assert {name: getattr(again, name) for name in kept} == kept


@pytest.mark.req("JT-39")
def test_a_session_is_free_to_start_and_has_the_algorithm_of_the_job_or_of_its_first_task() -> None:
    held = development(a_spec("job", hold=True, divide_over_clusters=True, nodes=2))
    assert (held.hold, held.divide_over_clusters) == (False, False)
    own, other = Algorithm(path="/a"), Algorithm(path="/b")
    tasks = (Task(command="x"), Task(command="y", algorithm=other))
    assert development(a_spec("job", algorithm=own)).algorithm == own
    assert development(a_spec("job", tasks=tasks)).algorithm == other
    assert development(a_spec("job")).algorithm is None


@pytest.mark.req("JT-39")
def test_the_longest_name_is_shortened_for_the_mark_of_a_session_and_a_name_that_is_the_mark_stays() -> None:
    assert development(a_spec("x" * 63)).name == "x" * 59 + "-dev"
    assert training(a_spec("-dev")).name == "-dev"
