"""The fields of a worker pool; `{}` keeps the position of one that is left out."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from cockpit.formats.kinds import Choice, ImageText, Reading, Schema, Text, WholeNumber, described
from cockpit.formats.tables import Field, Table
from cockpit.model.rules.bounds import LABEL_LENGTH, MOST_TASKS, Bounds
from cockpit.model.rules.pools import (
    MOST_CHOICES,
    MOST_DISK_GIB,
    MOST_GBPS,
    MOST_PARAMETERS,
    PARAMETER_PATTERN,
)
from cockpit.model.rules.text import COMMAND_BYTES
from cockpit.model.spec import MOST_HELPERS, Search, Sweep, WorkerPool
from cockpit.model.text import visible

if TYPE_CHECKING:
    from cockpit.model.spec import NodeSpec


_LABEL = Text(minLength=1, maxLength=LABEL_LENGTH)


def pool_table(node_spec: Table[NodeSpec]) -> Table[WorkerPool]:
    """Return the table that reads and writes a worker pool.

    `node_spec`: how a node spec is written.
    """
    return Table(
        WorkerPool,
        [
            Field(
                "replicas",
                WholeNumber(Bounds(0, MOST_HELPERS)),
                "Number of replicas; by default 1, and always 1 for the first pool.",
                # `{}` gives nothing, so that it has no replicas and keeps its position.
                derive=lambda given: 1 if given else 0,
            ),
            Field("spec", node_spec, "Resources of each replica's node."),
            Field("command", Text(minLength=1, maxLength=COMMAND_BYTES), "Their command; by default the job's."),
            Field("image", ImageText(), "Their image; by default the job's."),
            Field(
                "machine_type",
                _LABEL,
                "A cloud's machine type, such as n1-highcpu-16; sets the bandwidth of known types.",
            ),
            Field("disk_type", _LABEL, "A cloud's disk type: pd-ssd."),
            Field(
                "disk_size", WholeNumber(Bounds(0, MOST_DISK_GIB)), "Size of the disk, in GiB.", attribute="disk_gib"
            ),
            Field(
                "bandwidth_gbps",
                WholeNumber(Bounds(0, MOST_GBPS)),
                "Outgoing bandwidth of each; by default that of its machine type.",
            ),
        ],
    )


Parameters = Mapping[str, tuple[str, ...]]


class _Parameters:
    """Reads lists of values by name. Numbers and truth values may be written without quotes."""

    stand_in: Parameters = MappingProxyType({"x": ("1",)})

    def read(self, value: object, at: str, reading: Reading) -> Parameters:
        if not isinstance(value, dict):
            reading.wrong(at, f"is {described(value)}; write lists of values by name: {{lr: [0.1, 0.01]}}")
            return self.stand_in
        return {name: self._choices(item, f"{at}.{visible(name)}", reading) for name, item in value.items()}

    def _choices(self, value: object, at: str, reading: Reading) -> tuple[str, ...]:
        if not isinstance(value, list) or any(isinstance(each, dict | list) or each is None for each in value):
            reading.wrong(at, f"is {described(value)}; write a list of values")
            return ("1",)
        # In the words of YAML: Python's `True` is no argument that a program expects.
        return tuple(str(each).lower() if isinstance(each, bool) else str(each) for each in value)

    def write(self, value: Parameters) -> dict[str, list[str]]:
        return {name: list(choices) for name, choices in value.items()}

    def schema(self) -> Schema:
        values = {"type": "array", "items": {"type": ["string", "number", "boolean"]}, "maxItems": MOST_CHOICES}
        return {
            "type": "object",
            "propertyNames": {"pattern": PARAMETER_PATTERN},
            "additionalProperties": values,
            "maxProperties": MOST_PARAMETERS,
        }


SWEEP = Table(
    Sweep,
    [
        Field(
            "parameters",
            _Parameters(),
            "Give a list of values for each parameter; each trial gets one of each, as --name=value.",
            required=True,
        ),
        Field(
            "max_trials",
            WholeNumber(Bounds(0, MOST_TASKS)),
            "The largest number of trials; by default one for each combination.",
        ),
        Field(
            "parallel",
            WholeNumber(Bounds(0, MOST_TASKS)),
            "The largest number of trials at the same time; by default as many as fit.",
        ),
        Field("search", Choice(Search), "The combinations in order (grid), or chosen by the seed (random)."),
        Field("seed", WholeNumber(Bounds(0, (1 << 32) - 1)), "Seed of the random choice."),
    ],
)
