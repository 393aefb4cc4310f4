"""Prepare jobs as plain processes, on machines that do not allow the engine to make containers.

    FOLDER/workspace   links to the job's folders, arranged as /workspace is in a container
    FOLDER/tmp         the job's TMPDIR, deleted with the attempt

Only root could create /workspace itself, so FOLDER/workspace replaces it in the command, the environment and the
working folder. A script that contains the path /workspace does not find it; `$COCKPIT_WORKSPACE` is right in both
cases.
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
"""Text for a job's page, after the sentence on how limits are enforced."""
_WORKSPACE = "/workspace"
_CONTAINERS_TMP = "/tmp"  # noqa: S108 - never the machine's
_ELSEWHERE = {"COCKPIT_WORKERS_FILE": "world", "COCKPIT_WORKERS_SOCKET": "world", "COCKPIT_PULSE_FILE": "pulse"}
"""Variables that name an elastic job's worker list, its socket and its heartbeat file, with the attempt's folders that
contain them."""
_LIBRARY = "/run/cockpit-python"
"""The packages that every job can import; the state folder has them under `python`."""
_NAMED = re.compile(rf"(?<![\w./-]){_WORKSPACE}(?![\w.-])")
"""Matches /workspace in a text: as a word, or after `=`, `:` or a quote, but not inside of another path."""


def lay_out(attempt: Attempt, plan: PlanDict) -> None:
    """Make the folders, and links to the job's folders after checking these. Raises SourceError or OSError."""
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
            # Folders at their own paths are visible anyway; they are only checked.
            real_folder(plan, mount)
            continue
        place = workspace + mount["target"].removeprefix(_WORKSPACE)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        _link(real_folder(plan, mount), place)


def outfit(attempt: Attempt, plan: PlanDict) -> PlanDict:
    """Return the plan with /workspace replaced, a TMPDIR, and the variable that marks the job's processes."""
    workspace, tmp = attempt.file("workspace"), attempt.file("tmp")

    def placed(text: str) -> str:
        text = _NAMED.sub(lambda _: workspace, text)
        return text.replace(spool.PLACE, tools) if tools else text

    tools = spool.lay_out(attempt, plan)
    env = {**{name: placed(value) for name, value in plan["env"].items()}, MARK: plan["cgroup"]}
    # TMPDIR is replaced only if it is the default: a folder that the job chose itself exists on the machine.
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
    """Make a link, unless an earlier holder of this attempt has made it."""
    if not os.path.islink(place):
        os.symlink(target, place)
