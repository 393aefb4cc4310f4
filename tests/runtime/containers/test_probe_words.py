"""What the probe of a machine says of the containers that it can make."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from cockpit.runtime.containers import probe
from cockpit.runtime.containers.probe import ContainerRuntime
from cockpit.runtime.containers.shim import bubblewrap, plain, syscalls
from cockpit.runtime.containers.shim.attempt import Attempt
from cockpit.runtime.containers.shim.identity import identity_of
from cockpit.runtime.containers.shim.limits import READ_ONLY

pytestmark = pytest.mark.req("TR-03")


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    folder = tmp_path / "containers" / "probe-x"
    folder.mkdir(parents=True)
    return Attempt(str(folder))


@pytest.mark.parametrize(
    ("found", "usable", "is_plain", "trouble", "text"),
    [
        (ContainerRuntime(kind="root overlay"), True, False, "", "root overlay"),
        (ContainerRuntime(kind="root overlay", lacks="x"), True, False, "", "root overlay: x"),
        (ContainerRuntime(kind="plain processes", lacks="no walls"), True, True, "", "no walls"),
        (ContainerRuntime(kind="none", lacks="y"), False, False, "No job can run here: y.", "none: y"),
    ],
)
def test_a_runtime_is_described(found: ContainerRuntime, usable: bool, is_plain: bool, trouble: str, text: str) -> None:
    assert (found.usable, found.is_plain, found.trouble, str(found)) == (usable, is_plain, trouble, text)


@pytest.mark.parametrize(
    ("record", "started", "found"),
    [
        ({"code": 0}, {"limits": "cgroup"}, ContainerRuntime(kind="root overlay")),
        ({"code": 1}, {"limits": "cgroup"}, ContainerRuntime(kind="none", lacks="`true` ended with {'code': 1}")),
        ({"lost": "no space"}, None, ContainerRuntime(kind="none", lacks="no space")),
        ({"code": 0}, None, ContainerRuntime(kind="none", lacks="`true` ended with {'code': 0}")),
        (
            {"code": 0},
            {"limits": f"cgroup{READ_ONLY}/proc/sys"},
            ContainerRuntime(kind="root overlay", lacks="/proc/sys cannot be changed by jobs, not even for themselves"),
        ),
    ],
)
def test_the_end_of_the_probe_says_whether_containers_work(
    attempt: Attempt, monkeypatch: pytest.MonkeyPatch, record, started, found
) -> None:
    monkeypatch.setattr(bubblewrap, "installed", lambda: "/usr/bin/bwrap")
    monkeypatch.setattr(syscalls, "is_known", lambda: True)
    if started is not None:
        attempt.write("started.json", started)
    assert probe._judge(record, attempt, rootless=False) == found
    if found.usable:
        assert probe._judge(record, attempt, rootless=True).kind == "user overlay"


def test_what_a_machine_lacks_is_listed(attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "installed", lambda: "")
    monkeypatch.setattr(syscalls, "is_known", lambda: False)
    attempt.write("started.json", {"limits": ""})
    found = probe._judge({"code": 0}, attempt, rootless=False)
    assert found.lacks == f"{probe.UNAIDED}; {syscalls.UNFILTERED} on this processor"
    attempt.write("shim.json", {"plain": True})
    assert probe._judge({"code": 0}, attempt, rootless=False) == ContainerRuntime(
        kind="plain processes", lacks=plain.LACKS
    )


def test_a_probe_that_does_not_end_is_given_up(attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_PROBE_SECONDS", 0.02)
    assert "did not end within" in probe._await_exit(attempt)["lost"]
    attempt.write_exit({"code": 0})
    monkeypatch.setattr(probe, "_PROBE_SECONDS", 30)
    assert probe._await_exit(attempt) == {"code": 0}


def test_a_holder_that_an_earlier_probe_left_is_ended_and_its_folder_removed(attempt: Attempt) -> None:
    left = subprocess.Popen(["sleep", "100"])
    attempt.write("shim.json", identity_of(left.pid))
    probe._end(attempt)
    assert left.wait(30) == -signal.SIGKILL
    assert not os.path.exists(attempt.path)
