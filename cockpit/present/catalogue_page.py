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
    yield _fact("project", safe(entry.project) or "the whole cluster's")
    yield _fact("owner", safe(entry.owner) or NOTHING)
    yield _fact("access", f"{entry.access} (other members {_OPEN[entry.access]})")
    yield _fact("you may", str(row.may))
    if source := getattr(entry, "source", ""):
        yield _fact("source", str(source))
    for name, value in own_values(row).items():
        yield from _value(name, value)
    if entry.filed:
        yield _fact("stands in", "cluster.toml" if row.of_rules else "catalogue.toml")


def _value(name: str, value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (_fact(f"{name}.{safe(str(key))}", safe(str(item))) for key, item in value.items())
    else:
        words = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        yield _fact(name, safe(words))


def _fact(name: str, text: str) -> str:
    return f"  {name:<{_WIDTH}} {text}"
