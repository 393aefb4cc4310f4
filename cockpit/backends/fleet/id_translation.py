"""Translates the answers of a member for the fleet: job ids, times and node names.

Job ids of members become ids that no two members share; times are shifted to the fleet's clock; node names get the
cluster's name as a prefix (`lab:n1`). Which fields of a struct hold such values follows from their types (`JobId`,
`Millis`, `NodeName`) and is computed once for each struct.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from cockpit.model.ids import JobId, Millis, NodeName, member_id

T = TypeVar("T")

Change = Callable[[Any, "Words"], Any]


class Words(NamedTuple):
    """The translation of one member."""

    number: int
    """Number of the member in the fleet, from 1."""
    name: str
    shift_ms: int = 0
    """Milliseconds by which the fleet's clock is ahead of the member's."""


def in_fleet(value: T, words: Words) -> T:
    """Return the value with every job id, time and node name in it translated; one without any is itself returned."""
    translated: T = _any(value, words)
    return translated


def node_in_fleet(node: str, words: Words) -> NodeName:
    """Return the node's name in the fleet: `lab:n1`."""
    return NodeName(f"{words.name}:{node}")


def _any(value: Any, words: Words) -> Any:  # noqa: ANN401 - whatever a member answers
    if isinstance(value, msgspec.Struct):
        return _struct(value, words)
    if isinstance(value, tuple | list):
        return type(value)(_any(each, words) for each in value)
    if isinstance(value, Mapping):
        return {key: _any(each, words) for key, each in value.items()}
    return value


def _struct(struct: msgspec.Struct, words: Words) -> msgspec.Struct:
    # Copy only when something differs: most rows of a member without a clock shift share all their parts with the
    # original.
    changed = {}
    for name, change in _changes(type(struct)):
        before = getattr(struct, name)
        after = before if before is None else change(before, words)
        if after is not before:
            changed[name] = after
    return msgspec.structs.replace(struct, **changed) if changed else struct


@lru_cache(maxsize=512)
def _changes(struct: type[msgspec.Struct]) -> tuple[tuple[str, Change], ...]:
    """Return the fields that may hold a value to translate, with the function that does it."""
    hints = get_type_hints(struct)
    changes = ((name, _change(hints[name])) for name in struct.__struct_fields__)
    return tuple((name, change) for name, change in changes if change is not None)


def _change(hint: Any) -> Change | None:  # noqa: ANN401, PLR0911 - a type; one line for each kind of it
    """Return the function that translates values of a type; None if they contain no id, time or node name."""
    if hint is JobId:
        # 0 means no job.
        return lambda job, words: member_id(words.number, job) if job else job
    if hint is Millis:
        return lambda at, words: Millis(at + words.shift_ms) if words.shift_ms else at
    if hint is NodeName:
        return lambda node, words: node_in_fleet(node, words) if node else node
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Union or isinstance(hint, types.UnionType):
        changes = [change for each in inner if (change := _change(each)) is not None]
        # No union of the model has two members that are translated in different ways.
        return changes[0] if changes else None
    if isinstance(origin, type) and issubclass(origin, tuple | list) and inner:
        change = _change(inner[0])
        return None if change is None else lambda many, words: type(many)(change(each, words) for each in many)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        values = _change(inner[1])  # no key of a mapping is an id, a time or a node name
        return None if values is None else _mapping(values)
    return _any if isinstance(hint, type) and issubclass(hint, msgspec.Struct) else None


def _mapping(change: Change) -> Change:
    return lambda mapping, words: {key: change(each, words) for key, each in mapping.items()}
