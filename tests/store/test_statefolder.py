from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cockpit.errors import StoreError
from cockpit.store import statefolder
from cockpit.store.statefolder import FolderInUse, StateFolder


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_state_folder_is_created_private_with_its_subfolders(tmp_path: Path) -> None:
    folder = StateFolder.acquire(tmp_path / "deep" / "state")
    assert mode(folder.path) == 0o700
    assert folder.journal == tmp_path / "deep" / "state" / "journal.db"
    for inner in (folder.containers, folder.logs, folder.archive):
        assert inner.parent == folder.path
        assert mode(inner) == 0o700
    folder.release()


@pytest.mark.parametrize("before", [0o755, 0o704, 0o740, 0o710, 0o701, 0o702])
def test_an_open_folder_is_made_private(tmp_path: Path, before: int) -> None:
    tmp_path.chmod(before)
    StateFolder.acquire(tmp_path).release()
    assert mode(tmp_path) == 0o700


@pytest.mark.req("TR-03")
def test_a_second_engine_is_refused_with_the_first_ones_pid(tmp_path: Path) -> None:
    folder = StateFolder.acquire(tmp_path)
    with pytest.raises(StoreError, match=rf"Another engine \(pid {os.getpid()}\) uses .*engine stop"):
        StateFolder.acquire(tmp_path)
    folder.release()
    StateFolder.acquire(tmp_path).release()


@pytest.mark.req("TR-01", "TR-03")
@pytest.mark.parametrize("room", ["containers", "logs", "archive"])
@pytest.mark.parametrize("journal", [None, b""])
def test_job_files_without_their_journal_prevent_a_new_journal(
    tmp_path: Path, room: str, journal: bytes | None
) -> None:
    StateFolder.acquire(tmp_path).release()
    (tmp_path / room / "1.1.0").mkdir()
    if journal is not None:
        (tmp_path / "journal.db").write_bytes(journal)
    what = "missing" if journal is None else "empty"
    with pytest.raises(StoreError, match=rf"journal.db is {what}.*{room}/1\.1\.0.*move {tmp_path} away"):
        StateFolder.acquire(tmp_path)
    (tmp_path / "journal.db").write_bytes(b"whatever the store says of it")
    StateFolder.acquire(tmp_path).release()


@pytest.mark.req("TR-01", "TR-03")
def test_a_container_of_a_job_that_the_journal_has_lost_is_missed_loudly(tmp_path: Path) -> None:
    folder = StateFolder.acquire(tmp_path)
    for name in ("40.1.0", "probe-abc"):
        (tmp_path / "containers" / name).mkdir()
    folder.refuse_unknown_jobs(40)
    (tmp_path / "containers" / "41.1.0").mkdir()
    with pytest.raises(
        StoreError, match=r"has lost its last events.* knows is 40, .*containers/41\.1\.0.*newer backup"
    ):
        folder.refuse_unknown_jobs(40)
    folder.release()


@pytest.mark.req("TR-01")
def test_a_container_of_no_job_does_not_prevent_a_new_journal(tmp_path: Path) -> None:
    StateFolder.acquire(tmp_path).release()
    (tmp_path / "containers" / "probe-abc").mkdir()
    StateFolder.acquire(tmp_path).release()


HOLD = """
import sys
from pathlib import Path
from cockpit.store.statefolder import FolderInUse, StateFolder
held = StateFolder.acquire(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.req("TR-01")
def test_a_killed_engine_does_not_lock_the_folder(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(FolderInUse, match=f"pid {holder.pid}"):
            StateFolder.acquire(tmp_path)
        holder.kill()
        holder.wait()
        StateFolder.acquire(tmp_path).release()


@pytest.mark.req("TR-03")
def test_a_network_file_system_is_refused_with_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statefolder, "network_filesystem", lambda _: "nfs4")
    with pytest.raises(StoreError, match=r"network file system \(nfs4\).*state_folder.*COCKPIT_STATE_FOLDER"):
        StateFolder.acquire(tmp_path / "state")
    assert not (tmp_path / "state").exists()


def test_another_users_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(StoreError, match=rf"belongs to uid {owner}.*state_folder"):
        StateFolder.acquire(tmp_path)


def test_a_file_in_place_of_the_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    with pytest.raises(StoreError, match="state cannot be read or written"):
        StateFolder.acquire(tmp_path / "state")


def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "engine.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError):
        StateFolder.acquire(tmp_path)
    assert not (tmp_path / "elsewhere").exists()
