"""The fields of a worker pool; `{}` keeps the position of one that is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.formats.kinds import ImageText, Text, Whole
from cockpit.formats.tables import Field, Table
from cockpit.model.rules.bounds import LABEL_LENGTH, Bounds
from cockpit.model.rules.pools import MOST_DISK_GIB, MOST_GBPS, MOST_HELPERS
from cockpit.model.rules.text import COMMAND_BYTES
from cockpit.model.spec import WorkerPool

if TYPE_CHECKING:
    from cockpit.model.spec import NodeSpec

_LABEL = Text(minLength=1, maxLength=LABEL_LENGTH)


def pool_table(node_spec: Table[NodeSpec]) -> Table[WorkerPool]:
    """`node_spec`: how a node spec is written."""
    return Table(
        WorkerPool,
        [
            Field(
                name="replicas",
                attribute="replicas",
                kind=Whole(Bounds(0, MOST_HELPERS)),
                derive=lambda given: 1 if given else 0,
                about="How many; by default 1, and of the first pool always 1.",
            ),
            Field(name="spec", attribute="spec", kind=node_spec, about="What the node of each must offer."),
            Field(
                name="command",
                attribute="command",
                kind=Text(minLength=1, maxLength=COMMAND_BYTES),
                about="What they run; by default the job's command.",
            ),
            Field(
                name="image", attribute="image", kind=ImageText(), about="What they begin with; by default the job's."
            ),
            Field(
                name="machine_type",
                attribute="machine_type",
                kind=_LABEL,
                about="As a cloud names it, such as n1-highcpu-16; says the bandwidth of those that are known.",
            ),
            Field(name="disk_type", attribute="disk_type", kind=_LABEL, about="As a cloud names it: pd-ssd."),
            Field(
                name="disk_size",
                attribute="disk_gib",
                kind=Whole(Bounds(0, MOST_DISK_GIB)),
                about="Of the disk, in GiB.",
            ),
            Field(
                name="bandwidth_gbps",
                attribute="bandwidth_gbps",
                kind=Whole(Bounds(0, MOST_GBPS)),
                about="Outward, of each; by default that of its machine type.",
            ),
        ],
    )
