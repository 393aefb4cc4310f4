"""An entry of the catalogue as a page to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.present.columns import NOTHING
from cockpit.present.safe import safe
from cockpit.present.tables.catalogue import own_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.model.catalogue import EntryRow

_WIDTH = 12
_OPEN = {"rw": "may change it", "ro": "may use it", "none": "do not see it"}


def entry_page(row: EntryRow) -> Iterator[str]:
    """Harmless lines: whose it is, who may do what, what it stands for."""
    entry = row.entry
    yield f"{entry.kind} {safe(entry.name)}" + (f": {safe(entry.about)}" if entry.about else "")
    for name, text in entry_facts(row):
        yield f"  {name:<{_WIDTH}} {text}"


def entry_facts(row: EntryRow) -> Iterator[tuple[str, str]]:
    """Names and harmless texts."""
    entry = row.entry
    yield "project", safe(entry.project) or "the whole cluster's"
    yield "owner", safe(entry.owner) or NOTHING
    yield "access", f"{entry.access} (other members {_OPEN[entry.access]})"
    yield "you may", str(row.may)
    yield from own_facts(row)
    if entry.filed:
        yield "stands in", _file(row)


def ownership(row: EntryRow) -> str:
    """In one line: the project, the owner, and who may do what."""
    entry = row.entry
    whose = [safe(entry.project) or "the whole cluster's", *([f"{safe(entry.owner)}'s"] if entry.owner else [])]
    others = f"others {_OPEN[entry.access]}"
    file = [f"stands in {_file(row)}"] if entry.filed else []
    return " · ".join([*whose, others, f"you {_OPEN[row.may]}", *file])


def own_facts(row: EntryRow) -> Iterator[tuple[str, str]]:
    """What only an entry of its kind says."""
    if source := getattr(row.entry, "source", ""):
        yield "source", str(source)
    for name, value in own_values(row).items():
        yield from _value(name, value)


def _file(row: EntryRow) -> str:
    return "cluster.toml" if row.of_rules else "catalogue.toml"


def _value(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        yield from ((f"{name}.{safe(str(key))}", safe(str(item))) for key, item in value.items())
    else:
        yield name, safe(", ".join(map(str, value)) if isinstance(value, list) else str(value))
