"""Jobs as plain processes, where this machine lets its engine make no container: what is done in a container's stead.

    FOLDER/workspace   links to the job's own folders, laid out as /workspace is in a container
    FOLDER/tmp         its TMPDIR, which goes away with it

/workspace itself belongs to nobody but root, so command, environment and working folder name FOLDER/workspace in its
place. A script that names /workspace by itself finds nothing there; `$COCKPIT_WORKSPACE` is right in both.
"""

from __future__ import annotations

import os
import re
import shlex

from cockpit.runtime.containers.shim import spool
from cockpit.runtime.containers.shim.job_processes import MARK
from cockpit.runtime.containers.shim.sources import SourceError, real_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cockpit.runtime.containers.shim.attempt import Attempt, PlanDict

LACKS = (
    "plain processes, not a container: no file system and no /workspace of its own, nothing read-only or hidden, cards "
    "by variables alone, nothing between it and other processes of the same user"
)
"""Said behind how limits are enforced."""
_WORKSPACE = "/workspace"
_CONTAINERS_TMP = "/tmp"  # noqa: S108 - never the machine's
_ELSEWHERE = {"COCKPIT_WORKERS_FILE": "world", "COCKPIT_PULSE_FILE": "pulse"}
"""Of an elastic job: where it is told of its workers, and where it answers; the folder of the attempt that this is."""
_LIBRARY = "/run/cockpit-python"
"""The packages that every job can import; the state folder has them under `python`."""
_NAMED = re.compile(rf"(?<![\w./-]){_WORKSPACE}(?![\w.-])")
"""Where a text names it: as a word, behind `=`, `:` or a quote, but not inside another path."""


def lay_out(attempt: Attempt, plan: PlanDict) -> None:
    """Make the folders, and the links to those of the job, which are opened first. Raises SourceError or OSError."""
    workspace = attempt.file("workspace")
    if shlex.quote(workspace) != workspace:
        raise SourceError(
            f"a command can name no plain process's folder below {attempt.state}; choose a state_folder of letters, "
            "digits and dashes"
        )
    for folder in (workspace, attempt.file("tmp")):
        os.makedirs(folder, mode=0o700, exist_ok=True)
    for mount in plan["mounts"]:
        if not mount["target"].startswith(f"{_WORKSPACE}/"):
            real_folder(plan, mount)
            continue
        place = workspace + mount["target"].removeprefix(_WORKSPACE)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        _link(real_folder(plan, mount), place)


def outfit(attempt: Attempt, plan: PlanDict) -> PlanDict:
    """The plan with what stands for /workspace in it, a TMPDIR, and the mark of its processes."""
    workspace, tmp = attempt.file("workspace"), attempt.file("tmp")

    def placed(text: str) -> str:
        text = _NAMED.sub(lambda _: workspace, text)
        return text.replace(spool.PLACE, tools) if tools else text

    tools = spool.lay_out(attempt, plan)
    env = {**{name: placed(value) for name, value in plan["env"].items()}, MARK: plan["cgroup"]}
    if env.get("TMPDIR", _CONTAINERS_TMP) == _CONTAINERS_TMP:
        env["TMPDIR"] = tmp
    if plan["home_access"] == "none":
        env["HOME"] = tmp
    for name in _ELSEWHERE.keys() & env.keys():
        env[name] = attempt.file(_ELSEWHERE[name], os.path.basename(env[name]))
    if "PYTHONPATH" in env:
        library = os.path.join(attempt.state, "python")
        folders = env["PYTHONPATH"].split(":")
        env["PYTHONPATH"] = ":".join(library if folder == _LIBRARY else folder for folder in folders)
    argv = [placed(word) for word in plan["argv"]]
    hooks = {name: placed(script) for name, script in plan.get("hooks", {}).items()}
    return {**plan, "argv": argv, "hooks": hooks, "env": env, "workdir": os.path.realpath(placed(plan["workdir"]))}


def _link(target: str, place: str) -> None:
    """A second holder of the same folder finds the first one's."""
    if not os.path.islink(place):
        os.symlink(target, place)
