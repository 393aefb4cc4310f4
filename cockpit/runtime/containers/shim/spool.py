"""The folder of a job's batch script: the script itself, `srun`, `scontrol`, and what these know of the job."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cockpit.runtime.containers.shim.attempt import Attempt, PlanDict

PLACE = "/run/cockpit-slurm"
"""Where it stands in a container; `launch.batchscript.SPOOL`."""
TOOLS = f"{PLACE}/bin"
_FOLDER = "slurm"


def is_spooled(path: str) -> bool:
    """Whether a file of the plan stands in this folder."""
    return path.startswith(f"{PLACE}/")


def tools(plan: PlanDict) -> list[str]:
    """Names of the commands that stand there."""
    return [os.path.basename(path) for path in plan.get("files", {}) if os.path.dirname(path) == TOOLS]


def lay_out(attempt: Attempt, plan: PlanDict) -> str:
    """Write the folder, which the job can read and not change; empty where the plan has no such files."""
    given = {path: text for path, text in plan.get("files", {}).items() if is_spooled(path)}
    if not given:
        return ""
    folder = attempt.file(_FOLDER)
    for path, text in given.items():
        place = folder + path.removeprefix(PLACE)
        _make_folder(folder, os.path.dirname(place))
        _write(place, text)
    return folder


def _make_folder(folder: str, inner: str) -> None:
    for each in (folder, inner):
        os.makedirs(each, exist_ok=True)
        os.chmod(each, 0o755)  # noqa: S103 - for the submitter, who may read what is in it


def _write(place: str, text: str) -> None:
    """Replaced in one step: a script that runs from a file that is written to cannot be executed."""
    draft = f"{place}.new"
    with open(draft, "w", encoding="utf-8", errors="surrogateescape", newline="") as stream:
        stream.write(text)
    os.chmod(draft, 0o755 if text.startswith("#!") else 0o644)
    os.rename(draft, place)
