"""`cockpit lab`: the past of the cluster or of a log, replayed under changed rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cockpit.headless.exitcodes import ExitCode
from tests.headless.conftest import Desk

pytestmark = pytest.mark.req("UI-16")
# number, submitted, wait, run, processors: three jobs on four processors; the last one fits beside the first.
LOG = "; MaxProcs: 4\n" + "".join(
    f"{number} {came} {waited} {ran} {size} -1 -1 {size} {ran} -1 1 {user} 1 -1 1 -1 -1 -1\n"
    for number, came, waited, ran, size, user in ((1, 0, 0, 100, 3, 1), (2, 1, 99, 100, 4, 2), (3, 2, 0, 90, 1, 1))
)


@pytest.fixture
def log(tmp_path: Path) -> str:
    file = tmp_path / "log.swf"
    file.write_text(LOG)
    return str(file)


def test_a_log_is_replayed_beside_today(desk: Desk, log: str) -> None:
    rows = json.loads(desk("lab", log, "--backfill", "off", "-o", "json").out)["rows"]
    everything = rows[0]
    assert (everything["group"], everything["jobs"]) == ("all", 3)
    assert everything["recorded_wait"] == everything["today_mean_wait"] == 33
    assert everything["changed_mean_wait"] == (99 + 198) / 3
    assert [(row["group"], row["name"], row["jobs"]) for row in rows[1:]] == [
        ("user", "user1", 2),
        ("user", "user2", 1),
        ("account", "users", 3),
        ("queue", "queue 1", 3),
    ]


def test_the_page_names_the_change_and_has_a_table_and_a_chart(desk: Desk, log: str) -> None:
    lines = desk("lab", log, "--backfill", "off").lines
    assert lines[:2] == ["Policy lab  3 jobs, today's rules beside:", "  backfill off, depth unlimited"]
    assert any(" ".join(line.split()) == "mean wait 33 s 1 min 39 s +1 min 6 s" for line in lines)
    assert any(line.split()[:3] == ["user1", "today", "························"] for line in lines)
    assert sum("changed ━" in line for line in lines) >= 2


def test_without_a_change_both_are_the_same(desk: Desk, log: str) -> None:
    rows = json.loads(desk("lab", log, "-o", "json").out)["rows"]
    assert all(row["today_mean_wait"] == row["changed_mean_wait"] for row in rows)
    assert "  no change" in desk("lab", log).lines


def test_the_past_of_the_cluster_is_replayed(desk: Desk) -> None:
    done = desk("lab", "--since", "400d", "--backfill", "conservative", "-o", "json")
    assert done.code == ExitCode.OK, done.err
    users = {row["name"] for row in json.loads(done.out)["rows"] if row["group"] == "user"}
    assert users >= {row.user for row in desk.backend.job_rows if row.queued}


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--add-nodes", "a01"), ExitCode.USAGE, "such as 4:a01"),
        (("--add-nodes", "0:n01"), ExitCode.USAGE, "such as 4:a01"),
        (("--remove-nodes", "nowhere"), ExitCode.NOT_FOUND, "There is no node nowhere"),
        (("--accounts", "modify nobody MaxJobs=1"), ExitCode.NOT_FOUND, "nobody"),
        (("--accounts", "drink tea"), ExitCode.USAGE, "there is no drink"),
        (("/no/such/log",), ExitCode.NOT_FOUND, "give the path of a log"),
        (("--apply",), ExitCode.USAGE, "--apply wants changes"),
        (("--apply", "--backfill", "off"), ExitCode.USAGE, "edit cluster.toml"),
        (("--apply", "--remove-nodes", "n01"), ExitCode.USAGE, "nodes drain"),
    ],
)
def test_what_cannot_be_is_said(desk: Desk, words: tuple[str, ...], code: int, says: str) -> None:
    done = desk("lab", *words)
    assert (done.code, says in done.err) == (code, True), done.err


def test_a_log_has_nothing_to_apply_to(desk: Desk, log: str) -> None:
    done = desk("lab", log, "--weights", "age=1", "--apply")
    assert done.code == ExitCode.USAGE
    assert "of another machine" in done.err


def test_weights_and_limits_are_applied_after_they_were_shown(desk: Desk) -> None:
    done = desk("lab", "--since", "400d", "--weights", "age=1000", "--apply")
    assert done.code == ExitCode.OK, done.err
    assert done.lines[0].startswith("Policy lab")
    assert [call[0] for call in desk.backend.asked].count("set_weights") == 1


def test_ended_jobs_of_a_list_without_accounting_are_replayed(desk: Desk) -> None:
    desk.backend.ended_jobs = []
    rows = json.loads(desk("lab", "--since", "4000d", "-o", "json").out)["rows"]
    known = [row for row in desk.backend.job_rows if row.started_at is not None or row.ended_at is None]
    assert rows[0]["jobs"] == len(known)
