from __future__ import annotations

import csv
import json
from io import StringIO

import pytest
from msgspec.structs import replace

from cockpit.model.capabilities import Ability
from cockpit.model.cluster import PriorityKind, Weights
from cockpit.model.priority import WeightChanges
from cockpit.model.view import Priorities
from cockpit.present.width import width
from tests.doubles.samples import WEIGHTS, priorities, priority_row
from tests.headless.conftest import Desk

TABLE = """\
PLACE      ID  NAME       USER  QUEUE  PRIORITY   AGE   FAIR  SIZE  PART   QOS  NICE  NOTE
    1    4720  vit-sweep  ann   gpu       17450  3120  11800   130  1500  1000   100
    2       -  -          -     gpu           –     –      –     –     –     –     –
    3  4716_2  job-4718   erin  gpu        9000     –      –     –     –     –     0  set by an administrator
    –    4722  前処理     ann   gpu           0     –      –     –     –     –     0  held
"""

LIKE_SPRIO = "JOBID PARTITION USER ACCOUNT PRIORITY SITE AGE ASSOC FAIRSHARE JOBSIZE PARTITION QOSNAME QOS NICE TRES"


def test_the_queue_in_its_order_with_what_each_weighted_factor_adds(desk: Desk) -> None:
    assert desk("priority").out.decode() == TABLE


def test_on_a_terminal_the_weights_are_printed(desk: Desk) -> None:
    done = desk("priority", terminal=True, columns=80)
    assert all(width(line) <= 80 for line in done.lines)
    assert " ".join(done.lines[0].split()) == "PLACE ID NAME USER QUEUE PRIORITY AGE FAIR SIZE PART QOS"
    assert "weights: age 10 000, fair share 20 000, size 2 000, partition 3 000, QOS 5 000" in done.err


def test_wide_has_the_columns_of_sprio(desk: Desk) -> None:
    header, first, *_ = desk("priority", "-o", "wide").lines
    assert " ".join(header.split()) == LIKE_SPRIO
    assert " ".join(first.split()) == "4720 gpu ann nlp 17450 0 3120 0 11800 130 1500 normal 1000 100 –"


def test_json_has_raw_factor_weight_and_contribution(desk: Desk) -> None:
    document = json.loads(desk("priority", "-o", "json").out)
    first, hidden, direct, held = document["rows"]
    assert document["version"] == 1
    assert first["factors"]["fairshare"] == {"raw": 0.59, "weight": 20_000, "contribution": 11_800.0}
    assert set(first["factors"]) == {"age", "fairshare", "jobsize", "partition", "qos"}
    assert sum(part["contribution"] for part in first["factors"].values()) - first["nice"] == first["priority"]
    assert (hidden["id"], hidden["name"], hidden["priority"], hidden["position"]) == (None, "-", None, 2)
    assert (direct["priority"], direct["factors"], direct["note"]) == (9000, {}, "set")
    assert (held["priority"], held["position"], held["note"]) == (0, None, "held")


@pytest.mark.req("SC-01")
def test_a_priority_that_does_not_fall_is_noted(desk: Desk) -> None:
    shown = priorities()
    first = replace(shown.rows[0], breakdown=replace(shown.rows[0].breakdown, total=20_000, kept=True))
    desk.backend.order = replace(shown, rows=(first,))
    assert desk("priority").lines[1].split()[5] == "20000"
    assert desk("priority").lines[1].endswith("was higher, and stays so")
    (row,) = json.loads(desk("priority", "-o", "json").out)["rows"]
    assert row["note"] == "kept"


def test_rows_are_filtered_sorted_and_chosen_as_in_every_list(desk: Desk) -> None:
    chosen = desk(
        "priority", "--filter", "priority>=9000", "--sort", "priority", "--columns", "id,priority", "-o", "csv"
    )
    assert list(csv.reader(StringIO(chosen.out.decode()))) == [["id", "priority"], ["4718", "9000"], ["4720", "17450"]]


@pytest.mark.parametrize(("wanted", "ids"), [("4720", ["4720"]), ("4718", ["4716_2"]), ("4716", ["4716_2"])])
def test_one_job_or_array_by_its_id(desk: Desk, wanted: str, ids: list[str]) -> None:
    done = desk("priority", wanted, "--columns", "id", "--no-header")
    assert (done.code, [line.strip() for line in done.lines]) == (0, ids)


def test_a_job_that_is_not_queued_is_not_found(desk: Desk) -> None:
    done = desk("priority", "4711", "4720", "-o", "jsonl")
    assert done.code == 66
    assert "job 4711 is not queued" in done.err
    assert [json.loads(line)["id"] for line in done.lines] == [4720]


