"""The columns of the block list of an elastic job: nodes on which it places no further worker, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from cockpit.model.ids import Millis, NodeName
from cockpit.model.job import Job
from cockpit.model.jobdetail import JobDetail
from cockpit.present.columns import Column, Context, TableView, ValueKind
from cockpit.present.folding import command_id
from cockpit.present.moments import clock
from cockpit.present.safe import safe


class BlockedNode(msgspec.Struct, frozen=True):
    """A node on a job's block list."""

    node: NodeName
    replica: int
    """The rank of the worker that left the job there."""
    since: Millis
    because: str


def block_list(job: Job) -> list[BlockedNode]:
    """Return the nodes on the job's block list, in order of time; empty once it has ended, as no worker is placed."""
    return [] if job.ended else sorted(_blocked_nodes(job), key=lambda each: (each.since, each.replica))


def _blocked_nodes(job: Job) -> Iterator[BlockedNode]:
    for each in job.attempt.blocking if job.attempt is not None else ():
        if each.had is not None and each.left_at is not None:
            yield BlockedNode(each.had.node, each.rank, each.left_at, each.blocked)


def blocked_nodes(detail: JobDetail, context: Context) -> Iterator[str]:
    """Yield the job's block list: each node, since when and why, and the command that takes one off."""
    listed_nodes = block_list(detail.job)
    if not listed_nodes:
        return
    yield "Block list: no further worker is placed on"
    for each in listed_nodes:
        yield f"  {safe(each.node)}  since {clock(each.since, context.now, context.zone)}: {safe(each.because)}"
    yield f"  unblock       cockpit unblock {command_id(detail.row)} {safe(listed_nodes[0].node)}"


BLOCK_LIST: Final = TableView(
    name="block-list",
    help="The block list of an elastic job: nodes on which it places no further worker",
    empty="No node is on the job's block list.",
    columns=(
        Column("node", "NODE", "The node"),
        Column("replica", "REPLICA", "The worker that left the job there", ValueKind.INTEGER),
        Column("since", "SINCE", "When it was put on the list", ValueKind.MOMENT),
        Column("because", "BECAUSE", "Why"),
    ),
)
