"""What a cockpit records of a cluster that provides no history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cockpit.backends.job_history import History
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.rows import Rows
from cockpit.model.ids import JobId, Millis, task_id
from cockpit.model.reasons import Held, SchedulerReason
from cockpit.present.events.sentences import event_kind
from cockpit.runtime.observed_history import ObservedHistory
from tests.backends.slurm.test_values import a_record

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 1000
BEGAN = Millis(1_795_248_000_000)
RUNS = {"State": "RUNNING", "NodeList": "n1", "StartTime": "2026-11-21T08:00:01", "Reason": "None"}
ENDED = {"State": "FAILED", "NodeList": "n1", "exit_code": "768", "EndTime": "2026-11-21T09:00:00"}


class Watched:
    """A cluster whose list is looked at every ten seconds."""

    def __init__(self, folder: Path) -> None:
        self.history = History(ObservedHistory(folder / "lab.jsonl", "Slurm"))
        self._rows, self.now = Rows("ann"), BEGAN

    def lists(self, *records: dict[str, str]) -> None:
        self.listed = [Listed(a_record(**each)) for each in records]
        self.now = Millis(self.now + 10 * SECOND)
        self.history.look(self._rows.of(self.listed, {}, self.now), self._rows.job, self.now)

    def kinds(self, place: int = 0) -> list[str]:
        return [event_kind(each.body) for each in self.history.of(self.listed[place].job)]


@pytest.mark.req("UI-11")
def test_the_observed_states_of_a_job_are_recorded(tmp_path: Path) -> None:
    lab = Watched(tmp_path)
    lab.lists({"Reason": "Priority"})
    assert lab.kinds() == []
    lab.lists({"Reason": "JobHeldUser"})
    lab.lists({"Reason": "Resources"})
    lab.lists(RUNS)
    lab.lists(RUNS | {"State": "SUSPENDED"})
    lab.lists(RUNS | {"TimeLimit": "2:00:00"})
    waited = lab.history.waited(lab.listed[0].job, lab.now)
    lab.now = Millis(lab.now + 3600 * SECOND)
    lab.lists(RUNS | ENDED | {"TimeLimit": "2:00:00"})
    assert lab.kinds() == [
        "job_held",
        "job_released",
        "job_placed",
        "job_suspended",
        "job_resumed",
        "time_limit_set",
        "job_ended",
    ]
    placed, *_, ended = lab.history.of(lab.listed[0].job)[2:]
    assert (ended.at - placed.at) // SECOND == 3599
    assert [each.reason for each in waited] == [
        SchedulerReason("Priority"),
        Held("ann", None),
        SchedulerReason("Resources"),
    ]
    assert waited[0].since == BEGAN + 10 * SECOND


@pytest.mark.req("UI-11")
def test_a_job_that_appears_while_observed_is_recorded_as_submitted(tmp_path: Path) -> None:
    lab = Watched(tmp_path)
    lab.lists({"JobID": "7"})
    lab.lists({"JobID": "7"}, {"JobID": "8"} | RUNS)
    lab.lists({"JobID": "7"}, {"JobID": "8", "Reason": "Priority"})
    assert (lab.kinds(0), lab.kinds(1)) == ([], ["job_submitted", "job_placed", "job_requeued"])
    assert [each.seq for each in lab.history.events(after=1, limit=9)] == [2, 3]
    assert [each.seq for each in lab.history.events(after=-1, limit=1)] == [3]


@pytest.mark.req("UI-11", "SL-10")
def test_a_task_has_waited_among_the_others_of_its_array(tmp_path: Path) -> None:
    lab = Watched(tmp_path)
    waiting = {"JobID": "7", "ArrayJobID": "7", "Reason": "Priority"}
    lab.lists(waiting | {"ArrayTaskID": "0-9"})
    lab.lists(waiting | RUNS | {"JobID": "8", "ArrayTaskID": "0"}, waiting | {"ArrayTaskID": "1-9"})
    assert lab.listed[0].id == task_id(JobId(7), 0)
    assert lab.kinds() == ["job_placed"]
    assert [each.reason for each in lab.history.waited(lab.listed[0].job, lab.now)] == [SchedulerReason("Priority")]
