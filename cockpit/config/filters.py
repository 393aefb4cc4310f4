"""Saves filters under names, for each cluster and each of its lists, in a TOML file that users may edit:

[local.jobs]
mine-failed = "user:me state:failed"
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from cockpit.errors import CockpitError, SpecErrors, why_unreadable
from cockpit.formats.tomltext import parse_toml
from cockpit.present.safe import safe

FILE: Final = "filters.toml"
HEAD: Final = """\
# Filters that were saved in the cockpit, by cluster and list. `--filter @NAME` and `/@NAME` use them.
# Edit them as you like; comments go when the cockpit saves the next one.
"""
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)

Lists = dict[str, dict[str, str]]
"""Filter texts by list (`jobs`), then by name."""


class FilterFileError(CockpitError):
    """A name that a filter cannot have, or a file that cannot be read or written."""


class SavedFilters:
    """The saved filters of one cluster. Without a `path` they are not written to a file, as in the demo.

    The file is read again each time, so that changes of other cockpits and of an editor are seen.
    """

    def __init__(self, path: Path | None = None, cluster: str = "") -> None:
        self._path = path
        self._cluster = cluster
        self._clusters: dict[str, Lists] = {}

    def of(self, table: str) -> dict[str, str]:
        """Return the filters of a list: text by name. Raises `FilterFileError`."""
        return dict(self._read().get(self._cluster, {}).get(table, {}))

    def save(self, table: str, name: str, text: str) -> None:
        """Save a filter, in place of one of the same name. Raises `FilterFileError`."""
        if not NAME.fullmatch(name):
            message = (
                f"A filter's name has letters, digits, -, _ and dots; {safe(name)} is none."
                if name
                else "It needs a name."
            )
            raise FilterFileError(message)
        clusters = self._read()
        clusters.setdefault(self._cluster, {}).setdefault(table, {})[name] = text
        self._write(clusters)

    def delete(self, table: str, name: str) -> None:
        """Delete a filter, if it exists. Raises `FilterFileError`."""
        clusters = self._read()
        if clusters.get(self._cluster, {}).get(table, {}).pop(name, None) is not None:
            self._write(clusters)

    def _read(self) -> dict[str, Lists]:
        """Return the filters by cluster, list and name. Raises `FilterFileError`."""
        if self._path is None:
            return self._clusters
        try:
            document = parse_toml(self._path.read_text(encoding="utf-8"), str(self._path))
        # A user without saved filters has no file, which is no error.
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except SpecErrors as error:
            raise FilterFileError(str(error)) from None
        except (OSError, UnicodeDecodeError) as error:
            raise FilterFileError(f"{self._path}: {why_unreadable(error)}") from None
        return _parse_filters(document, self._path)

    def _write(self, clusters: dict[str, Lists]) -> None:
        """Replace the file atomically. Raises `FilterFileError`."""
        self._clusters = clusters
        if self._path is None:
            return
        path = self._path.resolve()  # if it is a link, replace its target and leave the link
        # In the same folder, since a rename cannot cross file systems.
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_text(_as_toml(clusters), encoding="utf-8")
            fresh.replace(path)
        except OSError as error:
            with suppress(OSError):
                fresh.unlink()
            raise FilterFileError(f"{path} cannot be written: {error.strerror}") from None


def _parse_filters(document: dict[str, object], path: Path) -> dict[str, Lists]:
    """Return the filters of the file. Raises `FilterFileError` when it has another form."""
    clusters: dict[str, Lists] = {}
    for cluster, lists in document.items():
        # A value in place of a table goes through the same check, which refuses it.
        for table, filters in lists.items() if isinstance(lists, dict) else [("", lists)]:
            if not isinstance(filters, dict) or not all(isinstance(text, str) for text in filters.values()):
                raise FilterFileError(f'{path}: wants [cluster.list] and lines such as name = "state:failed"')
            clusters.setdefault(cluster, {})[table] = filters
    return clusters


def _as_toml(clusters: dict[str, Lists]) -> str:
    """Return the text of the file."""
    parts = [HEAD]
    for cluster, lists in sorted(clusters.items()):
        for table, filters in sorted(lists.items()):
            if filters:
                # Sorted, so that the file changes only where a filter was changed.
                lines = (f"{_key(name)} = {_toml_string(text)}\n" for name, text in sorted(filters.items()))
                parts.append(f"[{_key(cluster)}.{_key(table)}]\n{''.join(lines)}")
    return "\n".join(parts)


def _key(text: str) -> str:
    return text if BARE_KEY.fullmatch(text) else _toml_string(text)


def _toml_string(text: str) -> str:
    """Return the text as a TOML string: JSON's form, except for the character DEL, which TOML does not allow."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
