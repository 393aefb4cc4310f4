"""The files and signals by which a container is suspended, on kernels with either version of cgroups and with none."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from cockpit.runtime.containers import freezing
from cockpit.runtime.containers.shim import cgroups, job_processes
from cockpit.runtime.containers.shim.attempt import Attempt
from cockpit.runtime.containers.shim.identity import identity_of

pytestmark = pytest.mark.req("SC-08")
GROUP = "key.7.1.0"


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    """An attempt whose holder is this process."""
    made = Attempt(str(tmp_path / "7.1.0"))
    Path(made.path).mkdir()
    made.write("plan.json", {"cgroup": GROUP})
    made.write("shim.json", identity_of(os.getpid()))
    return made


@pytest.fixture
def mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all cgroups."""
    (tmp_path / "cgroup").mkdir()
    monkeypatch.setattr(cgroups, "MOUNT", str(tmp_path / "cgroup"))
    monkeypatch.setattr(freezing, "_ROUND_SECONDS", 0)
    return tmp_path / "cgroup"


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[int], int]]:
    """The signals that were sent to processes of the container: 10 and 11, later also 12."""
    sent: list[tuple[list[int], int]] = []
    monkeypatch.setattr(job_processes, "of", lambda _: [10, 11] if not sent else [10, 11, 12])
    monkeypatch.setattr(job_processes, "signal_each", lambda pids, number: sent.append((list(pids), number)))
    return sent


def in_version_2(mount: Path) -> Path:
    folder = mount / cgroups.PARENT / GROUP
    folder.mkdir(parents=True)
    return folder / "cgroup.freeze"


def test_version_2_has_a_file_that_freezes(attempt, mount, signals):
    file = in_version_2(mount)
    assert freezing.freeze(attempt) == "cgroup v2"
    assert file.read_text() == "1"
    assert attempt.read("frozen.json") == {"how": "cgroup v2"}
    freezing.thaw(attempt)
    assert (file.read_text(), attempt.read("frozen.json"), signals) == ("0", None, [])
    file.write_text("x")
    freezing.thaw(attempt)
    assert file.read_text() == "x", "what is not suspended is not resumed"


def test_a_container_without_a_holder_is_not_frozen(attempt, mount, signals):
    file = in_version_2(mount)
    attempt.forget("shim.json")
    assert freezing.freeze(attempt) == ""
    assert not file.exists()
    assert attempt.read("frozen.json") is None


@pytest.fixture
def freezer(mount: Path) -> Path:
    """The freezer hierarchy of version 1, with the container's group."""
    group = mount / "freezer" / cgroups.PARENT / GROUP
    group.mkdir(parents=True)
    (mount / "freezer" / "tasks").touch()
    (group / "cgroup.procs").write_text("")
    return group


def test_version_1_freezes_a_group_once_all_processes_are_in_it(attempt, freezer, signals, monkeypatch):
    joined: list[int] = []

    def join(folder: Path, pids: list[int]) -> None:
        joined.extend(pids)
        (folder / "cgroup.procs").write_text("\n".join(map(str, joined)))

    outside = iter([[10, 11], [10, 11, 12], [10, 11, 12]])
    monkeypatch.setattr(job_processes, "of", lambda _: next(outside))
    monkeypatch.setattr(freezing, "_join", join)
    assert freezing.freeze(attempt) == "cgroup v1"
    assert joined == [10, 11, 12], "a child that was forked meanwhile joins in another round"
    assert (freezer / "freezer.state").read_text() == "FROZEN"
    assert next(outside, None) is None
    freezing.thaw(attempt)
    assert (freezer / "freezer.state").read_text() == "THAWED"


def test_each_process_is_moved_into_the_group_and_one_that_has_ended_is_no_error(tmp_path, monkeypatch):
    written: list[str] = []

    def write(_path: Path, text: str) -> None:
        written.append(text)
        if text == "10":
            raise ProcessLookupError

    monkeypatch.setattr(Path, "write_text", write)
    freezing._join(tmp_path, [10, 11])
    assert written == ["10", "11"]


def test_a_hierarchy_that_is_not_mounted_freezes_nothing(attempt, freezer, signals):
    (freezer.parent.parent / "tasks").unlink()
    assert freezing.freeze(attempt) == "signals"
    assert not (freezer / "freezer.state").exists()


def test_without_groups_every_process_is_stopped_and_continued(attempt, mount, signals):
    assert freezing.freeze(attempt) == "signals"
    assert signals == [([10, 11], signal.SIGSTOP), ([12], signal.SIGSTOP)]
    signals.clear()
    freezing.thaw(attempt)
    assert signals == [([10, 11], signal.SIGCONT)]
    assert attempt.read("frozen.json") is None


def test_a_group_that_does_not_settle_is_thawed_again(freezer, monkeypatch):
    states: list[str] = []
    monkeypatch.setattr(freezing, "_ROUNDS", 3)
    monkeypatch.setattr(Path, "read_text", lambda _: "FREEZING\n")
    monkeypatch.setattr(Path, "write_text", lambda _, text: states.append(text))
    assert not freezing._wait_until_frozen(freezer)
    assert states == ["FROZEN", "FROZEN", "FROZEN", "THAWED"]
    monkeypatch.setattr(Path, "read_text", lambda _: "FROZEN\n")
    assert freezing._wait_until_frozen(freezer)
    assert len(states) == 4


def test_an_empty_group_is_removed(freezer):
    (freezer / "cgroup.procs").unlink()
    freezing.remove_group(GROUP)
    assert not freezer.exists()
    freezing.remove_group(GROUP)
