"""The remedy for a batch script whose tasks do not fit on one node."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from cockpit.errors import CockpitError
from cockpit.model.reasons import NeverFits, Reason, Resource
from cockpit.model.text import is_whole

if TYPE_CHECKING:
    from cockpit.model.ids import Millis
    from cockpit.model.refusal import Refusal
    from cockpit.model.spec import JobSpec
    from cockpit.model.view import NodeRow

FIELD_OF_REQUEST = re.compile(r"(?:jobs\[(?P<job>\d+)\]\.)?(?P<field>[a-z_]+(?:\[[\d*]+\])?(?:\.[a-z_]+)*)(?:: |$)")
"""The path that leads an error; it names the job where the request holds several."""


class Remedy(NamedTuple):
    """What to add to one of the refused jobs."""

    job: int
    """The job's place in the request."""
    path: str
    """The path that leads the refusal of its field."""
    text: str


async def fetched_remedies(
    refusal: Refusal, specs: Sequence[JobSpec], nodes: Callable[[], Awaitable[Sequence[NodeRow]]]
) -> list[Remedy]:
    """Return the remedies by the cluster's nodes, which are fetched only where a remedy is possible. Without an answer
    there are none: the refusal is what the user has to see."""
    too_large = (isinstance(each, NeverFits) and each.resource is Resource.CPUS for _, each in refusal.reasons)
    if not any(spec.script is not None for spec in specs) or not any(too_large):
        return []
    try:
        return spreading_remedies(refusal, specs, await nodes())
    except CockpitError:
        return []


def spreading_remedies(refusal: Refusal, specs: Sequence[JobSpec], nodes: Sequence[NodeRow]) -> list[Remedy]:
    """Return what to add to the batch scripts among the refused jobs."""
    remedies = []
    for path, reason in refusal.reasons:
        match = FIELD_OF_REQUEST.match(path)
        job = int(match["job"] or 0) if match is not None else 0
        if text := spreading_remedy(specs[job], reason, nodes):
            remedies.append(Remedy(job, path, text))
    return remedies


def refusal_lines(refusal: Refusal, remedies: Sequence[Remedy], now: Millis) -> list[str]:
    """Return the sentences of a refusal, each with the remedy of its field behind it."""
    from cockpit.present.requests import refusal_text  # loads every reason

    return [
        line + "".join(f"; {each.text}" for each in remedies if line.startswith(f"{each.path}: "))
        for line in refusal_text(refusal, now).splitlines()
    ]


def spreading_remedy(spec: JobSpec, reason: Reason, nodes: Sequence[NodeRow]) -> str | None:
    """Return the options that spread the script's tasks over nodes; None: its tasks are not why it never fits, or there
    are too few nodes. Slurm chooses the number of nodes for `--ntasks` alone, and the embedded engine plans all tasks
    on one."""
    if spec.script is None or not isinstance(reason, NeverFits) or reason.resource is not Resource.CPUS:
        return None
    from cockpit.formats.foreign.sbatch_options import script_options

    options = script_options(spec.script.text)
    tasks, each = (options.get(name, "") for name in ("ntasks", "cpus-per-task"))
    # A script that already says how it spreads was refused for another reason.
    if not is_whole(tasks) or {"nodes", "ntasks-per-node"} & options.keys():
        return None
    # `reason.most` is in CPUs, tasks are counted by what each of them asks for.
    per_node = reason.most // (int(each) if is_whole(each) and int(each) else 1)
    if not 0 < per_node < int(tasks):
        return None
    needed = -(-int(tasks) // per_node)
    # `reason.most` is the largest node's, and each of the nodes has to hold `per_node` tasks.
    if sum(row.node.cpus >= reason.most and not row.login for row in nodes) < needed:
        return None
    return (
        f"--ntasks={tasks} without --nodes is planned on one node here; add -N {needed}, "
        f"or -N {needed} --ntasks-per-node={per_node}"
    )
