"""Converts values of slurmrestd's JSON to the notation of Slurm's commands, in which records have them.

What is an int, a null or a word in v0.0.38 is an object `{set, infinite, number}` or a list later. Every form is
accepted everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]
"""A decoded object."""
NONE = "N/A"
ENDLESS = "UNLIMITED"


def at(record: object, *path: str) -> Any:  # noqa: ANN401 - JSON
    """Return the value at this place of a record; None where there is no such place."""
    for name in path:
        if not isinstance(record, Mapping):
            return None
        record = record.get(name)
    return record


def figure(value: object) -> str:
    """Return a number, `UNLIMITED`, or an empty text where none is set."""
    if isinstance(value, Mapping):
        if value.get("infinite"):
            return ENDLESS
        # `number` is 0 when `set` is false.
        return figure(value.get("number")) if value.get("set") else ""
    # bool is an int for Python.
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return word(value)


def count(value: object) -> int:
    """Return a whole number, 0 where there is none."""
    try:
        return int(float(figure(value)))
    except (ValueError, OverflowError):
        return 0


def word(value: object) -> str:
    """Return text on one line, a list with commas; an empty text for null and for anything else."""
    if isinstance(value, list):
        return ",".join(map(word, value))
    if isinstance(value, str):
        # Text of users in a record of one line must not look like a line of its own.
        return " ".join(value.split()) if value.strip() != value or "\n" in value or "\r" in value else value
    return str(value) if isinstance(value, int | float) else ""


def raw(value: object) -> str:
    """Return the text unchanged, for fields that are not separated by lines."""
    return value if isinstance(value, str) else ""


def moment(value: object) -> str:
    """Return seconds since 1970, or `N/A`."""
    return str(count(value)) if count(value) > 0 else NONE


def minutes(value: object) -> str:
    """Return the seconds of so many minutes, `UNLIMITED`, or an empty text."""
    number = figure(value)
    return str(60 * count(value)) if number not in {"", ENDLESS} else number


def tres(value: object) -> str:
    """Return a list of `{type, name, count}` as `cpu=4,mem=100M,gres/gpu=2`; a text as it is."""
    if not isinstance(value, list):
        return word(value)
    return ",".join(_one(each) for each in value if isinstance(each, Mapping) and count(each.get("count")) > 0)


def exit_code(value: object) -> str:
    """Return `code:signal`, or the wait status that v0.0.38 has."""
    if not isinstance(value, Mapping):
        return figure(value)
    signal = at(value, "signal", "id")
    return (
        f"{count(value.get('return_code'))}:{count(signal if signal is not None else at(value, 'signal', 'signal_id'))}"
    )


def _one(each: Json) -> str:
    kind, name = word(each.get("type")), word(each.get("name"))
    return f"{kind}/{name}={count(each['count'])}" if name else f"{kind}={count(each['count'])}"
