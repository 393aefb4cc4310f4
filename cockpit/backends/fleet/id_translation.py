"""What a member says, in the words of the fleet, and back: ids that no two members share, moments on one clock, nodes
with their cluster's name before them.
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
    """How one member's words become the fleet's."""

    number: int
    """The member's, from 1."""
    name: str
    shift_ms: int = 0
    """How far the fleet's clock is ahead of the member's."""


def in_fleet(found: T, words: Words) -> T:
    """The same with every id, moment and name of a node that it holds; a value that holds none is itself."""
    changed: T = _any(found, words)
    return changed


def node_in_fleet(node: str, words: Words) -> NodeName:
    """`lab:n1`."""
    return NodeName(f"{words.name}:{node}")


def _any(found: Any, words: Words) -> Any:  # noqa: ANN401 - whatever a member answers
    if isinstance(found, msgspec.Struct):
        return _struct(found, words)
    if isinstance(found, tuple | list):
        return type(found)(_any(each, words) for each in found)
    if isinstance(found, Mapping):
        return {key: _any(each, words) for key, each in found.items()}
    return found


def _struct(found: msgspec.Struct, words: Words) -> msgspec.Struct:
    changed = {}
    for name, change in _changes(type(found)):
        before = getattr(found, name)
        after = before if before is None else change(before, words)
        if after is not before:
            changed[name] = after
    return msgspec.structs.replace(found, **changed) if changed else found


@lru_cache(maxsize=512)
def _changes(struct: type[msgspec.Struct]) -> tuple[tuple[str, Change], ...]:
    """Of each field that may hold something to be changed."""
    hints = get_type_hints(struct)
    found = ((name, _change(hints[name])) for name in struct.__struct_fields__)
    return tuple((name, change) for name, change in found if change is not None)


def _change(hint: Any) -> Change | None:  # noqa: ANN401, PLR0911 - a type; one line for each kind of it
    if hint is JobId:
        return lambda job, words: member_id(words.number, job) if job else job
    if hint is Millis:
        return lambda at, words: Millis(at + words.shift_ms) if words.shift_ms else at
    if hint is NodeName:
        return lambda node, words: node_in_fleet(node, words) if node else node
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Union or isinstance(hint, types.UnionType):
        found = [change for each in inner if (change := _change(each)) is not None]
        return (found[0] if found[0] is not _any else _any) if found else None
    if isinstance(origin, type) and issubclass(origin, tuple | list) and inner:
        change = _change(inner[0])
        return None if change is None else lambda many, words: type(many)(change(each, words) for each in many)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        keys, values = map(_change, inner)
        return None if keys is values is None else _mapping(keys or _same, values or _same)
    return _any if isinstance(hint, type) and issubclass(hint, msgspec.Struct) else None


def _same(found: Any, _: Words) -> Any:  # noqa: ANN401 - as it is
    return found


def _mapping(keys: Change, values: Change) -> Change:
    return lambda found, words: {keys(key, words): values(each, words) for key, each in found.items()}
