"""turm, a terminal interface for Slurm, over a queue that does not exist. `pip install turm` puts it on PATH."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from tests.doubles.terminal import Terminal

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = os.environ.get("COCKPIT_TURM") or shutil.which("turm")
"""None: it is not here, and figures stand beside what it reached elsewhere."""
END = "###turm###"
"""Between two fields, as it asks `squeue` for them."""


def turm_over(rows: int, folder: Path) -> Terminal:
    """It asks once; its screen does not change by itself."""
    assert COMMAND is not None
    (folder / "queue").write_text("".join(_line(number) for number in range(1, rows + 1)))
    squeue = folder / "squeue"
    squeue.write_text(f"#!/bin/sh\nexec cat '{folder}/queue'\n")
    squeue.chmod(0o755)
    env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    return Terminal([COMMAND, "--slurm-refresh", "3600"], env)


def _line(number: int) -> str:
    fields = (
        number, f"train-bert-{number % 977}", "PENDING", f"user{number % 61}", "0:00", "8:00:00", "N/A",
        "cpu=4,mem=16G,node=1", "gpu", "", f"/out/{number}.out", f"/out/{number}.err", "train.sh", "PD", "Resources",
        number, "N/A", "", "/home",
    )  # fmt: skip
    return "".join(f"{field}{END}" for field in fields) + "\n"
