"""A machine with something wrong: each real fault gives a clear sentence, and what still works goes on (TR-03)."""

from __future__ import annotations

import os
import pwd
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.aftermath import engine_process, state_folder
from tests.e2e.cockpit_user import CockpitUser, eventually
from tests.e2e.namespaces import answer_of
from tests.e2e.people import ANN

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

UNREACHABLE, STORE, UNAVAILABLE = 69, 74, 75


@pytest.mark.req("TR-03", "TR-01")
def test_a_full_disk_refuses_only_submissions(folder: Path) -> None:
    """What fills it may be a job's: that one can end, be entered and be removed."""
    told = answer_of("full_disk", folder)
    code, sentence = told["refused"]
    assert code == UNAVAILABLE
    assert "is full, or your quota is used up. Nothing was accepted. Free some space" in sentence
    assert told["listed"] == ["running"]
    assert "is full" in told["trouble"][0]
    assert told["codes"] == [6, 0]
    assert told["when_full"] == [True, "inside\n", UNAVAILABLE]
    assert told["ran"] == "ran\n"
    assert told["same_engine"]
    assert told["names"] == ["later", "running"]
    code, sentence = told["not_started"]
    assert code in {STORE, UNREACHABLE}
    assert "is full" in sentence
    assert "ree some space" in sentence


NOT_STARTED = 255


@pytest.mark.req("TR-03", "TR-01", "JT-40")
def test_a_job_that_takes_the_whole_disk_for_its_log_again_and_again_harms_no_other_job(folder: Path) -> None:
    told = answer_of("greedy_log", folder)
    assert [code for code, _ in told["refused"]] == [UNAVAILABLE] * len(told["refused"])
    # A job that meets the full disk with each of its starts fails, and says so; none has another's code.
    assert [code for number, code in enumerate(told["codes"]) if code not in {number, NOT_STARTED}] == []
    assert told["codes"].count(NOT_STARTED) <= 3
    assert told["last"] == 0
    assert told["names"] == sorted(["greedy", *(f"other-{number}" for number in range(12))])
    code, checked = told["journal"]
    assert (code, "journal.db is whole" in checked) == (0, True)


@pytest.mark.req("TR-03")
def test_a_locked_journal_is_reported_and_the_engine_recovers(user: CockpitUser) -> None:
    user.submit("exit 0", name="first", hold=True)
    engine = engine_process(user)
    locker = sqlite3.connect(state_folder(user) / "journal.db", isolation_level=None)
    locker.execute("BEGIN IMMEDIATE")
    refused = user.run("submit", str(user.job("exit 0", name="second")))
    assert refused.returncode == UNAVAILABLE
    assert b"is locked by another process. Nothing was accepted." in refused.stderr
    assert [row["name"] for row in user.rows("jobs")] == ["first"], "looking does not need the journal"
    assert "locked" in user.row("engine", "status")["trouble"][0]
    assert "journal.db is locked by another process" in user.ok("overview")
    locker.execute("ROLLBACK")
    locker.close()
    assert user.wait(user.submit("exit 0", name="third")) == 0
    eventually(lambda: user.row("engine", "status")["trouble"] == [])
    assert engine_process(user) == engine


@pytest.fixture
def nobody(folder: Path, request: pytest.FixtureRequest) -> CockpitUser:
    """An ordinary user, with a cockpit that they may read."""
    if os.geteuid() != 0:
        return CockpitUser(folder)
    return CockpitUser(folder, python=request.getfixturevalue("everybodys_python"), user="nobody")


@pytest.mark.req("TR-03")
@pytest.mark.parametrize("closed", ["state", "state/cockpit-cluster", "home"])
def test_a_read_only_folder_is_reported_to_an_ordinary_user(nobody: CockpitUser, closed: str) -> None:
    if closed == "home":
        del nobody.env["XDG_STATE_HOME"]
    path = nobody.folder / closed
    path.mkdir(exist_ok=True)
    if nobody.user is not None:
        shutil.chown(path, nobody.user)
    path.chmod(0o500)
    refused = nobody.run("submit", str(nobody.job("exit 0")))
    assert refused.returncode == STORE, refused.stderr
    assert b"Permission denied" in refused.stderr
    assert b"COCKPIT_STATE_FOLDER" in refused.stderr
    assert nobody.run("jobs").returncode == STORE
    assert b"stopped" in nobody.run("engine", "status").stdout
    assert "not a folder that you can write to" in nobody.run("doctor").stdout.decode()
    path.chmod(0o700)


@pytest.mark.req("TR-03")
def test_without_bubblewrap_root_has_containers_all_the_same(folder: Path) -> None:
    assert_contained_without_bubblewrap(answer_of("ill_bubblewrap", folder, "missing"), os.geteuid())


@pytest.mark.req("TR-03")
def test_without_bubblewrap_an_ordinary_user_has_containers_all_the_same(
    folder: Path, people: None, everybodys_python: str
) -> None:
    told = answer_of("ill_bubblewrap", folder, "missing", everybodys_python, ANN)
    assert_contained_without_bubblewrap(told, pwd.getpwnam(ANN).pw_uid)


def assert_contained_without_bubblewrap(told: dict[str, Any], uid: int) -> None:
    assert (told["names"], told["state"], told["code"]) == (["job"], "error", 3)
    devices, own, hidden, *written, imported = told["saw"]
    assert devices == "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero"
    assert (own.split(), hidden) == (["/run:", "cockpit-python", "/var/tmp:"], "1")
    assert (written, imported) == ([], "True /run/cockpit-python/kubeai/elastic.py")
    assert told["entered"] == ["mine", str(uid)]
    assert told["brought_out"] == ["mine\n", "mine\n"]
    assert "without bubblewrap" in told["containers"]
    _, finding = told["doctor"]
    assert finding["level"] == "note"
    assert "apt-get install bubblewrap" in finding["advice"]


@pytest.mark.req("TR-03")
def test_a_hanging_bubblewrap_ends_the_job_and_delays_no_other(folder: Path) -> None:
    told = answer_of("ill_bubblewrap", folder, "hanging")
    assert told["states_at_once"] in (["queued"], ["starting"])  # it was answered while the job hung
    assert (told["names"], told["state"], told["code"]) == (["job"], "error", 255)
    assert "bubblewrap (bwrap) hangs on this node" in told["page"]
    code, finding = told["doctor"]
    assert (code, finding["level"]) == (72, "missing")
