"""Loads the settings and merges their layers: flags, `COCKPIT_*`, the user's config.toml, the machine's config.toml."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cockpit.config.settings import SETTINGS, Settings, variable
from cockpit.errors import SpecErrors, why_unreadable
from cockpit.formats.kinds import Reading
from cockpit.formats.tomltext import parse_toml
from cockpit.model.text import is_whole

TRUTHS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def load_settings(
    *, flags: Mapping[str, str | bool | None] | None = None, env: Mapping[str, str], files: Iterable[Path] = ()
) -> Settings:
    """Return the settings, each from the first layer that has it.

    `flags`: settings by name, None for a flag that was not given. `files`: config files, the first counts most; they
    may be missing. An empty environment variable counts as unset. Unknown variables are ignored, since jobs have
    `COCKPIT_*` variables, too. Raises `SpecErrors` with all errors of all layers.
    """
    home, errors = env.get("HOME", ""), list[str]()
    merged: dict[str, Any] = {}
    for path in reversed(list(files)):  # later layers replace earlier ones
        merged |= _layer(_file(path, errors), str(path), str(path.parent), home, errors)
    # Relative paths begin at the folder of the file that has them; in variables and flags at the working folder.
    merged |= _layer(_environment(env), "environment", _here(), home, errors)
    merged |= _layer(_flags(flags or {}), "flags", _here(), home, errors)
    if errors:
        raise SpecErrors(errors)
    return Settings(**merged)


def _layer(values: Mapping[str, object], source: str, folder: str, home: str, errors: list[str]) -> dict[str, Any]:
    """Return what this layer sets, by field of `Settings`."""
    reading = Reading(folder, home)
    # Only what the layer gives: defaults would hide the layers below it.
    given = SETTINGS.given(dict(values), "", reading) or {}
    errors += [f"{source}: {error}" for error in reading.errors]
    return given


def _file(path: Path, errors: list[str]) -> dict[str, object]:
    """Return the values of a config file, empty if it does not exist. What is wrong is added to `errors`."""
    try:
        return parse_toml(path.read_text(encoding="utf-8"), str(path))
    # No config file is needed; one that cannot be read is an error, since the user relies on what it says.
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, UnicodeDecodeError) as error:
        errors.append(f"{path}: {why_unreadable(error)}")
    except SpecErrors as wrong:
        errors += wrong.errors
    return {}


def _environment(env: Mapping[str, str]) -> dict[str, object]:
    texts = {setting.name: env.get(variable(setting), "") for setting in SETTINGS.fields}
    return {name: _parse_typed(name, text) for name, text in texts.items() if text}


def _flags(flags: Mapping[str, str | bool | None]) -> dict[str, object]:
    given = {name: value for name, value in flags.items() if value is not None}
    return {name: _parse_typed(name, value) if isinstance(value, str) else value for name, value in given.items()}


def _here() -> str:
    """Return the working folder; `/` if it has been deleted."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return "/"


def _parse_typed(name: str, text: str) -> object:
    """Return the value of a flag or variable with the type that it would have in TOML."""
    default = getattr(SETTINGS.stand_in, _ATTRIBUTES.get(name, ""), text)
    if isinstance(default, bool):
        # An unknown word stays text, which the setting's own check refuses with its name.
        return TRUTHS.get(text.lower(), text)
    # Durations are counted in seconds in `Settings`, but may also be written `2h`: such texts stay.
    return int(text) if isinstance(default, int) and is_whole(text) else text


_ATTRIBUTES = {setting.name: setting.attribute for setting in SETTINGS.fields}
