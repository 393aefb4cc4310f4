"""catalogue.toml: a catalogue as a file. The engine reads one when it starts; commands apply and export others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from cockpit.errors import SpecErrors
from cockpit.formats.catalogue.fields import TABLES, entry_values
from cockpit.formats.kinds import Reading, Schema, described
from cockpit.formats.tomltext import parse_toml, toml_table
from cockpit.model.catalogue import ENTRIES, AnyEntry, EntryKind
from cockpit.model.rules.catalogue import entry_errors
from cockpit.model.text import visible

HEADINGS = {f"{kind}s": kind for kind in ENTRIES}
"""`[[datasets]]` holds datasets."""
_ABOUT = "The catalogue: what names in job files stand for. `cockpit schema catalogue-file` describes every key."


def read_catalogue(text: str, source: str = "catalogue.toml", folder: str = "/", home: str = "") -> list[AnyEntry]:
    """Return all entries. Relative paths begin at `folder`. Raises `SpecErrors` with all errors, each behind source and
    place: `datasets[0].path: …`."""
    return read_entries(parse_toml(text, source), f"{source}: ", Reading(folder, home))


def read_entries(document: Mapping[str, object], source: str, reading: Reading) -> list[AnyEntry]:
    """Return the entries of a table in the form of catalogue.toml. `source` leads every error."""
    entries = list(_entries(document, reading))
    errors = [*reading.errors, *_repeated(entries)]
    for at, entry in entries if not reading.errors else ():
        errors += [f"{at}.{error}" for error in entry_errors(entry)]
    if errors:
        raise SpecErrors([f"{visible(source, 200)}{error}" for error in errors])
    return [entry for _, entry in entries]


def catalogue_text(entries: Iterable[AnyEntry]) -> str:
    """A file that `read_catalogue` reads back as the same entries."""
    listed: dict[str, object] = {}
    for heading, kind in HEADINGS.items():
        if rows := [entry_values(each) for each in entries if each.kind is kind]:
            listed[heading] = rows
    return "\n".join([f"# {_ABOUT}", *toml_table(listed), ""])


def catalogue_schema() -> Schema:
    """JSON Schema 2020-12 of catalogue.toml, published by `cockpit schema catalogue-file`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:cockpit-cluster:catalogue:1",
        "title": "cockpit's catalogue",
        "type": "object",
        "properties": {name: {"type": "array", "items": TABLES[kind].schema()} for name, kind in HEADINGS.items()},
        "additionalProperties": False,
    }


def _entries(document: Mapping[str, object], reading: Reading) -> Iterator[tuple[str, AnyEntry]]:
    for heading, rows in document.items():
        kind = HEADINGS.get(heading)
        if kind is None:
            reading.wrong(visible(heading), f"is no part of a catalogue; there are {', '.join(HEADINGS)}")
        elif not isinstance(rows, list):
            reading.wrong(heading, f"is {described(rows)}; write [[{heading}]]")
        else:
            yield from _of_kind(kind, heading, rows, reading)


def _of_kind(kind: EntryKind, heading: str, rows: Sequence[object], reading: Reading) -> Iterator[tuple[str, AnyEntry]]:
    for index, row in enumerate(rows):
        at = f"{heading}[{index}]"
        yield at, TABLES[kind].read(row, at, reading)


def _repeated(entries: Iterable[tuple[str, AnyEntry]]) -> Iterator[str]:
    first: dict[str, str] = {}
    for at, entry in entries:
        earlier = first.setdefault(entry.key, at)
        if earlier != at:
            yield f"{at}.name: {visible(entry.name)} is the name of {earlier} too; give another"
