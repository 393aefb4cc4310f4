"""The remedy for a batch script whose tasks do not fit on one node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model.reasons import NeverFits, Reason, Resource
from cockpit.model.text import is_whole

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec


def spreading_remedy(spec: JobSpec, reason: Reason) -> str | None:
    """Return the options that spread the script's tasks over nodes; None: its tasks are not why it never fits. Slurm
    chooses the number of nodes for `--ntasks` alone, and the embedded engine plans all tasks on one."""
    if spec.script is None or not isinstance(reason, NeverFits) or reason.resource is not Resource.CPUS:
        return None
    from cockpit.formats.foreign.sbatch_options import script_options

    options = script_options(spec.script.text)
    tasks, each = (options.get(name, "") for name in ("ntasks", "cpus-per-task"))
    if not is_whole(tasks) or {"nodes", "ntasks-per-node"} & options.keys():
        return None
    per_node = reason.most // (int(each) if is_whole(each) and int(each) else 1)
    if not 0 < per_node < int(tasks):
        return None
    nodes = -(-int(tasks) // per_node)
    return (
        f"--ntasks={tasks} without --nodes is planned on one node here; add -N {nodes}, "
        f"or -N {nodes} --ntasks-per-node={per_node}"
    )
