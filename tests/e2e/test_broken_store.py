"""A state folder that is damaged or cannot be written: one exit code, a sentence with the file, and what to do."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
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
    broken = user.run("accounting")
    assert (broken.returncode, b"cannot be read" in broken.stderr) == (STORE, True)
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
