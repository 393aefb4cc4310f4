"""The table of keys in config.toml. Which actions there are, only the cockpit's face knows: it judges the names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from cockpit.formats.kinds import Reading, Schema, described
from cockpit.model.text import visible


class Keys:
    """`cancel = "D"`, `help = ["?", "F1"]`; an empty list takes an action its key."""

    stand_in: Mapping[str, tuple[str, ...]] = MappingProxyType({})

    def read(self, value: object, at: str, reading: Reading) -> Mapping[str, tuple[str, ...]]:
        if not isinstance(value, dict):
            reading.wrong(at, f'is {described(value)}; write a table [keys] with lines such as cancel = "D"')
            return self.stand_in
        return {name: self._keys(item, f"{at}.{visible(name)}", reading) for name, item in value.items()}

    def write(self, value: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
        return {name: list(keys) for name, keys in value.items()}

    def schema(self) -> Schema:
        key = {"type": "string", "minLength": 1}
        return {"type": "object", "additionalProperties": {"anyOf": [key, {"type": "array", "items": key}]}}

    def _keys(self, value: object, at: str, reading: Reading) -> tuple[str, ...]:
        given = value if isinstance(value, list) else [value]
        if all(isinstance(key, str) and key for key in given):
            return tuple(given)
        reading.wrong(at, f'is {described(value)}; write a key such as "x" or "Ctrl-x", or a list of them')
        return ()
