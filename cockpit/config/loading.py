"""Merging the layers of settings: flags, `COCKPIT_*`, the user's config.toml, the machine's config.toml."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from cockpit.config.settings import SETTINGS, Setting, Settings
from cockpit.errors import SpecErrors
from cockpit.formats.toml import Table, parse_toml


def load_settings(
    *, flags: Mapping[str, object] | None = None, env: Mapping[str, str], files: Iterable[Path] = ()
) -> Settings:
    """One setting at a time, from the first layer that has it.

    `flags` holds settings by name, None where a flag was not given; `files` come strongest first and may be absent.
    An empty environment variable counts as unset; variables that are no setting are left alone, since jobs have
    `COCKPIT_*` too. Raises `SpecErrors` with all errors of all layers.
    """
    errors: list[str] = []
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    merged: dict[str, object] = {}
    for path in reversed(list(files)):
        merged |= _read_file(path, errors)
    merged |= _read_layer(_from_environment(env), "environment: ", errors)
    merged |= _read_layer(given, "flags: ", errors)
    if errors:
        raise SpecErrors(errors)
    return Settings(**merged)  # type: ignore[arg-type]  # each value came from its field's reader


def _from_environment(env: Mapping[str, str]) -> dict[str, object]:
    return {setting.name: env[setting.variable] for setting in SETTINGS if env.get(setting.variable)}


def _read_file(path: Path, errors: list[str]) -> dict[str, object]:
    try:
        content = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        errors.append(f"{path}: cannot be read: {error}")
        return {}
    try:
        values = parse_toml(content, str(path))
    except SpecErrors as wrong:
        errors += wrong.errors
        return {}
    return _read_layer(values, f"{path}: ", errors)


def _read_layer(values: Mapping[str, object], path: str, errors: list[str]) -> dict[str, object]:
    """By field of `Settings`: only what this layer says."""
    table = Table(values, path, errors)
    taken = {setting.field: _take(table, setting) for setting in SETTINGS}
    table.finish()
    return {field: value for field, value in taken.items() if value is not None}


def _take(table: Table, setting: Setting) -> object:
    return table.take(setting.name, setting.read, None)
