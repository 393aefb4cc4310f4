"""The columns of the block list of an elastic job: nodes on which it places no further worker, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from cockpit.model.ids import Millis, NodeName
from cockpit.model.job import Job
from cockpit.model.jobdetail import JobDetail
from cockpit.model.spec import ExcludedNode
from cockpit.present.columns import Column, Context, TableView, ValueKind
from cockpit.present.folding import command_id
from cockpit.present.moments import clock
from cockpit.present.safe import safe


class BlockedNode(msgspec.Struct, frozen=True):
    """A node on which a job places no worker for now."""

    node: NodeName
    replica: int | None
    """The rank of the worker that left the job there; None: the check before a start failed on the node."""
    since: Millis | None
    """When it was put on the list; None: not known."""
    because: str
    until: Millis | None = None
    """When the job may use it again by itself; None: once a user takes it off the list."""


def block_list(job: Job) -> list[BlockedNode]:
    """Return the nodes on which the job places no worker: those on its block list in order of time, then those where
    its check failed. Empty once it has ended, as no worker is placed."""
    if job.ended:
        return []
    left = sorted(_blocked_nodes(job), key=lambda each: (each.since or 0, each.replica or 0))
    return [*left, *(_excluded_node(each) for each in job.spec.excluded)]


def _blocked_nodes(job: Job) -> Iterator[BlockedNode]:
    for each in job.attempt.blocking if job.attempt is not None else ():
        if each.had is not None and each.left_at is not None:
            yield BlockedNode(each.had.node, each.rank, each.left_at, each.blocked)


def _excluded_node(excluded: ExcludedNode) -> BlockedNode:
    because = f"its check failed there: {excluded.because}"
    return BlockedNode(excluded.node, None, None, because, excluded.until)


def blocked_nodes(detail: JobDetail, context: Context) -> Iterator[str]:
    """Yield the job's block list: each node, since when and why, and the command that takes one off. The page's facts
    have the nodes where a check failed."""
    lasting = lasting_blocks(detail.job)
    if not lasting:
        return
    yield "Block list: no further worker is placed on"
    for each in lasting:
        since = f"since {clock(each.since, context.now, context.zone)}" if each.since is not None else ""
        yield f"  {safe(each.node)}  {since}: {safe(each.because)}"
    yield f"  unblock       cockpit unblock {command_id(detail.row)} {safe(lasting[0].node)}"


def lasting_blocks(job: Job) -> list[BlockedNode]:
    """Return the nodes that stay on the job's block list until a user takes them off."""
    return [each for each in block_list(job) if each.until is None]


BLOCK_LIST: Final = TableView(
    name="block-list",
    help="The block list of a job: nodes on which it places no worker for now",
    empty="No node is on the job's block list.",
    columns=(
        Column("node", "NODE", "The node"),
        Column(
            "replica",
            "REPLICA",
            "The worker that left the job there; null: the check before a start failed there",
            ValueKind.INTEGER,
            nullable=True,
        ),
        Column("since", "SINCE", "When it was put on the list; null: not known", ValueKind.MOMENT, nullable=True),
        Column(
            "until",
            "UNTIL",
            "When the job may use it again by itself; null: once a user takes it off the list",
            ValueKind.MOMENT,
            nullable=True,
        ),
        Column("because", "BECAUSE", "Why"),
    ),
)
