"""Made-up values of any of the model's types, the same in every run.

Each value depends only on the class, the field and a number, so that a new field changes no other one. Over some
numbers in a row every alternative of every field comes up: absent and present, each word of a fixed set, each class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from random import Random
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.spec import NO_LIMIT_SECONDS, Access
from tests.doubles.samples import HOUR, MINUTE, NOW

MOMENTS = (-50 * HOUR, -3 * HOUR, -50 * MINUTE, -42_000, 35 * MINUTE, 9 * HOUR, 60 * HOUR)
AMOUNTS: dict[str, tuple[int, ...]] = {
    "_mib": (512, 16_384, 300_000),
    "_milli": (500, 1000, 8000),
    "_ms": (0, 1500, 400_000, 90_000_000),
    "seconds": (0, 42, 760, 28_800, 500_000),
    "": (0, 1, 2, 7, 64, 12_000),
}
"""Integers by the end of their field's name."""
WORDS: dict[str, tuple[Any, ...]] = {
    "JobRow.access": (None, Access.RW, Access.RO),
    "JobRow.time_limit_seconds": (NO_LIMIT_SECONDS, 42, 760, 28_800, 500_000),
    "AccountRow.depth": (0, 1, 2),
    "QueueRow.level": (0, 1, 2),
    "Slow.e2e_ms": (4.0, 10.0),
    "ArrayTask.index": (0, 1, 2),
    "WhatIf.before": ("4", "28800"),
    "WhatIf.after": ("2", "7200"),
    "Association.account": ("root", "nlp", "cv"),
    "Sweep.parameters": ({"lr": ("0.1", "0.01"), "layers": ("2", "4")}, {"seed": ("1", "2", "3")}),
    "PartitionRefuses.asked": ("8", "7200"),
    "PartitionRefuses.allowed": ("4", "3600"),
}
"""What some fields hold, where it is less than their type allows."""
ABSENT = -1
"""The number of what has nothing to say: no text, no figure, no job, nothing that may be absent."""
PARTS = (0.0, 0.004, 0.31, 0.5, 1.0, 2.5)


def made_up(kind: Any, number: int, name: str = "") -> Any:
    """A value of a type. `name`: the class and the field that it is for."""
    random, origin = Random(f"{name} {number}"), get_origin(kind)
    if name in WORDS:
        return WORDS[name][0] if number == ABSENT else random.choice(WORDS[name])
    if kind in NEW_TYPES:
        return NEW_TYPES[kind](random, number)
    if hasattr(kind, "__supertype__"):
        return made_up(kind.__supertype__, number, name)
    if origin is Annotated:
        return made_up(get_args(kind)[0], number, name)
    if origin in (Union, UnionType):
        return _alternative(kind, number, name, random)
    if origin is not None:
        return random.choice(get_args(kind)) if origin is Literal else _several(kind, number, name, random)
    if issubclass(kind, Enum):
        return list(kind)[number % len(kind)]
    return _plain(kind, number, name, random) if kind in (NoneType, bool, int, float, str) else _record(kind, number)


NEW_TYPES: dict[Any, Callable[[Random, int], Any]] = {
    Millis: lambda random, _: NOW + random.choice(MOMENTS),
    JobId: lambda random, number: 0 if number == ABSENT else 4700 + random.randrange(40),
    NodeName: lambda random, _: f"n{random.randrange(3):02}",
}


def _plain(kind: type, number: int, name: str, random: Random) -> object:
    if kind is int and name.endswith("_at"):
        return NOW + random.choice(MOMENTS)
    if number == ABSENT or kind is NoneType:
        return None if kind is NoneType else kind()
    if kind is bool:
        return random.random() < 0.4
    if kind is int:
        return random.choice(next(some for end, some in AMOUNTS.items() if name.endswith(end)))
    if kind is float:
        return random.choice(PARTS)
    return random.choice(("", *(f"{name.rpartition('.')[2].replace('_', '-')}-{each}" for each in "ab")))


def _record(kind: Any, number: int) -> Any:
    hints = get_type_hints(kind, include_extras=True)
    fields = kind.__struct_fields__ if issubclass(kind, msgspec.Struct) else kind._fields
    fields = [field for field in fields if kind not in get_args(hints[field])]  # a record of itself has no end
    return kind(**{field: made_up(hints[field], number, f"{kind.__name__}.{field}") for field in fields})


def _alternative(kind: Any, number: int, name: str, random: Random) -> Any:
    """The classes of a union take turns."""
    kinds = [each for each in get_args(kind) if each is not NoneType]
    if len(kinds) < len(get_args(kind)) and (number == ABSENT or random.random() < 0.4):
        return None
    return made_up(kinds[number % len(kinds)], number, name)


def _several(kind: Any, number: int, name: str, random: Random) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is tuple and inner[-1] is not ...:
        return tuple(made_up(each, number, f"{name}.{place}") for place, each in enumerate(inner))
    count = 0 if number == ABSENT else random.randrange(3)
    if issubclass(origin, Mapping):
        pairs = (
            (made_up(inner[0], number + each, f"{name}.key"), made_up(inner[1], number + each, f"{name}.value"))
            for each in range(count)
        )
        return dict(pairs)
    found = [made_up(inner[0], number + each, name) for each in range(count)]
    return frozenset(found) if origin is frozenset else found if origin is list else tuple(found)
