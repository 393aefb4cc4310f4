"""Bounds of the fields of a spec, and of how many entries its lists may have."""

from __future__ import annotations

from typing import NamedTuple

from cockpit.model.spec import DAY_SECONDS, MOST_HELPERS, NO_LIMIT_SECONDS
from cockpit.model.text import visible


class Bounds(NamedTuple):
    """A closed range of integers."""

    low: int
    high: int
    unit: str = ""

    def error(self, value: int) -> str | None:
        if self.low <= value <= self.high:
            return None
        return f"{visible(str(value))}{self.unit} is not between {self.low}{self.unit} and {self.high}{self.unit}"


# No bound is a limit of the scheduler: each is far above real clusters, and keeps a forged request from costing memory
# or time.
NODES = Bounds(1, 10_000)
PARAMETER_SERVERS = Bounds(0, MOST_HELPERS)
CPUS = Bounds(1, 65_536)
# 1 PiB
MEMORY_MIB = Bounds(1, 1 << 30, " MiB")
CARDS = Bounds(0, 1024)
# Ten years
TIME_LIMIT_SECONDS = Bounds(1, NO_LIMIT_SECONDS, " s")
GRACE_SECONDS = Bounds(0, DAY_SECONDS, " s")
WAIT_SECONDS = Bounds(1, 366 * DAY_SECONDS, " s")
PRICE_MILLI = Bounds(0, 1_000_000_000)
"""The price of a node, in thousandths of the unit in its label."""
WINDOW_SECONDS = Bounds(1, 366 * DAY_SECONDS, " s")
TOLERATION_SECONDS = Bounds(0, DAY_SECONDS, " s")
RESTARTS = Bounds(0, 1000)
"""The number of restarts, and of resumes."""
NICE = Bounds(-2_147_483_645, 2_147_483_645)
"""Nice values, as in Slurm."""
SITE_FACTOR = NICE
MOMENT = Bounds(0, 253_402_300_799_999, " ms")
"""1970 to 9999."""
ARRAY_INDEX = Bounds(0, 4_000_000)
"""Array indices, up to Slurm's largest MaxArraySize."""
DIRECT_PRIORITY = Bounds(1, (1 << 32) - 2)
"""A priority that an administrator sets. 0 means held in Slurm, and has a verb of its own here."""

MOST_SPECS = 64
MOST_CARD_MODELS = 64
MOST_PINS = NODES.high
MOST_LABELS = 64
MOST_VARIABLES = 1000
MOST_PARTITIONS = 64
MOST_DEPENDENCIES = 1000
MOST_TASKS = 100_000
"""Tasks of one array; the indices of larger ones are not even expanded."""
LABEL_LENGTH = 253
VALUE_BYTES = 64 * 1024
"""Bytes of one environment variable; Linux permits 128 KiB for `NAME=value`."""
ENVIRONMENT_BYTES = 512 * 1024
"""Bytes of all environment variables; with the command they must fit into Linux's two MiB for a new program."""

VARIABLE_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]{0,254}$"
