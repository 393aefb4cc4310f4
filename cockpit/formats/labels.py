"""Labels and taints of nodes as they are written: `disk: ssd`, and the words of `kubectl taint`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from cockpit.formats.kinds import Reading, Schema, Text, described
from cockpit.model.labels import ANY, KEY, VALUE, Taint, Toleration, key_error, value_error
from cockpit.model.rules.bounds import MOST_LABELS
from cockpit.model.text import visible

NO_SCHEDULE: Final = "NoSchedule"
_TAINT: Final = f"{KEY}(={VALUE})?(:{NO_SCHEDULE})?"
_PAIR: Final = f" *{KEY} *= *{VALUE} *"


class Labels:
    """Keys and values in a table, or in a text with commas between them: `disk=ssd,zone=a`."""

    stand_in: Mapping[str, str] = MappingProxyType({})

    def read(self, value: object, at: str, reading: Reading) -> Mapping[str, str]:
        pairs = _pairs(value) if isinstance(value, str) else value
        if not isinstance(pairs, dict):
            reading.wrong(at, f"is {described(value)}; write KEY: value pairs, or KEY=value")
            return self.stand_in
        text = Text()
        return {
            # Not isinstance: for Python True is an int, too.
            key: str(item) if type(item) is int else text.read(item, f"{at}.{visible(key)}", reading)
            for key, item in pairs.items()
        }

    def write(self, value: Mapping[str, str]) -> dict[str, str]:
        return dict(value)

    def schema(self) -> Schema:
        table = {
            "type": "object",
            "propertyNames": {"pattern": f"^{KEY}$"},
            "additionalProperties": {"type": ["string", "integer"], "pattern": f"^{VALUE}$", "minimum": 0},
            "maxProperties": MOST_LABELS,
        }
        text = {"type": "string", "pattern": f"^{_PAIR}(,{_PAIR})*$"}
        return {"anyOf": [table, text], "examples": [{"disk": "ssd"}, "disk=ssd,zone=a"]}


class OwnLabels(Labels):
    """Labels of a node, which no later rule checks."""

    def read(self, value: object, at: str, reading: Reading) -> Mapping[str, str]:
        labels = super().read(value, at, reading)
        for key, item in labels.items():
            if error := key_error(key) or value_error(item):
                reading.wrong(f"{at}.{visible(key)}", error)
        return labels


class TaintText:
    """`spot`, `gpu=yes` or `gpu=yes:NoSchedule`."""

    stand_in = Taint("taint")

    def read(self, value: object, at: str, reading: Reading) -> Taint:
        words = _words(value, at, reading)
        if words is None:
            return self.stand_in
        key, item = words
        return Taint(key, item or "")

    def write(self, value: Taint) -> str:
        return value.text

    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^{_TAINT}$"}


class TolerationText:
    """A toleration, or `*` for every taint."""

    stand_in = Toleration("taint")

    def read(self, value: object, at: str, reading: Reading) -> Toleration:
        if value == ANY:
            return Toleration()
        words = _words(value, at, reading)
        return self.stand_in if words is None else Toleration(*words)

    def write(self, value: Toleration) -> str:
        return value.text

    def schema(self) -> Schema:
        return {"type": "string", "pattern": rf"^(\*|{_TAINT})$"}


def _pairs(text: str) -> dict[str, object] | None:
    pairs = [each.partition("=") for each in text.split(",")]
    # A part without `=` makes the whole text none: `disk` alone would mean another thing to kubectl.
    return {key.strip(): value.strip() for key, _, value in pairs} if all(sign for _, sign, _ in pairs) else None


def _words(value: object, at: str, reading: Reading) -> tuple[str, str | None] | None:
    """Return key and value, None for no value; None when it is no taint."""
    if not isinstance(value, str):
        reading.wrong(at, f"is {described(value)}; write a taint as kubectl does: gpu=yes")
        return None
    pair, sign, effect = value.partition(":")
    if sign and effect != NO_SCHEDULE:
        reading.wrong(at, f'"{visible(value)}" has another effect than {NO_SCHEDULE}, the only one here; leave it out')
        return None
    key, equals, item = pair.partition("=")
    if error := key_error(key) or value_error(item):
        reading.wrong(at, f'"{visible(value)}" {error}')
        return None
    # Not the same: `gpu=` has an empty value, `gpu` any.
    return key, item if equals else None
