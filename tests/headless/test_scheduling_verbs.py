"""Tasks and arrays by name, priorities, and reservations on the command line."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from cockpit.headless.exitcodes import ExitCode
from cockpit.model.asking import SiteFactor, WantedLimit
from cockpit.model.capabilities import Ability
from cockpit.model.cluster import Reservation
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import ArrayTask, JobState
from cockpit.model.spec import PriorityWord
from tests.doubles.samples import NOW
from tests.headless.conftest import Desk

HOUR = 3_600_000


@pytest.mark.req("SC-10")
@pytest.mark.parametrize(
    ("argv", "asked", "said"),
    [
        (["cancel", "4715_3"], ("cancel", 4715, 3, None), "cancelled 4715_3"),
        (["hold", "4715_3"], ("hold", 4715, 3), "held 4715_3"),
        (["release", "4715"], ("release", 4715), "released 4715"),
        (["suspend", "4715_3"], ("suspend", 4715, 3), "suspended 4715_3"),
        (["resume", "4715"], ("resume", 4715), "resumed 4715"),
        (["requeue", "4715_3"], ("requeue", 4715, 3), "requeued 4715_3"),
        (["delete", "4715_3"], ("delete", 4715, 3), "deleted 4715_3"),
        (["set-time-limit", "4715_3", "6h"], ("set_time_limit", 4715, WantedLimit(21_600), 3), "for 4715_3"),
        (["set-priority", "4715_3", "urgent"], ("set_priority", 4715, PriorityWord.URGENT, 3), "for 4715_3"),
    ],
)
def test_actions_apply_to_a_task_or_an_array(desk: Desk, argv: list[str], asked: tuple[Any, ...], said: str) -> None:
    done = desk(*argv)
    assert done.code == ExitCode.OK
    assert desk.backend.asked == [asked]
    assert said in done.lines[0]


@pytest.mark.req("KU-07")
def test_what_a_suspension_ends_is_said(desk: Desk) -> None:
    assert desk("suspend", "4715").err == ""
    why = "Pods are deleted."
    desk.backend.capabilities = desk.backend.capabilities.without({Ability.PAUSE: why})
    done = desk("suspend", "4715")
    assert (done.code, done.err.strip()) == (ExitCode.OK, why)


@pytest.mark.req("SC-10")
def test_waiting_for_an_array_is_waiting_for_all_its_tasks(desk: Desk) -> None:
    job = desk.backend.details[4715].job
    ended = {
        each: msgspec.structs.replace(
            job, id=JobId(each), state=JobState.SUCCEEDED, exit=None, array=ArrayTask(JobId(7), each - 7, count=3)
        )
        for each in (7, 8, 9)
    }
    desk.backend.ended = {**ended, 9: msgspec.structs.replace(ended[9], state=JobState.STOPPED)}
    assert desk("wait", "7").code == 255
    assert [asked[1] for asked in desk.backend.asked] == [7, 8, 9]
    desk.backend.asked.clear()
    assert desk("wait", "8").code == 0
    assert [asked[1] for asked in desk.backend.asked] == [8]


@pytest.mark.req("JT-34")
def test_a_priority_is_a_word_a_number_or_an_addition(desk: Desk) -> None:
    assert desk("set-priority", "1", "2", "90000").lines == ["priority 90000 for 1", "priority 90000 for 2"]
    assert desk.backend.asked == [("set_priority", 1, 90_000), ("set_priority", 2, 90_000)]
    assert desk("set-priority", "1", "+500").lines == ["priority +500 for 1"]
    assert desk("set-priority", "1", "-40").lines == ["priority -40 for 1"]
    assert desk.backend.asked[2:] == [("set_priority", 1, SiteFactor(500)), ("set_priority", 1, SiteFactor(-40))]
    wrong = desk("set-priority", "1", "high")
    assert wrong.code == ExitCode.USAGE
    assert "write normal, urgent, very-urgent, a number, or +N and -N" in wrong.err


@pytest.mark.req("JT-35")
def test_a_time_limit_is_a_time_or_an_addition(desk: Desk) -> None:
    assert desk("set-time-limit", "1", "2", "1-12").lines == ["time limit 1d12h for 1", "time limit 1d12h for 2"]
    assert desk("set-time-limit", "1", "+90m").lines == ["time limit +1h30m for 1"]
    assert desk("set-time-limit", "1", "-30m").lines == ["time limit -30m for 1"]
    assert [asked[2] for asked in desk.backend.asked[1:]] == [
        WantedLimit(129_600),
        WantedLimit(5400, beside=True),
        WantedLimit(-1800, beside=True),
    ]
    for wrong in ("soon", "+", "+-5m"):
        assert "write a time such as 6h, or +2h and -30m" in desk("set-time-limit", "1", wrong).err


@pytest.mark.req("SC-10")
def test_reservations_are_listed_created_and_ended(desk: Desk) -> None:
    desk.backend.reserved = [
        Reservation(name="course", nodes=(NodeName("n1"),), start_at=NOW - HOUR, end_at=NOW + HOUR, users=("ann",))
    ]
    (row,) = json.loads(desk("reservations", "-o", "json").out)["rows"]
    assert (row["name"], row["state"], row["users"], row["maintenance"]) == ("course", "active", ["ann"], "no")
    created = ["reservations", "create", "upkeep", "--nodes", "n1,n2", "--start", "now+2h", "--duration", "1h"]
    assert desk(*created, "--maintenance").lines == ["reserved upkeep from 14:00 to 15:00"]
    (_, made) = desk.backend.asked[-1]
    assert made == Reservation(
        name="upkeep",
        nodes=(NodeName("n1"), NodeName("n2")),
        start_at=Millis(NOW + 2 * HOUR),
        end_at=Millis(NOW + 3 * HOUR),
        maintenance=True,
    )
    for start in ((), ("--start", "now")):
        assert desk("reservations", "create", "soon", "--nodes", "n1", *start, "--duration", "1h").code == ExitCode.OK
        (_, made) = desk.backend.asked[-1]
        assert (made.start_at, made.end_at) == (NOW, NOW + HOUR)
    assert desk("reservations", "end", "course").lines == ["ended course"]
    assert desk.backend.asked[-1] == ("end_reservation", "course")


@pytest.mark.req("JT-24")
def test_nodes_are_drained_and_resumed(desk: Desk) -> None:
    assert desk("nodes", "drain", "n1", "n2", "--reason", "new memory").lines == ["drained n1", "drained n2"]
    assert desk("nodes", "resume", "n1").lines == ["resumed n1"]
    assert desk.backend.asked == [
        ("drain_node", "n1", "new memory"),
        ("drain_node", "n2", "new memory"),
        ("resume_node", "n1"),
    ]
    assert desk("nodes", "drain", "n1").code == ExitCode.USAGE
    desk.backend.asked.clear()
    desk("nodes", "drain", "n1", "--reason", "spot", "--within", "90s")
    desk("nodes", "drain", "n2", "--reason", "spot", "--within")
    assert desk.backend.asked == [("drain_node", "n1", "spot", 90), ("drain_node", "n2", "spot", 300)]


@pytest.mark.req("EL-02")
def test_nodes_are_reclaimed_with_a_grace_period(desk: Desk) -> None:
    assert desk("reclaim", "n1", "n2", "--grace", "120").lines == ["reclaimed n1", "reclaimed n2"]
    desk("reclaim", "n1", "--reason", "spot")
    taken = "its provider takes it back"
    assert desk.backend.asked == [
        ("drain_node", "n1", taken, 120),
        ("drain_node", "n2", taken, 120),
        ("drain_node", "n1", "spot", 300),
    ]
    assert desk("reclaim").code == ExitCode.USAGE


@pytest.mark.req("SC-10")
def test_a_reservation_needs_nodes(desk: Desk) -> None:
    assert desk("reservations", "create", "upkeep", "--duration", "1h").code == ExitCode.USAGE
    assert not desk.backend.asked


@pytest.mark.req("SC-10")
@pytest.mark.parametrize(
    "argv", [["--start", "soon", "--duration", "1h"], [], ["--end", "2030-01-01", "--duration", "1h"]]
)
def test_a_reservation_needs_a_span(desk: Desk, argv: list[str]) -> None:
    done = desk("reservations", "create", "upkeep", "--nodes", "n1", *argv)
    assert done.code == ExitCode.USAGE
    assert not desk.backend.asked
