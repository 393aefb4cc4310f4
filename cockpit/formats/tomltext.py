"""TOML text as plain values."""

from __future__ import annotations

from cockpit.errors import SpecErrors


def parse_toml(text: str, source: str) -> dict[str, object]:
    """The table that `text` is; `SpecErrors`, led by `source`, where it is no TOML."""
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecErrors([f"{source}: is no TOML: {error}"]) from None
