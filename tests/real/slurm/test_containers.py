"""A failed job's container on a real cluster. Debian has neither pyxis nor apptainer: the program is a stand-in, which
runs what it is told to and says in which image; all else is Slurm's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cockpit.errors import RequestRefused
from cockpit.model.asking import LogRequest, ShellRequest
from cockpit.model.job import JobState
from cockpit.model.spec import DebugHold, HoldAllocation
from tests.real.slurm.conftest import backend_for, eventually
from tests.real.slurm.real_cluster import ADA
from tests.real.slurm.test_acting import a_job, read_all, state_of

if TYPE_CHECKING:
    from cockpit.backends.slurm.backend import SlurmBackend
    from tests.real.slurm.real_cluster import RealCluster

pytestmark = [pytest.mark.real, pytest.mark.real_slurm]
STAND_IN = """#!/bin/sh
shift
while :; do
    case $1 in
    --overlay) overlay=$2; shift 2 ;;
    --bind) shift 2 ;;
    *) break ;;
    esac
done
echo "in $1"
shift
cd "$overlay" && exec "$@"
"""


@pytest.mark.req("SL-23")
async def test_a_failed_jobs_container_is_held_and_reopened_in_a_new_job(
    emptied: RealCluster, ada: SlurmBackend
) -> None:
    home = emptied.home(ADA)
    freed = DebugHold(allocation=HoldAllocation.FREE)
    spec = a_job(emptied, "boxed", "echo changed >file; exit 3", terminal=True, debug_hold=freed)
    spec = replace(spec, image="library/python:3.11")
    with pytest.raises(RequestRefused, match="neither pyxis nor apptainer"):
        await ada.submit([spec])
    (home / "bin").mkdir(exist_ok=True)
    (home / "bin/apptainer").write_text(STAND_IN)
    (home / "bin/apptainer").chmod(0o755)
    equipped = backend_for(emptied, ADA, env={"PATH": f"{home}/bin:{emptied.env['PATH']}"})
    try:
        (job,) = await equipped.submit([spec])
        ended = await eventually(lambda: state_of(equipped, job), lambda found: found.state is JobState.ERROR)
        assert ended.exit is not None
        assert ended.exit.code == 3
        wrote = await eventually(lambda: equipped.logs(LogRequest(job=job)), lambda chunk: b"held" in chunk.data)
        assert wrote.data.startswith(b"in docker://library/python:3.11\n")
        shell = await equipped.open_shell(ShellRequest(job=job, command=("cat", "file")))
        assert shell.pipe_fds is not None
        assert read_all(shell.pipe_fds[1]) == b"in docker://library/python:3.11\nchanged\n"
    finally:
        await equipped.close()
