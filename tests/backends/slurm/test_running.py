from __future__ import annotations

from datetime import UTC

import pytest

from cockpit.backends.slurm.mapping import accounting
from cockpit.model.jobdetail import StepRow

SHOWN = """StepId=7.0 UserId=1000 StartTime=2026-11-21T10:00:00 TimeLimit=UNLIMITED
   State=RUNNING Partition=debug NodeList=n[1-2]
   Nodes=2 CPUs=2 Tasks=2 Name=sleep Network=(null)

StepId=7.batch UserId=1000 StartTime=2026-11-21T09:59:59 TimeLimit=UNLIMITED
   State=RUNNING Partition=debug NodeList=n1
   Nodes=1 CPUs=1 Tasks=1 Name=batch Network=(null)
"""
BATCH = StepRow(
    name="batch", command="batch", state="running", nodes=1, tasks=1, started_at=None, ended_at=None, cpu_ms=5
)


@pytest.mark.req("SL-10")
def test_a_step_missing_from_the_database_is_listed_beside_the_others() -> None:
    told = tuple(accounting.steps(SHOWN, UTC))
    assert [(step.name, step.command, step.nodes) for step in told] == [("0", "sleep", 2), ("batch", "batch", 1)]
    assert accounting.beside((BATCH,), told) == (BATCH, told[0])
    assert accounting.beside((), told) == told
    assert accounting.beside((BATCH,), ()) == (BATCH,)
