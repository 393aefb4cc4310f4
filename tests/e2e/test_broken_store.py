"""A state folder that is damaged or cannot be written: one exit code, a sentence with the file, and what to do."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cockpit_user import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.e2e.cockpit_user import CockpitUser

pytestmark = [pytest.mark.real, pytest.mark.req("TR-03")]
STORE = 74


def state(user: CockpitUser) -> Path:
    return user.folder / "state/cockpit-cluster"


def edit(user: CockpitUser, *statements: str) -> None:
    with closing(sqlite3.connect(state(user) / "journal.db", isolation_level=None)) as stored:
        for each in statements:
            stored.execute(each)


def garbage(user: CockpitUser) -> None:
    (state(user) / "journal.db").write_bytes(b"garbage" * 1000)


def changed_event(user: CockpitUser) -> None:
    edit(user, "DELETE FROM snapshots", "DROP TRIGGER events_are_never_edited", "UPDATE events SET actor = 'x'")


def lost_journal(user: CockpitUser) -> None:
    (state(user) / "journal.db").unlink()
    (state(user) / "logs/7.1.0").mkdir(parents=True)


@pytest.mark.parametrize("damage", [garbage, changed_event, lost_journal])
def test_an_engine_that_cannot_start_from_its_store_reports_the_error(
    user: CockpitUser, damage: Callable[[CockpitUser], None]
) -> None:
    file = str(user.job("true", hold=True))
    user.ok("submit", file)
    user.ok("engine", "stop")
    for each in state(user).glob("journal.db-*"):
        each.unlink()
    damage(user)
    for words in (["jobs"], ["submit", file], ["engine", "start"]):
        done = user.run(*words)
        assert done.returncode == STORE, done.stderr
        assert b"Nothing was accepted" in done.stderr
        assert re.search(b"estore (it|the journal) from a backup", done.stderr)
        assert b"Traceback" not in done.stderr


def test_a_running_engine_reports_a_damaged_store_and_continues(user: CockpitUser) -> None:
    user.ok("submit", str(user.job("true", hold=True)))
    user.ok("cancel", "1", "--yes")
    eventually(lambda: user.rows("accounting"))
    edit(user, "UPDATE ended_jobs SET job = '{'")
    for words in (["accounting"], ["accounting", "-c", "all"], ["jobs", "--all", "-c", "all"]):
        broken = user.run(*words)
        assert (broken.returncode, b"cannot be read" in broken.stderr) == (STORE, True)
        assert b"newer cockpit wrote it, or the file is damaged" in broken.stderr
    assert user.run("engine", "status").returncode == 0


@pytest.mark.parametrize("where", ["/proc/cockpit", "/dev/null/cockpit", "/sys/cockpit"])
def test_a_state_folder_that_cannot_be_created_is_reported_in_one_sentence(user: CockpitUser, where: str) -> None:
    user.env["COCKPIT_STATE_FOLDER"] = where
    done = user.run("jobs")
    assert (done.returncode, where.encode() in done.stderr) == (STORE, True)
    assert b"COCKPIT_STATE_FOLDER" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="mounts a read-only disk")
def test_a_state_folder_on_a_read_only_disk_is_reported_in_one_sentence(user: CockpitUser) -> None:
    user.ok("jobs")
    user.ok("engine", "stop")
    folder = state(user)
    words = f'mount --bind {folder} {folder} && mount -o remount,bind,ro {folder} && exec "$@"'
    inside = ["unshare", "--mount", "sh", "-c", words, "sh"]
    user._inside = inside
    for command in (["jobs"], ["engine", "start"]):
        done = user.run(*command)
        assert (done.returncode, str(folder).encode() in done.stderr) == (STORE, True), done.stderr
    assert user.run("doctor", "--journal").returncode == 0
    user._inside = []


@pytest.mark.req("TR-11")
def test_the_doctor_verifies_the_journal(user: CockpitUser) -> None:
    missing = user.run("doctor", "--journal")
    assert (missing.returncode, b"There is no journal" in missing.stderr) == (STORE, True)
    user.ok("submit", str(user.job("true", hold=True)))
    assert "is whole" in user.ok("doctor", "--journal")
    user.ok("engine", "stop")
    changed_event(user)
    done = user.run("doctor", "--journal", "-o", "json")
    assert done.returncode == STORE
    rows = json.loads(done.stdout)["rows"]
    assert [row["level"] for row in rows if row["subject"] == "event 1"] == ["missing"]
    assert "restore it from a backup" in next(row["advice"] for row in rows if row["subject"] == "event 1")


def test_a_temporarily_locked_journal_is_not_reported_as_damage(user: CockpitUser) -> None:
    """Another program has the journal for a moment."""
    file = str(user.job("true", hold=True))
    user.ok("jobs")
    with closing(sqlite3.connect(state(user) / "journal.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        done = user.run("submit", file)
        assert (done.returncode, b"locked by another process" in done.stderr) == (75, True)
        other.execute("ROLLBACK")
    user.ok("submit", file)


LINES = [
    *("overview", "jobs", "jobs --all", "jobs --request x", "job 1", "trials 1", "usage 1", "explain 1", "starts"),
    *(
        "predict {job}",
        "priority",
        "nodes",
        "nodes drain n1 --reason fan",
        "nodes resume n1",
        "cards",
        "queues",
        "quota",
    ),
    *("quota remove", "holds", "holds extend 1 --by 1h", "holds end 1", "reservations", "reservations end x", "staged"),
    *("reservations create x --nodes n1 --duration 1h", "staged remove x", "events", "submit {job}", "edit 1 {part}"),
    *("clone 1", "cancel 1 --yes", "hold 1", "release 1", "suspend 1", "resume 1", "requeue 1 --yes", "wait 1"),
    *(
        "set-priority 1 urgent",
        "set-time-limit 1 1h",
        "delete 1 --yes",
        "logs 1",
        "shell 1 -- true",
        "session --detach",
    ),
    *("train 1 -- true", "accounts", "accounts qos", "accounts add x", "accounts modify x MaxJobs=4", "accounting"),
    *("accounts remove x", "accounts add-user x --account y", "accounts remove-user x --account y", "accounting hours"),
    *("accounts add-qos x", "accounts modify-qos x MaxJobsPerUser=4", "accounts remove-qos x", "catalogue"),
    *(
        "accounts add-coordinator x y",
        "accounts remove-coordinator x y",
        "accounts modify-user x --account y --shares 4",
    ),
    *(
        "catalogue show volume x",
        "catalogue add volume x path=/tmp",
        "catalogue set volume x path=/",
        "catalogue export",
    ),
    *(
        "catalogue remove volume x",
        "cluster export --slurm-conf",
        "engine start",
        "engine restart",
        "snapshot {folder}/x.json",
        "jobs -c all",
        "nodes -c all",
    ),
]
"""A command of each verb that needs the engine."""


def test_every_verb_exits_alike_for_a_damaged_store(user: CockpitUser) -> None:
    job, part = user.job("true", hold=True), user.write("part.yaml", "nice: 5\n")
    user.ok("submit", str(job))
    user.ok("engine", "stop")
    garbage(user)

    def wrong(line: str) -> tuple[str, int, bytes] | None:
        done = user.run(*(word.format(job=job, part=part, folder=user.folder) for word in line.split()))
        is_right = done.returncode == STORE and b"journal.db" in done.stderr and b"Traceback" not in done.stderr
        return None if is_right else (line, done.returncode, done.stderr[-200:])

    with ThreadPoolExecutor(4) as threads:
        assert [each for each in threads.map(wrong, LINES) if each is not None] == []
