"""Catalogue entries in the submit form: the field that each kind of entry fills, and the node specs behind names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from cockpit.formats.catalogue.file import TABLES
from cockpit.formats.job.texts import SPECS, Member, texts_of
from cockpit.model.catalogue import AnyEntry, DatasetEntry, EntryKind, ModelEntry, SpecEntry
from cockpit.model.spec import Access

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cockpit.model.catalogue import EntryRow
    from cockpit.model.spec import JobSpec
    from cockpit.present.form.fields import JobForm

FIELD_OF: Final = {
    EntryKind.DATASET: "datasets",
    EntryKind.ALGORITHM: "algorithm",
    EntryKind.MODEL: "models",
    EntryKind.VOLUME: "volumes",
    EntryKind.IMAGE: "image",
    EntryKind.SPEC: Member(SPECS, 0, "name").path,
    EntryKind.POOL: "pool",
    EntryKind.PROJECT: "project",
}
"""Path of the form's field for each kind of catalogue entry; user entries have none."""
_LISTS: Final = frozenset({"datasets", "models", "volumes"})


def take_entry(form: JobForm, row: EntryRow) -> str:
    """Write the entry into its field and return the field's path; an entry with versions is written with the
    last one."""
    path = FIELD_OF[row.entry.kind]
    if isinstance(row.entry, SpecEntry):
        form.put_specs([{"name": row.entry.name}])
    elif path in _LISTS:
        before = form.values().get(path)
        form.texts |= texts_of({path: [*(before if isinstance(before, list) else []), _reference(row)]})
    else:
        form.texts |= texts_of({path: _reference(row) if path == "algorithm" else row.entry.name})
    return path


def _reference(row: EntryRow) -> dict[str, object]:
    """Return the reference to a catalogue entry as a job file writes it."""
    entry, reference = row.entry, dict[str, object]({"name": row.entry.name})
    values = TABLES[entry.kind].write(entry)
    if "source" in values:
        reference["source"] = values["source"]
    if isinstance(entry, DatasetEntry | ModelEntry) and entry.versions:
        reference["version"] = list(entry.versions)[-1]
    if entry.kind in {EntryKind.DATASET, EntryKind.ALGORITHM} and row.may is not Access.RW:
        reference["read_only"] = True
    return reference


def with_named_specs(spec: JobSpec, entries: Iterable[AnyEntry]) -> JobSpec:
    """Return the spec with each named node spec replaced by the catalogue's node spec of that name."""
    if not any(each.name for each in spec.specs):
        return spec
    known = {each.name: each.spec for each in entries if isinstance(each, SpecEntry)}
    return replace(spec, specs=tuple(known.get(each.name, each) for each in spec.specs))
