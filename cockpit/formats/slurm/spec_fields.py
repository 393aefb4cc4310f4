"""The fields of a slurmSpec: the table that its reading follows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from cockpit.formats.cluster.fields import FILE
from cockpit.formats.cluster.rule_fields import PREEMPT_MODES, PREEMPT_TYPES, SECONDS, WEIGHT
from cockpit.formats.kinds import FieldType, Reading, Schema, Text, described
from cockpit.formats.measures import Checked, whole
from cockpit.formats.rulekinds import MOST_NAMES, MOST_ROWS, AtLeastOne, TresOf, Word, name, storage_error
from cockpit.formats.tables import Field, Table
from cockpit.formats.trestext import NumberMeaning
from cockpit.model.cluster import Enforce, Partition, PriorityKind, Tres
from cockpit.model.quantity import DURATION_CLOCK_PATTERN, parse_duration
from cockpit.model.rules.bounds import Bounds
from cockpit.model.spec import DAY_SECONDS
from cockpit.model.text import visible

_CLOCK = re.compile(DURATION_CLOCK_PATTERN)

Struct = TypeVar("Struct", bound=msgspec.Struct)
Value = TypeVar("Value")


class AccountingSpec(msgspec.Struct, frozen=True, kw_only=True):
    enforce: tuple[Enforce, ...] = ()


class SchedulingSpec(msgspec.Struct, frozen=True, kw_only=True):
    priority_type: PriorityKind = PriorityKind.BASIC
    age: int = 0
    assoc: int = 0
    fairshare: int = 0
    job_size: int = 0
    partition: int = 0
    qos: int = 0
    tres: Tres = {}
    preempt_type: str = PREEMPT_TYPES[0]
    preempt_mode: tuple[str, ...] = ("OFF",)
    exempt_seconds: int = 0


class SpecFields(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a slurmSpec."""

    partitions: tuple[Partition, ...]
    login_pool: str = ""
    storage: str = ""
    accounting: AccountingSpec = AccountingSpec()
    scheduling: SchedulingSpec = SchedulingSpec()
    prolog_scripts: tuple[str, ...] = ()
    epilog_scripts: tuple[str, ...] = ()


class TolerantTable(Table[Struct]):
    """A table that warns of what it does not know. Names may also be written `likeThis`, as JSON interfaces do."""

    def _read_field(self, name: str, item: object, prefix: str, reading: Reading, given: dict[str, Any]) -> None:
        own = name if name in self._by_name else _snake(name)
        if own in self._by_name:
            super()._read_field(own, item, prefix, reading, given)
        else:
            reading.warnings.append(f"{prefix}{visible(name)}: is not known here, and counts for nothing")


class Figure:
    """A whole number; JSON interfaces write long ones in quotes."""

    def __init__(self, bounds: Bounds) -> None:
        self._whole = whole(bounds)
        self.stand_in = bounds.low

    def read(self, value: object, at: str, reading: Reading) -> int:
        # protobuf's JSON writes numbers of 64 bits as text, since JavaScript cannot hold them.
        quoted = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20
        return self._whole.read(int(str(value)) if quoted else value, at, reading)

    def write(self, value: int) -> int:
        return value

    def schema(self) -> Schema:
        return self._whole.schema()


class SlurmTime:
    """Seconds of a time as slurm.conf has it: a number by itself is minutes, -1 none."""

    stand_in = 0

    def read(self, value: object, at: str, reading: Reading) -> int:
        text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
        if text == "-1":
            return 0
        if text.isascii() and text.isdigit():
            # A plain number is minutes; with seconds behind it the clock's form says the same.
            text = f"{text}:00"
        seconds = parse_duration(text) if _CLOCK.match(text) else None
        if isinstance(seconds, int) and SECONDS.error(seconds) is None:
            return seconds
        reading.wrong(at, f"is {described(value)}; write a time as Slurm does: 00:05:00, 1-12:00:00, or minutes")
        return self.stand_in

    def write(self, value: int) -> str:
        return slurm_time(value)

    def schema(self) -> Schema:
        return {"type": "string", "pattern": DURATION_CLOCK_PATTERN}


