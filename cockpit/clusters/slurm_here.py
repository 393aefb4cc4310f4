"""Finds out whether this machine belongs to a Slurm cluster, by its configuration and not by whether Slurm answers.

While a controller restarts, hangs or is unreachable, the next command must not go to another cluster: a training job
that was meant for Slurm would run on the login node.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

VARIABLE = "SLURM_CONF"
FILES = (
    "/etc/slurm/slurm.conf",
    "/etc/slurm-llnl/slurm.conf",
    "/run/slurm/conf/slurm.conf",
    "/usr/local/etc/slurm.conf",
)
"""Paths at which packages, builds from source and Slurm's configless mode have the configuration."""


def configured_by(env: Mapping[str, str], state: str) -> str:
    """Return the variable or file that shows that this machine has a Slurm cluster; empty when there is none.

    `state`: the user's state folder. A machine that once had a configuration is remembered there, so that a network
    share that is not mounted at the moment changes nothing. The variable SLURM_CONF is not remembered.
    """
    if env.get(VARIABLE):
        return f"{VARIABLE}={env[VARIABLE]}"
    mark = f"{state}/slurm-on-{os.uname().nodename}"
    file = next(filter(os.path.lexists, _files(env)), "")  # lexists: a link into a share that is away counts, too
    if file:
        _remember(mark, file)
        return file
    return f"{mark} (a Slurm configuration was here before)" if os.path.exists(mark) else ""


def _files(env: Mapping[str, str]) -> Iterator[str]:
    """Yield the usual paths, then those of installations in folders of their own, such as `/opt/slurm/bin` on PATH."""
    yield from FILES
    for folder in env.get("PATH", "").split(os.pathsep):
        if folder.endswith("/bin") and os.path.exists(f"{folder}/scontrol"):
            yield f"{folder.removesuffix('bin')}etc/slurm.conf"


def _remember(mark: str, file: str) -> None:
    """Write the configuration's path into the mark file, once."""
    if os.path.exists(mark):  # before the import: importing pathlib takes longer than this look
        return
    from pathlib import Path

    with suppress(OSError):  # a home that cannot be written to stores no mark
        Path(mark).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        Path(mark).write_text(f"{file}\n", encoding="utf-8")
