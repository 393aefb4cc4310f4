"""The record of a job's steps, which its `srun` processes share."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from cockpit.runtime.containers.slurmtools.steps import Steps

pytestmark = pytest.mark.req("LA-71")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"COCKPIT_PLAIN": "1", "TMPDIR": str(tmp_path), "SLURM_JOB_ID": "7"}


def never() -> None:
    raise AssertionError("waited")


def recorded(folder: Path) -> dict[str, object]:
    (file,) = folder.glob(".slurm-steps-*")
    assert (file.name, file.stat().st_mode & 0o777) == (f".slurm-steps-7-{os.getuid()}", 0o600)
    return json.loads(file.read_text())


def test_steps_are_numbered_from_zero_on(env, tmp_path):
    seen = []

    def take(held):
        seen.append(dict(held))
        return {"cpus": [0]}

    steps = Steps(env)
    assert [steps.begin(take, never) for _ in range(3)] == [0, 1, 2]
    mine = {str(os.getpid()): {"cpus": [0]}}
    assert seen == [{}, mine, mine]
    assert recorded(tmp_path) == {"next": 3, "held": mine}
    steps.end()
    steps.end()
    assert recorded(tmp_path) == {"next": 3, "held": {}}


def test_only_the_steps_of_living_processes_hold_something(env, tmp_path):
    dead = subprocess.Popen(["true"])
    dead.wait()
    parent = str(os.getppid())
    held = {str(dead.pid): {"cpus": [0]}, parent: {"cpus": [1]}}
    (tmp_path / f".slurm-steps-7-{os.getuid()}").write_text(json.dumps({"next": 4, "held": held}))
    (tmp_path / f".slurm-steps-7-{os.getuid()}").chmod(0o600)
    steps = Steps(env)
    assert steps.begin(lambda others: {"others": sorted(others)}, never) == 4
    steps.end()
    assert recorded(tmp_path) == {"next": 5, "held": {parent: {"cpus": [1]}}}


def test_a_step_that_has_to_wait_says_so_once(env, monkeypatch):
    answers, said, pauses = iter([None, None, {}]), [], []
    monkeypatch.setattr("time.sleep", pauses.append)
    assert Steps(env).begin(lambda _: next(answers), lambda: said.append("waits")) == 0
    assert said == ["waits"]
    assert len(pauses) == 2


@pytest.mark.parametrize(
    ("env", "folder"),
    [({"TMPDIR": "/x"}, "/tmp"), ({"COCKPIT_PLAIN": "1"}, "/tmp"), ({"COCKPIT_PLAIN": "1", "TMPDIR": "/x"}, "/x")],
)
def test_all_steps_of_a_job_find_the_same_record(env, folder):
    """A script may set another TMPDIR for each step; only a plain process has a folder of its own there."""
    assert Steps(env)._path == Path(folder, f".slurm-steps-0-{os.getuid()}")
