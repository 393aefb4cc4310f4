"""The lines around a command that may fail, run here by sh. Time goes on only while they sleep."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from cockpit.backends.slurm.mapping.script import submission
from cockpit.model.spec import DebugHold, HoldAllocation
from tests.builders import a_spec

BEGAN = 1_000_000
HOUR = 3600
STAND_INS = {
    "date": 'cat "$CLOCK"',
    "sleep": 'echo $(($(cat "$CLOCK") + $1)) >"$CLOCK"; eval "$WHILE_ASLEEP"',
    "scontrol": 'case $1 in show) echo "$3" ;; *) echo "$*" >>"$SAID" ;; esac',
    "squeue": "echo cockpit:held rc=3 until=$NEW_END",
    "getent": "true",
}


class Ran(NamedTuple):
    code: int
    said: list[str]
    """To Slurm, after `update JobId=7`."""
    seconds: int
    """So long it lasted."""


def ran(folder: Path, command: str, *, limit: int = HOUR, hold: DebugHold | None = None, **env: str) -> Ran:
    programs, clock, said = folder / "bin", folder / "clock", folder / "said"
    programs.mkdir()
    for name, text in STAND_INS.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    clock.write_text(f"{BEGAN}\n")
    said.touch()
    work = folder / "work"
    work.mkdir()
    window = DebugHold(window_seconds=600) if hold is None else hold
    spec = replace(a_spec("job"), command=command, terminal=True, debug_hold=window, time_limit_seconds=limit)
    given = {
        "PATH": f"{programs}:/usr/bin:/bin",
        "CLOCK": str(clock),
        "SAID": str(said),
        "SLURM_JOB_ID": "7",
        "SLURM_NODEID": "0",
        "SLURM_JOB_NUM_NODES": "1",
        "SLURM_JOB_NODELIST": "n1",
    }
    script = submission(replace(spec, output=str(work))).script
    done = subprocess.run(["sh"], input=script, env=given | env, text=True, capture_output=True, check=False, cwd=work)
    return Ran(done.returncode, said.read_text().splitlines(), int(clock.read_text()) - BEGAN)


@pytest.mark.req("SL-23")
def test_a_failed_command_keeps_its_allocation_for_the_hold_and_its_exit_code(tmp_path: Path) -> None:
    assert ran(tmp_path, "exit 3") == Ran(
        3,
        [
            f"update JobId=7 Comment=cockpit:held rc=3 until={BEGAN + 600}",
            "update JobId=7 Comment=cockpit:released rc=3",
        ],
        600,
    )


def test_a_successful_command_ends_at_once(tmp_path: Path) -> None:
    assert ran(tmp_path, "true") == Ran(0, [], 0)


@pytest.mark.req("SL-23")
def test_a_hold_ends_before_the_time_limit_replaces_the_exit_code(tmp_path: Path) -> None:
    ended = ran(tmp_path, "sleep 600; exit 3", limit=300)
    assert (ended.code, ended.seconds) == (3, 300 + 600 - 60)


@pytest.mark.req("SL-23")
def test_a_signal_releases_the_hold(tmp_path: Path) -> None:
    ended = ran(tmp_path, "exit 4", WHILE_ASLEEP="kill -USR1 $PPID")
    assert (ended.code, ended.said[-1]) == (4, "update JobId=7 Comment=cockpit:released rc=4")
    assert ended.seconds < 60


@pytest.mark.req("SL-23")
def test_another_signal_makes_the_wrapper_read_the_new_end_of_the_hold(tmp_path: Path) -> None:
    longer = {"WHILE_ASLEEP": "kill -USR2 $PPID", "NEW_END": str(BEGAN + 1800)}
    assert ran(tmp_path, "exit 3", **longer).seconds >= 1800


@pytest.mark.req("SL-23")
def test_freed_nodes_leave_a_copy_of_the_folder_and_a_job_that_waits(tmp_path: Path) -> None:
    freed = DebugHold(allocation=HoldAllocation.FREE)
    ended = ran(tmp_path, "echo a >'a b'; mkdir d; echo c >d/.c; exit 3", hold=freed)
    copy = tmp_path / "work/.cockpit-copy-7-0"
    assert ended == Ran(
        3, [f"update JobId=7 Comment=cockpit:copied rc=3 folder={copy}", "requeuehold State=SpecialExit 7"], 0
    )
    assert sorted(each.name for each in copy.iterdir()) == ["a b", "d"]
    assert (copy / "d/.c").read_text() == "c\n"
