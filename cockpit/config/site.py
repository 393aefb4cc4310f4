"""Reads and writes cluster.toml, and writes the default cluster into config.toml."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.errors import CockpitError, why_unreadable
from cockpit.formats.tomltext import parse_toml, toml_text

if TYPE_CHECKING:
    from cockpit.config.places import EnginePaths
    from cockpit.model.node import Node

_CLUSTER_LINE = re.compile(r"^[ \t]*cluster[ \t]*=.*$", re.MULTILINE)
_FIRST_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)


class Site:
    """The configuration files of one engine."""

    def __init__(self, places: EnginePaths) -> None:
        self._places = places

    @property
    def cluster_file(self) -> Path:
        return self._places.cluster_file

    def machine(self) -> Node:
        """Return this machine as a node."""
        from cockpit.runtime.machine import probe_machine

        return probe_machine()

    def cluster_text(self) -> str | None:
        """Return the content of cluster.toml; None if it does not exist."""
        return _text(self.cluster_file)

    def write_cluster(self, text: str) -> Path | None:
        """Write cluster.toml atomically; return the path of the copy of the previous file, if there was one."""
        before = self.cluster_text()
        copy = None
        if before is not None:
            # A copy and not a rename: the cluster is never without its file.
            copy = self.cluster_file.with_name(f"{self.cluster_file.name}.before")
            _write(copy, before)
        _write(self.cluster_file, text)
        return copy

    def use_cluster(self, name: str) -> Path:
        """Make this cluster the default; everything else in config.toml stays. Return the path of config.toml."""
        file = self._places.config / "config.toml"
        text = _text(file) or ""
        # Only for its errors: a file that is no TOML is left as it is.
        parse_toml(text, str(file))
        _write(file, with_cluster(text, name))
        return file


def with_cluster(text: str, name: str) -> str:
    """Return the text of config.toml with another `cluster`; TOML requires it before the first table."""
    line = f"cluster = {toml_text(name)}"
    # Behind a [heading] the line would belong to that table.
    table = _FIRST_TABLE.search(text)
    top, rest = (text[: table.start()], text[table.start() :]) if table else (text, "")
    # Edited by lines, so that comments and order of the file stay.
    if _CLUSTER_LINE.search(top):
        # A function, because a text would have its backslashes read as references.
        return _CLUSTER_LINE.sub(lambda _: line, top, count=1) + rest
    return f"{line}\n{text}"


def _text(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise CockpitError(f"{file}: {why_unreadable(error)}") from None


def _write(file: Path, text: str) -> None:
    """Write a file atomically, and its folder if that is missing. Raises `CockpitError`."""
    # Written aside and renamed: a reader never sees half a file.
    half = file.with_name(f"{file.name}.half")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        half.write_text(text, encoding="utf-8")
        half.replace(file)
    except OSError as error:
        raise CockpitError(f"{file}: cannot be written: {error}") from None
