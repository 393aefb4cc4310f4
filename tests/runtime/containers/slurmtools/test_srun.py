"""The srun of a job's script, run as a program of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

SIGNALLED_AT_ONCE = """
import os, signal, sys
from cockpit.runtime.containers.slurmtools import srun

start = srun._child

def start_and_signal(*args, **options):
    process = start(*args, **options)
    os.kill(os.getpid(), signal.SIGUSR1)
    return process

srun._child = start_and_signal
sys.exit(srun.main(["-n2", "--overlap", "sleep", "60"]))
"""


@pytest.mark.req("LA-71")
def test_a_signal_that_comes_while_tasks_start_reaches_all_of_them(tmp_path: Path) -> None:
    env = os.environ | {
        "TMPDIR": str(tmp_path),
        "COCKPIT_PLAIN": "1",
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NODELIST": "a",
        "SLURM_CPUS_ON_NODE": "2",
    }
    run = subprocess.run(
        [sys.executable, "-c", SIGNALLED_AT_ONCE], env=env, cwd=tmp_path, capture_output=True, check=False, timeout=50
    )
    assert run.returncode == 128 + 10, run.stderr