def test_trial_weights_are_given_by_name_and_show_the_previous_position(desk: Desk) -> None:
    row = priority_row(4720, 1, position_before=3, total_before=1200)
    desk.backend.tried = Priorities(PriorityKind.MULTIFACTOR, Weights(age=5, tres={"cpu": 7}), (row,))
    done = desk("priority", "--weights", "age=5,JobSize=2,tres/gres/gpu=7", "--columns", "position,was,priority_before")
    assert desk.backend.asked == [("priorities", WeightChanges(age=5, job_size=2, tres={"gres/gpu": 7}))]
    assert done.lines[1].split() == ["1", "3", "1200"]
    header = desk("priority", "--weights", "age=5").lines[0].split()
    assert "WAS" in header
    assert {"AGE", "TRES"} <= set(header)
    assert "FAIR" not in header


@pytest.mark.parametrize(
    ("weights", "complaint"),
    [
        ("speed=1", "speed is no factor"),
        ("age", "age wants a whole number"),
        ("age=-1", "age wants a whole number"),
        ("age=4294967296", "age wants a whole number"),
        ("tres/=1", "tres/ is no factor"),
        ("", "no weight is given"),
    ],
)
def test_invalid_weights_are_reported(desk: Desk, weights: str, complaint: str) -> None:
    done = desk("priority", "--weights", weights)
    assert (done.code, complaint in done.err) == (64, True)
    assert desk.backend.asked == []


@pytest.mark.parametrize("form", ["table", "wide"])
def test_in_order_of_submission_one_line_explains_it(desk: Desk, form: str) -> None:
    desk.backend.order = Priorities(PriorityKind.BASIC, Weights(), (priority_row(1, 1),))
    (line,) = desk("priority", "-o", form).lines
    assert line.startswith("This cluster serves in order of submission (priority/basic)")


@pytest.mark.req("SL-12")
def test_weights_that_the_cluster_does_not_report_are_not_called_none(desk: Desk) -> None:
    absent = {Ability.WEIGHTS: "slurmrestd does not report the weights."}
    desk.backend.capabilities = desk.backend.capabilities.without(absent)
    desk.backend.order = Priorities(PriorityKind.MULTIFACTOR, Weights(), (priority_row(1, 1),))
    done = desk("priority", terminal=True)
    assert "slurmrestd does not report the weights." in done.err
    assert "weights: none" not in done.err


def test_in_order_of_submission_programs_get_the_positions_without_figures(desk: Desk) -> None:
    row = priority_row(7, 1)
    bare = type(row.breakdown)(row.job, "", 0, ())
    desk.backend.order = Priorities(PriorityKind.BASIC, Weights(), (priority_row(7, 1, breakdown=bare),))
    (found,) = json.loads(desk("priority", "-o", "json").out)["rows"]
    assert (found["position"], found["priority"], found["age"], found["factors"]) == (1, None, None, {})


def test_a_change_of_weights_keeps_the_others() -> None:
    changed = WeightChanges(age=1, tres={"cpu": 3}).on(Weights(age=9, qos=4, tres={"mem": 2.0}))
    assert changed == Weights(age=1, qos=4, tres={"mem": 2.0, "cpu": 3})
    assert WeightChanges().on(WEIGHTS) == WEIGHTS


def test_an_empty_queue_is_reported(desk: Desk) -> None:
    desk.backend.order = Priorities(PriorityKind.MULTIFACTOR, WEIGHTS, ())
    assert "Nothing is queued." in desk("priority", terminal=True).err
    assert desk("priority", "1").code == 66
    assert priorities().rows


def test_one_job_has_the_priorities_of_its_queues(desk: Desk) -> None:
    (waiting,) = json.loads(desk("job", "4720", "-o", "json").out)["rows"]
    (own,) = waiting["priorities"]
    assert (own["partition"], own["priority"], own["nice"], own["direct"]) == ("gpu", 17_450, 100, False)
    assert own["factors"]["age"]["contribution"] == 3120.0
    (ended,) = json.loads(desk("job", "4715", "-o", "json").out)["rows"]
    assert ended["priorities"] == []
    assert "    fair share  ━━━━━━━━━━━━━━━━━━━━ 11 800   0.59 × 20 000" in desk("job", "4720").lines


@pytest.mark.req("UI-07", "SC-15")
def test_weights_are_put_in_force_after_the_new_order_was_shown(desk: Desk) -> None:
    done = desk("priority", "--weights", "age=5", "--apply", "-o", "jsonl")
    assert desk.backend.asked == [("priorities", WeightChanges(age=5)), ("set_weights", WeightChanges(age=5))]
    assert (done.code, len(done.lines)) == (0, 4)
    assert "in force: weights: age 5; /etc/cockpit-cluster/cluster.toml says the same now, so they stay" in done.err


def test_applying_weights_on_a_terminal_asks_for_confirmation(desk: Desk) -> None:
    words = ("priority", "--weights", "age=5", "--apply")
    assert desk(*words, stdin=b"n\n", terminal=True).code == 71
    assert desk.backend.asked == [("priorities", WeightChanges(age=5))]
    assert desk(*words, "--yes", terminal=True).code == 0
    assert desk(*words, stdin=b"y\n", terminal=True).code == 0


def test_only_weights_that_were_given_are_applied(desk: Desk) -> None:
    done = desk("priority", "--apply")
    assert (done.code, "--apply wants the weights too" in done.err, desk.backend.asked) == (64, True, [])
