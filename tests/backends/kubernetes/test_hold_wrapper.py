"""The wrapper that holds the container of a failed command, run by a real shell."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from cockpit.backends.kubernetes.hold_wrapper import HOLD_SECONDS, Hold, hold_in, unwrapped, wrap
from cockpit.errors import RequestRefused
from cockpit.formats.foreign.kubernetes_jobs import write_job
from cockpit.formats.foreign.pytorchjob import write_pytorch_job
from cockpit.model.ids import Millis
from cockpit.model.spec import DebugHold, Mode
from tests.builders import a_spec

LONGEST = 60.0


def wrapped(command: str, *, hold: int = 600, limit: int = 600) -> dict[str, Any]:
    """Return the container of a job with this command."""
    spec = a_spec(image="img:1", time_limit_seconds=limit, terminal=True, debug_hold=DebugHold(window_seconds=hold))
    manifest = write_job(spec)
    container = manifest["spec"]["template"]["spec"]["containers"][0]
    container["command"] = ["sh", "-c", command]
    wrap(manifest, spec)
    return container


@contextmanager
def running(container: dict[str, Any], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    env = {each["name"]: each["value"] for each in container["env"]} | {"PATH": "/usr/bin:/bin", "TMPDIR": str(folder)}
    argv = [*container["command"], *container["args"]]
    process = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, start_new_session=True)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.mark.req("KU-08")
def test_a_command_that_succeeds_is_not_held(tmp_path: Path) -> None:
    with running(wrapped("echo done"), tmp_path) as process:
        assert line(process) == b"done\n"
        assert process.wait(LONGEST) == 0


@pytest.mark.req("KU-08")
def test_a_command_that_fails_is_held_until_the_end_in_the_file(tmp_path: Path) -> None:
    before = int(time.time())  # noqa: TID251 - what the shell's `date` reads
    with running(wrapped("echo out; exit 3"), tmp_path) as process:
        assert line(process) == b"out\n"
        hold = hold_in(line(process))
        assert hold is not None
        assert hold.exit_code == 3
        assert before <= hold.at // 1000 <= before + LONGEST
        assert hold.until == hold.at + 600_000
        until = Path(hold.folder) / "until"
        assert (until.parent.parent, until.read_text()) == (tmp_path, f"{hold.until // 1000}\n")
        assert process.poll() is None
        until.write_text("0\n")
        assert process.wait(LONGEST) == 3


@pytest.mark.req("KU-08")
def test_a_hold_ends_by_itself_and_with_the_true_code(tmp_path: Path) -> None:
    with running(wrapped("exit 7", hold=1), tmp_path) as process:
        assert hold_in(line(process)) is not None
        assert process.wait(LONGEST) == 7


@pytest.mark.req("KU-08")
def test_a_signal_reaches_the_command_and_a_stopped_job_is_not_held(tmp_path: Path) -> None:
    script = "trap 'echo got; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    with running(wrapped(script), tmp_path) as process:
        assert line(process) == b"ready\n"
        process.terminate()
        assert line(process) == b"got\n"
        assert process.wait(LONGEST) == 5
        assert line(process) == b""


@pytest.mark.req("KU-08")
def test_a_signal_during_the_hold_ends_it(tmp_path: Path) -> None:
    with running(wrapped("exit 9"), tmp_path) as process:
        assert hold_in(line(process)) is not None
        process.terminate()
        assert process.wait(LONGEST) == 9


@pytest.mark.req("KU-08")
def test_at_the_time_limit_the_command_is_ended_and_not_held(tmp_path: Path) -> None:
    with running(wrapped("echo begun; exec sleep 600", limit=1), tmp_path) as process:
        assert line(process) == b"begun\n"
        assert process.wait(LONGEST) == 128 + signal.SIGTERM
        assert line(process) == b""


@pytest.mark.req("KU-08")
def test_the_job_may_last_as_long_as_limit_and_hold_and_its_pods_stay() -> None:
    spec = a_spec(
        image="img:1",
        mode=Mode.PYTORCH,
        nodes=2,
        terminal=True,
        time_limit_seconds=100,
        debug_hold=DebugHold(window_seconds=50),
        env={"A": "b"},
    )
    manifest = write_pytorch_job(spec)
    before = [role["template"]["spec"]["containers"][0].copy() for role in _roles(manifest)]
    wrap(manifest, spec)
    assert manifest["metadata"]["annotations"] == {HOLD_SECONDS: "50"}
    policy = manifest["spec"]["runPolicy"]
    assert (policy["activeDeadlineSeconds"], policy["cleanPodPolicy"]) == (270, "None")
    for role, old in zip(_roles(manifest), before, strict=True):
        new = role["template"]["spec"]["containers"][0]
        assert list(unwrapped((*new["command"], *new["args"]))) == [*old["command"], *old.get("args", ())]
        assert {"name": "A", "value": "b"} in new["env"]


def _roles(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    return list(manifest["spec"]["pytorchReplicaSpecs"].values())


@pytest.mark.req("KU-08")
def test_kubernetes_finds_nothing_in_the_wrapper_to_expand() -> None:
    assert not re.search(r"\$[($]", " ".join(wrapped("true")["args"][:2]))


@pytest.mark.req("KU-08")
def test_the_entry_point_of_an_image_cannot_be_wrapped() -> None:
    spec = a_spec(image="img:1", terminal=True)
    manifest = write_job(spec)
    del manifest["spec"]["template"]["spec"]["containers"][0]["command"]
    with pytest.raises(RequestRefused, match="only if the job has a command"):
        wrap(manifest, spec)


@pytest.mark.req("KU-08", "TR-05")
@pytest.mark.parametrize(
    ("tail", "hold"),
    [
        (
            b"cockpit:held rc=3 at=100 until=200 folder=/tmp/x.1\n",
            Hold(3, Millis(100_000), Millis(200_000), "/tmp/x.1"),
        ),
        (b"x\ncockpit:held rc=3 at=100 until=200 folder=\n", Hold(3, Millis(100_000), Millis(200_000), "")),
        (b"cockpit:held rc=3 at=100 until=200 folder=/tmp/x\nmore\n", None),
        (b"cockpit:held rc=3 at=100 until=200 folder=/tmp/$(x)\n", None),
        (b"cockpit:held rc=3\n", None),
        (b"", None),
    ],
)
def test_only_the_last_line_of_a_log_announces_a_hold(tail: bytes, hold: Hold | None) -> None:
    assert hold_in(tail) == hold