class CommaWords:
    """Words with commas between them, as slurm.conf has them; Slurm does not mind their case."""

    def __init__(self, take: Callable[[str, str, Reading], tuple[Any, ...]]) -> None:
        self.stand_in: tuple[Any, ...] = ()
        self._take = take

    def read(self, value: object, at: str, reading: Reading) -> tuple[Any, ...]:
        if not isinstance(value, str):
            reading.wrong(at, f"is {described(value)}; write words with commas between them, in quotes")
            return ()
        words = filter(None, (word.strip() for word in value.split(",")))
        return tuple(dict.fromkeys(each for word in words for each in self._take(word, at, reading)))

    def write(self, value: tuple[Any, ...]) -> str:
        return ",".join(map(str, value))

    def schema(self) -> Schema:
        return {"type": "string"}


def slurm_time(seconds: int) -> str:
    """Return the time as slurm.conf writes it: `1-12:00:00`."""
    days, rest = divmod(seconds, DAY_SECONDS)
    clock = f"{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock


def _enforce(word: str, at: str, reading: Reading) -> tuple[Enforce, ...]:
    """Return what a word enforces. Source: slurm.conf(5), AccountingStorageEnforce."""
    lower = word.lower()
    if lower == "all":
        return tuple(Enforce)
    # Words that Slurm knows are no errors: nojobs and nosteps only say what is not stored, wckeys are labels of users.
    if lower in {"nojobs", "nosteps", "wckeys"}:
        reading.warnings.append(f"{at}: {lower} is not followed here, and counts for nothing")
        return ()
    if lower in {each.value for each in Enforce}:
        return (Enforce(lower),)
    reading.wrong(at, f'"{visible(word)}" is no such word; write some of associations, limits, qos, safe, or all')
    return ()


def _preempt_mode(word: str, at: str, reading: Reading) -> tuple[str, ...]:
    """Return the mode of a word. Source: slurm.conf(5), PreemptMode."""
    if word.upper() in PREEMPT_MODES:
        return (word.upper(),)
    reading.wrong(at, f'"{visible(word)}" is no such mode; write some of {", ".join(PREEMPT_MODES)}')
    return ()


def _snake(name: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name)


def _field_type(table: Table[Any], name: str) -> FieldType[Any]:
    return next(field.kind for field in table.fields if field.name == name)


PARTITION_SPEC = TolerantTable(
    Partition,
    [
        Field("id", name(), "Give the partition an id.", attribute="name", required=True),
        Field(
            "node_pool_ids",
            AtLeastOne(name(), MOST_NAMES),
            "Name the pools that its nodes are in.",
            attribute="pools",
            required=True,
        ),
    ],
)
ACCOUNTING_SPEC = TolerantTable(
    AccountingSpec,
    [Field("accounting_storage_enforce", CommaWords(_enforce), "AccountingStorageEnforce.", attribute="enforce")],
)
_WEIGHTS = ("age", "assoc", "fairshare", "job_size", "partition", "qos")
SCHEDULING_SPEC = TolerantTable(
    SchedulingSpec,
    [
        Field("priority_type", Word([kind.value for kind in PriorityKind]), "PriorityType."),
        *(Field(f"priority_weight_{each}", Figure(WEIGHT), "A whole number.", attribute=each) for each in _WEIGHTS),
        Field("priority_weight_tres", TresOf(NumberMeaning.WEIGHT), "PriorityWeightTRES.", attribute="tres"),
        Field("preempt_type", Word(PREEMPT_TYPES), "PreemptType."),
        Field("preempt_mode", CommaWords(_preempt_mode), "PreemptMode."),
        Field("preempt_exempt_time", SlurmTime(), "PreemptExemptTime.", attribute="exempt_seconds"),
    ],
)
SPEC = TolerantTable(
    SpecFields,
    [
        Field("partitions", AtLeastOne(PARTITION_SPEC, MOST_ROWS), "Give the partitions.", required=True),
        Field("login_node_pool_id", name(), "Its nodes run no jobs.", attribute="login_pool"),
        Field(
            "home_directory_storage", Checked(Text(), storage_error), "The storage that is /home.", attribute="storage"
        ),
        Field("accounting", ACCOUNTING_SPEC, "Which rules are enforced."),
        Field("scheduling", SCHEDULING_SPEC, "Priority and preemption."),
        Field(
            "prolog_bash_scripts",
            _field_type(FILE, "prolog_bash_scripts"),
            "Whole scripts.",
            attribute="prolog_scripts",
        ),
        Field(
            "epilog_bash_scripts",
            _field_type(FILE, "epilog_bash_scripts"),
            "Whole scripts.",
            attribute="epilog_scripts",
        ),
    ],
)
