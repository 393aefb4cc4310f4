"""Decides changes of the catalogue: from a request to one event, or to a `Refusal` with every error of the request.

Administrators may change every entry. Owners may change their own entries, and project members those that `access`
opens to them (rw), except for `owner` and `access` themselves. Only administrators change entries of the whole cluster:
those without a project, pools, projects and other users.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from cockpit.engine.access import access_to_entry
from cockpit.engine.sharing import may_name, named_projects
from cockpit.model import events
from cockpit.model.catalogue import CLUSTERWIDE, MOST_ENTRIES, EntryKind, PoolEntry, ProjectEntry
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.rules.catalogue import entry_errors
from cockpit.model.spec import Access
from cockpit.model.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cockpit.engine.access import Actor
    from cockpit.engine.decide import Decision
    from cockpit.engine.state import ClusterState
    from cockpit.model.catalogue import AnyEntry, EntryChange, EntryKey
    from cockpit.model.events import EventBody

MOST_ERRORS = 1000
"""The most errors that one refusal names."""
_FILE = "catalogue.toml"


class Objection(NamedTuple):
    """One error in a change; several make up a `Refusal`."""

    kind: RefusalKind
    sentence: str
    """The predicate of a sentence about the entry, without a full stop."""


def change_catalogue(state: ClusterState, actor: Actor, changes: Sequence[EntryChange]) -> Decision:
    """Return the event that makes all changes, in order; no event if the catalogue is as wanted already."""
    draft = dict(state.catalogue)
    errors: list[tuple[RefusalKind, str]] = []
    for each in changes:
        entry = each.after or each.before
        if entry is None:
            errors.append((RefusalKind.INVALID, "changes: one names no entry, neither before nor after; remove it."))
            continue
        errors += [
            (objection.kind, f"{_entry_words(entry)}: {objection.sentence}.")
            for objection in _objections(state, draft, actor, each)
        ]
        # Also after an objection: the changes behind it are judged as if it had been made, and none is made then.
        if each.after is None:
            draft.pop(entry.key, None)
        else:
            draft[entry.key] = each.after
    if len(draft) > MOST_ENTRIES:
        errors.append((RefusalKind.UNAVAILABLE, f"The catalogue takes at most {MOST_ENTRIES} entries; remove some."))
    # A refusal has one kind: that of its first error.
    if errors:
        return Refusal(errors[0][0], "\n".join(sentence for _, sentence in errors[:MOST_ERRORS]))
    return _difference(state.catalogue, draft)


def take_over_catalogue(state: ClusterState, filed: Sequence[AnyEntry]) -> list[EventBody]:
    """Return the event that replaces the entries of the catalogue file by those that the file has now.

    Called when the engine starts. Entries that users made through requests stay.
    """
    draft = {key: each for key, each in state.catalogue.items() if not each.filed}
    return _difference(state.catalogue, draft | {each.key: replace(each, filed=True) for each in filed})


def _objections(
    state: ClusterState, draft: dict[EntryKey, AnyEntry], actor: Actor, change: EntryChange
) -> Iterator[Objection]:
    """Yield what is wrong with one change, given the draft after all changes before it.

    1. A change must not turn one entry into another, nor tell of an entry that the user may not see.
    2. The entry must be as the user last saw it. Nothing else is checked where it is not.
    3. The user must have the right to add or change it.
    4. The new entry must be valid, and a removed one unused.
    """
    before, after = change.before, change.after
    entry = after or before
    assert entry is not None
    if before is not None and after is not None and before.key != after.key:
        yield Objection(RefusalKind.INVALID, "keeps its kind, project and name; add another, and remove this one")
        return
    current = draft.get(entry.key)
    if before is None and after is not None and _is_unseen(state, actor, entry, current):
        # First, so that a user who may not add it learns nothing about an entry that they may not see.
        denied = [Objection(RefusalKind.DENIED, sentence) for sentence in _adding(state, actor, after)]
        if denied:
            yield from denied
            return
    stale = list(_as_seen(state, actor, entry, before, current))
    yield from stale
    if stale:
        return
    if current is None and after is not None:
        yield from (Objection(RefusalKind.DENIED, sentence) for sentence in _adding(state, actor, after))
    elif current is not None:
        yield from (Objection(RefusalKind.DENIED, sentence) for sentence in _changing(actor, current, after))
    if after is not None:
        yield from (Objection(RefusalKind.INVALID, error) for error in (*entry_errors(after), *_unknown(state, after)))
    else:
        yield from (Objection(RefusalKind.CONFLICT, sentence) for sentence in _still_used(state, draft, entry))


def _as_seen(
    state: ClusterState, actor: Actor, entry: AnyEntry, before: AnyEntry | None, current: AnyEntry | None
) -> Iterator[Objection]:
    """Yield how the current entry differs from the one that the user saw. A hidden entry is treated as absent."""
    filed = _is_filed_project(state, entry)
    hidden = _is_unseen(state, actor, entry, current)
    if before is not None and hidden:
        yield Objection(RefusalKind.NOT_FOUND, "there is none of this name; `cockpit catalogue` lists them")
    elif filed or (current is not None and current.filed and not hidden):
        yield Objection(RefusalKind.CONFLICT, f"is defined in {'cluster.toml' if filed else _FILE}; change it there")
    elif current is not None and before is None:
        seen = "" if hidden else "; `cockpit catalogue set` changes it"
        yield Objection(RefusalKind.CONFLICT, f"the name is taken there{seen or '; choose another'}")
    elif before is not None and current is None:
        yield Objection(RefusalKind.NOT_FOUND, "there is none of this name; `cockpit catalogue` lists them")
    elif before != current:
        yield Objection(RefusalKind.CONFLICT, "has changed since it was looked at; look again")


def _is_filed_project(state: ClusterState, entry: AnyEntry) -> bool:
    return entry.kind is EntryKind.PROJECT and any(each.name == entry.name for each in state.cluster.projects)


def _is_unseen(state: ClusterState, actor: Actor, entry: AnyEntry, current: AnyEntry | None) -> bool:
    """Whether there is such an entry, or project of cluster.toml, which the user may not see."""
    if actor.admin:
        return False
    if current is not None:
        return access_to_entry(actor, current) is Access.NONE
    return _is_filed_project(state, entry) and entry.name not in actor.projects


def _adding(state: ClusterState, actor: Actor, after: AnyEntry) -> Iterator[str]:
    """Yield why the actor may not add this entry."""
    if actor.admin:
        return
    if after.owner != actor.name:
        yield f"owner: only an administrator adds what is another's; write {visible(actor.name)}"
    if after.kind in CLUSTERWIDE:
        if not (after.kind is EntryKind.USER and after.name == actor.name):
            yield f"only an administrator adds a {after.kind}; ask one"
    elif not after.project:
        yield "project: only an administrator adds what is the whole cluster's; name a project of yours"
    elif not may_name(named_projects(state), actor, actor.name, after.project):
        yield f"project: you are not in {visible(after.project)}; `cockpit catalogue list project` lists yours"


def _changing(actor: Actor, current: AnyEntry, after: AnyEntry | None) -> Iterator[str]:
    """Yield why the actor may not change or remove this entry. `after`: None if it is removed."""
    if access_to_entry(actor, current) is not Access.RW:
        yield f"you may use it and not change it (access: ro); ask {visible(current.owner) or 'an administrator'}"
        return
    if after is None or actor.admin:
        return
    if after.owner != current.owner:
        yield "owner: only an administrator gives it to another"
    if after.access is not current.access and current.owner != actor.name:
        yield f"access: only {visible(current.owner) or 'an administrator'} opens it or closes it"


def _unknown(state: ClusterState, after: AnyEntry) -> Iterator[str]:
    if after.filed:
        yield f"filed: only {_FILE} says so; leave it out"
    if isinstance(after, PoolEntry):
        yield from (f"nodes: there is no node {visible(each)}" for each in after.nodes if each not in state.nodes)


def _still_used(state: ClusterState, draft: dict[EntryKey, AnyEntry], gone: AnyEntry) -> Iterator[str]:
    """Yield what still belongs to a project that is to be removed."""
    if not isinstance(gone, ProjectEntry):
        return
    held = next((each for each in draft.values() if each.project == gone.name), None)
    if held is not None:
        yield f"it has the {held.kind} {visible(held.name)}; remove that first"
    job = next((each for each in state.jobs.values() if each.project == gone.name and not each.ended), None)
    if job is not None:
        yield f"it has job {job.shown_id}, which has not ended; wait for it, or stop it"


def _difference(before: dict[EntryKey, AnyEntry], after: dict[EntryKey, AnyEntry]) -> list[EventBody]:
    entries = tuple(each for key, each in after.items() if before.get(key) != each)
    removed = tuple(each for key, each in before.items() if key not in after)
    return [events.CatalogueChanged(entries, removed)] if entries or removed else []


def _entry_words(entry: AnyEntry) -> str:
    return f"{entry.kind} {visible(f'{entry.project}/{entry.name}' if entry.project else entry.name, 140)}"
