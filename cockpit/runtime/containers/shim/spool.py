"""Write the folder of a job's batch script: the script, `srun`, `scontrol`, and the job's facts for these two."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cockpit.runtime.containers.shim.attempt import Attempt, PlanDict

PLACE = "/run/cockpit-slurm"
"""The path of the folder in a container; equals `launch.batchscript.SPOOL`."""
TOOLS = f"{PLACE}/bin"
_FOLDER = "slurm"


def is_spooled(path: str) -> bool:
    """Return whether a file of the plan belongs into this folder."""
    return path.startswith(f"{PLACE}/")


def tools(plan: PlanDict) -> list[str]:
    """Return the names of the commands in this folder."""
    return [os.path.basename(path) for path in plan.get("files", {}) if os.path.dirname(path) == TOOLS]


def lay_out(attempt: Attempt, plan: PlanDict) -> str:
    """Write the folder, which is read-only for the job; return its path, or an empty text without such files."""
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
    """Replace a file in one step, since a file that is open for writing cannot be executed."""
    draft = f"{place}.new"
    with open(draft, "w", encoding="utf-8", errors="surrogateescape", newline="") as stream:
        stream.write(text)
    os.chmod(draft, 0o755 if text.startswith("#!") else 0o644)
    os.rename(draft, place)
