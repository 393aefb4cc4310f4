"""Whether this machine belongs to a Slurm cluster: by what is configured, never by whether the cluster answers.

A controller that restarts, hangs or is cut off must not turn the next command into one for another cluster: a training
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
"""Where packages, a build from source and Slurm's own configless mode put the configuration."""


def configured_by(env: Mapping[str, str], state: str) -> str:
    """Return what says that commands here speak to a Slurm cluster; empty where nothing does.

    `state`: the user's state folder. A machine that had a configuration once is remembered there, so that a share that
    is not mounted just now changes nothing. What the environment says is not remembered: it is said again each time.
    """
    if env.get(VARIABLE):
        return f"{VARIABLE}={env[VARIABLE]}"
    mark = f"{state}/slurm-on-{os.uname().nodename}"
    found = next(filter(os.path.lexists, _files(env)), "")  # a link into a share that is away is a configuration too
    if found:
        _remember(mark, found)
        return found
    return f"{mark} (a Slurm configuration was here before)" if os.path.exists(mark) else ""


def _files(env: Mapping[str, str]) -> Iterator[str]:
    """The usual ones, then that of an installation in a folder of its own: `/opt/slurm/bin` on PATH."""
    yield from FILES
    for folder in env.get("PATH", "").split(os.pathsep):
        if folder.endswith("/bin") and os.path.exists(f"{folder}/scontrol"):
            yield f"{folder.removesuffix('bin')}etc/slurm.conf"


def _remember(mark: str, found: str) -> None:
    """Once; loading pathlib takes longer than looking whether it was done."""
    if os.path.exists(mark):
        return
    from pathlib import Path

    with suppress(OSError):  # a home that cannot be written to remembers nothing
        Path(mark).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        Path(mark).write_text(f"{found}\n", encoding="utf-8")
