"""The words of `cockpit catalogue …`: what change of the catalogue they ask for, and what may follow them."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cockpit.headless.arguments import UsageError
from cockpit.headless.typed_line import parse_line
from cockpit.model.catalogue import CLUSTERWIDE, AnyEntry, CatalogueShown, EntryChange, EntryKind, EntryRow
from cockpit.present.safe import safe

NOUN = "catalogue"
ADD, SET, REMOVE = "add", "set", "remove"
CHANGES = (ADD, SET, REMOVE)
KINDS = tuple(str(each) for each in EntryKind)


class Place(NamedTuple):
    """The folder where relative paths begin, and the meaning of `~`."""

    folder: str
    home: str


def wanted_change(verb: str, args: Namespace, shown: CatalogueShown, place: Place) -> EntryChange:
    """Return the change that `add`, `set` or `remove` with these arguments requests. Raises `UsageError`, and
    `SpecErrors` with all that is wrong with the settings."""
    if verb == ADD:
        return EntryChange(None, _new_entry(args, shown, place))
    before = entry_named(shown.rows, args.kind, args.name).entry
    if verb == REMOVE:
        return EntryChange(before, None)
    if not args.settings:
        raise UsageError("say what is to change, such as access=ro")
    from cockpit.formats.catalogue.file import entry_values, with_settings

    return EntryChange(before, with_settings(before.kind, entry_values(before), args.settings, *place))


def _new_entry(args: Namespace, shown: CatalogueShown, place: Place) -> AnyEntry:
    from cockpit.formats.catalogue.file import with_settings

    kind, (project, name) = EntryKind(args.kind), split_name(args.name)
    given = {"name": name, "owner": shown.user}
    if kind not in CLUSTERWIDE:
        # A user's own project is named like the user.
        given["project"] = shown.user if project is None else project
    return with_settings(kind, {key: value for key, value in given.items() if value}, args.settings, *place)


def entry_named(rows: Iterable[EntryRow], kind: str, text: str) -> EntryRow:
    """Return the entry of this kind and name. Raises `UsageError` if there is none, or if there are several."""
    project, name = split_name(text)
    named = [row for row in rows if row.entry.kind == kind and row.entry.name == name]
    # Without a project, an entry of any project counts, as long as it is the only one of that name.
    found = [row for row in named if project in {None, row.entry.project}]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"there is no {kind} {safe(text)}; `cockpit catalogue list {kind}` lists them")
    places = ", ".join(safe(full_name(row.entry)) for row in found)
    raise UsageError(f"there are several {kind}s {safe(text)}; name one: {places}")


def split_name(text: str) -> tuple[str | None, str]:
    """Split `nlp/corpus` into project and name. The project of `/corpus` is empty (cluster), of `corpus` None (any)."""
    project, slash, name = text.rpartition("/")
    return (project, name) if slash else (None, text)


def full_name(entry: AnyEntry) -> str:
    """Return the entry's name in the form that `split_name` reads."""
    return entry.name if entry.kind in CLUSTERWIDE else f"{entry.project}/{entry.name}"


def done_sentence(change: EntryChange) -> str:
    """Return the sentence about a change that was made, such as `added dataset nlp/corpus`."""
    entry = change.after or change.before
    assert entry is not None
    verb = "added" if change.before is None else "removed" if change.after is None else "changed"
    return f"{verb} {entry.kind} {safe(full_name(entry).removeprefix('/'))}"


def requested_change(text: str, shown: CatalogueShown, place: Place) -> EntryChange:
    """Parse the words after `:catalogue` in the cockpit. A request for help is a `UsageError` too."""
    return wanted_change(*parse_line(NOUN, text, CHANGES), shown, place)


def completions(line: str, shown: CatalogueShown | None) -> list[str]:
    """Return the line with each of its last word's completions, the shortest first; none if it is about something
    else."""
    head, _, last = line.rpartition(" ")
    words = head.split()
    if words[:1] != [NOUN]:
        return []
    candidates = (word for word in _next(words[1:], shown) if word.startswith(last))
    return [f"{head} {word}" for word in sorted(candidates, key=len)]


def _next(words: Sequence[str], shown: CatalogueShown | None) -> Iterable[str]:
    if not words:
        return CHANGES
    if len(words) == 1:
        return KINDS
    if len(words) == 2 and words[0] != ADD:
        rows = shown.rows if shown is not None else ()
        # Quoted, since the line is split again as a shell does it.
        return [shlex.quote(full_name(row.entry)) for row in rows if row.entry.kind == words[1]]
    return settings_of(words[1]) if words[0] != REMOVE and words[1] in KINDS else ()


def settings_of(kind: str) -> list[str]:
    """Return the settings of this kind of entry, as `SETTING=`."""
    from cockpit.formats.catalogue.file import TABLES

    return [f"{field.name}=" for field in TABLES[EntryKind(kind)].fields if field.name != "name" and not field.alias]
