"""AccaSim, a simulator of schedulers, on the same log under the same policy. It needs a Python of its own:

python3 -m venv DIR && DIR/bin/pip install accasim
COCKPIT_ACCASIM=DIR/bin/python make bench
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.formats.traces.swf import swf_lines

if TYPE_CHECKING:
    from cockpit.formats.traces.swf import History

PYTHON = os.environ.get("COCKPIT_ACCASIM")
"""None: it is not here, and figures stand beside what it reached elsewhere."""
_PROGRAM = Path(__file__).with_name("accasim_easy.py")


def accasim_jobs_a_second(past: History, processors: int, folder: Path) -> float:
    """How fast it replays the log on as many nodes of one core, without writing anything down."""
    assert PYTHON is not None
    log = folder / "log.swf"
    log.write_text("".join(swf_lines(past.jobs, ((job.waited, job.ran) for job in past.jobs), ())))
    call = [PYTHON, _PROGRAM, log, str(processors), folder]
    told = subprocess.run(call, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    jobs, rate = told.split()
    assert int(jobs) == len(past.jobs)
    return float(rate)
