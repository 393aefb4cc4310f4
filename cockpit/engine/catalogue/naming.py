"""Resolves the catalogue names in a job when it is accepted, with the rights of its owner.

A name is looked for in the job's project, then among the owner's, then among the cluster's, then in the owner's other
projects. An edited job keeps what it has found: only names that are new are looked up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from msgspec.structs import replace

from cockpit.engine.access import access_to_entry
from cockpit.model.catalogue import (
    NO_CARDS,
    AlgorithmEntry,
    DatasetEntry,
    EntryKind,
    ImageEntry,
    ModelEntry,
    PoolEntry,
    Scope,
    SpecEntry,
    entry_key,
)
from cockpit.model.image import ImageKind, image_of
from cockpit.model.mounts import VERSIONED, Algorithm, Dataset, Model, Reference, ResolvedEntry, Volume
from cockpit.model.spec import Access, JobSpec
from cockpit.model.text import visible

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from cockpit.engine.access import Actor
    from cockpit.engine.state import ClusterState
    from cockpit.model.catalogue import AnyEntry
    from cockpit.model.image import Mpi
    from cockpit.model.node import Card, Node
    from cockpit.model.spec import JobSpec, NodeSpec, Task


Ref = TypeVar("Ref", bound=Reference)

_KINDS: dict[type[Reference], EntryKind] = {
    Algorithm: EntryKind.ALGORITHM,
    Dataset: EntryKind.DATASET,
    Model: EntryKind.MODEL,
    Volume: EntryKind.VOLUME,
}
_RANK = {Access.NONE: 0, Access.RO: 1, Access.RW: 2}
_MOST_NAMED = 10


class ResolvedSpec(NamedTuple):
    """A spec in which every name is resolved, and the errors of the names that could not be."""

    spec: JobSpec
    errors: list[str]


def needs_no_lookup(spec: JobSpec) -> bool:
    """Return whether the spec names nothing of the catalogue, as is true of most jobs, so that `Names` may be skipped.

    False also where a field is filled in that only `Names` may fill in: a forged request could give it any folder.
    """
    if (
        spec.pool is not None
        or spec.pool_nodes
        or spec.excluded
        or spec.image_found
        or spec.image_mpi
        or any(each.name for each in spec.specs)
    ):
        return False
    named = image_of(spec.image).kind is ImageKind.NAMED
    return not named and all(each.path and each.found is None for _, each in spec.references())


class Names:
    """Resolves names for the jobs of one owner. `actor`: the user who submits, and whose rights to the
    catalogue count."""

    def __init__(self, state: ClusterState, actor: Actor, owner: str, before: JobSpec | None = None) -> None:
        self._state = state
        self._actor = actor
        self._owner = owner
        self._before = before
        self._errors: list[str] = []
        self._project = ""
        self._listed: dict[EntryKind, str] = {}
        """What there is of a kind, in words."""

    def meant(self, spec: JobSpec, project: str) -> ResolvedSpec:
        """Resolve all names in a spec. `project`: that of the job, whose entries come first."""
        self._errors, self._project = [], project
        resolved = replace(
            spec,
            algorithm=self._one("algorithm", spec.algorithm) if spec.algorithm is not None else None,
            tasks=tuple(self._task(f"tasks[{at}].algorithm", each) for at, each in enumerate(spec.tasks)),
            datasets=tuple(self._one(f"datasets[{at}]", each) for at, each in enumerate(spec.datasets)),
            models=tuple(self._one(f"models[{at}]", each) for at, each in enumerate(spec.models)),
            volumes=tuple(self._one(f"volumes[{at}]", each) for at, each in enumerate(spec.volumes)),
            specs=tuple(self._node_spec(f"specs[{at}].name", each) for at, each in enumerate(spec.specs)),
            pool_nodes=self._pool_nodes(spec),
            excluded=(),
        )
        # Behind the node specs, whose names must mean cards before the image is compared with these.
        image, mpi = self._image(resolved)
        resolved = replace(resolved, image_found=image, image_mpi=mpi)
        if spec.access is not Access.NONE:
            self._check_access(resolved)
        return ResolvedSpec(resolved, self._errors)

    def _task(self, at: str, task: Task) -> Task:
        return replace(task, algorithm=self._one(at, task.algorithm)) if task.algorithm is not None else task

    def _one(self, at: str, given: Ref) -> Ref:
        """Resolve one reference to a dataset, algorithm, model or volume. `at`: the path of its field."""
        # `found` is the engine's alone to write: it is dropped wherever this request does not resolve it again.
        if given.path:
            return replace(given, found=None)
        if (known := self._resolved_before(given)) is not None:
            return known
        entry = self._entry(_KINDS[type(given)], f"{at}.name", given.name)
        if entry is None:
            return replace(given, found=None)
        self._check_use(at, given, entry)
        return replace(given, found=ResolvedEntry(entry.project, self._folder(at, given, entry)))

    def _resolved_before(self, given: Ref) -> Ref | None:
        """Return a reference as the edited job had it resolved."""
        for _, each in self._before.references() if self._before is not None else ():
            if type(each) is type(given) and replace(each, found=None) == replace(given, found=None):
                return each
        return None

    def _entry(self, kind: EntryKind, at: str, name: str) -> AnyEntry | None:
        # Without duplicates, in order: the project may be the owner's own.
        places = dict.fromkeys([self._project, self._owner, "", *sorted(self._actor.projects)])
        for project in places:
            entry = self._state.catalogue.get(entry_key(kind, project, name))
            # An entry without access is passed over as if it did not exist; another place may have the name too.
            if entry is not None and access_to_entry(self._actor, entry) is not Access.NONE:
                return entry
        self._errors.append(f"{at}: there is no {kind} {visible(name)}; {self._there(kind)}")
        return None

    def _there(self, kind: EntryKind) -> str:
        """Return a hint that lists the names of a kind, or says how to add one."""
        # Made once: a request may have many wrong names, and the catalogue may be long.
        if kind not in self._listed:
            self._listed[kind] = self._list(kind)
        return self._listed[kind]

    def _list(self, kind: EntryKind) -> str:
        seen = (
            each.name
            for each in self._state.catalogue.values()
            if each.kind is kind and access_to_entry(self._actor, each) is not Access.NONE
        )
        names = sorted(set(seen))
        if not names:
            return f"`cockpit catalogue add {kind}` adds one"
        return f"there are: {', '.join(map(visible, names[:_MOST_NAMED]))}{' …' if len(names) > _MOST_NAMED else ''}"

    def _check_use(self, at: str, given: Reference, entry: AnyEntry) -> None:
        """Note what the reference may not do with this entry: another source, or to write where only reading is
        open."""
        source = entry_source(entry)
        if source is not getattr(given, "source", None):
            self._errors.append(f"{at}.source: {visible(entry.name)} is {source}; write source: {source}")
        if access_to_entry(self._actor, entry) is Access.RW or isinstance(given, Model):
            return
        whose = f"{visible(entry.name)} is {visible(entry.owner) or 'the cluster'}'s, for reading only (access: ro)"
        if isinstance(given, Dataset | Algorithm):
            if not given.read_only:
                self._errors.append(f"{at}.read_only: {whose}; write read_only: true")
        else:
            self._errors.append(f"{at}: {whose}, and a volume is written into; ask for rw")

    def _folder(self, at: str, given: Reference, entry: AnyEntry) -> str:
        if not isinstance(given, Dataset | Model) or given.source not in VERSIONED:
            return str(getattr(entry, "path", ""))
        versions = entry.versions if isinstance(entry, DatasetEntry | ModelEntry) else {}
        if given.version not in versions and entry_source(entry) is given.source:
            known = ", ".join(map(visible, list(versions)[-_MOST_NAMED:]))
            self._errors.append(f"{at}.version: {visible(given.name)} has no {visible(given.version)}; it has: {known}")
        return versions.get(given.version, "")

    def _node_spec(self, at: str, given: NodeSpec) -> NodeSpec:
        if not given.name:
            return given
        known = next((each for each in self._before.specs if each.name == given.name), None) if self._before else None
        if known is not None:
            return known
        entry = self._entry(EntryKind.SPEC, at, given.name)
        return replace(entry.spec, name=given.name) if isinstance(entry, SpecEntry) else given

    def _pool_nodes(self, spec: JobSpec) -> tuple[str, ...]:
        """Return the nodes of a pool. Without an entry in the catalogue, the nodes themselves name their pool."""
        if spec.pool is None:
            return ()
        entry = self._state.catalogue.get(entry_key(EntryKind.POOL, "", spec.pool))
        if not isinstance(entry, PoolEntry):
            return ()
        # Before the test of access: an edit keeps the pool although its owner may have closed it since.
        if self._before is not None and self._before.pool == spec.pool:
            return self._before.pool_nodes
        if access_to_entry(self._actor, entry) is Access.NONE:
            self._errors.append(
                f"pool: {visible(spec.pool)} is not open to you; ask {visible(entry.owner) or 'an administrator'}"
            )
        return entry.nodes

    def _image(self, spec: JobSpec) -> tuple[str, Mpi | None]:
        """Return the image and its MPI. A name that the catalogue does not have is left to podman or docker."""
        if image_of(spec.image).kind is not ImageKind.NAMED:
            return "", None
        if self._before is not None and (self._before.image, self._before.specs) == (spec.image, spec.specs):
            return self._before.image_found, self._before.image_mpi
        errors = len(self._errors)
        entry = self._entry(EntryKind.IMAGE, "image", spec.image)
        # A name that is not found is no error here: podman or docker may know it.
        del self._errors[errors:]
        if not isinstance(entry, ImageEntry):
            return "", None
        self._errors += [f"image: {error}" for error in image_errors(entry, spec, self._state.nodes.values())]
        return entry.image, entry.mpi

    def _check_access(self, spec: JobSpec) -> None:
        """Check that the job opens to its project only what the project may see of everything that it mounts."""
        for at, given in spec.references():
            if given.found is None:
                continue
            kind = _KINDS[type(given)]
            entry = self._state.catalogue.get(entry_key(kind, given.found.project, given.name))
            gives = _open_to(entry, self._project)
            if _RANK[spec.access] > _RANK[gives]:
                what = f"the {kind} {visible(given.name)} ({at})"
                self._errors.append(
                    f"access: {spec.access} is more than {what} gives the project ({gives}); write {gives}"
                )


def entry_source(entry: AnyEntry) -> object:
    """Return the folder of an entry that has one."""
    return getattr(entry, "source", None) if isinstance(entry, DatasetEntry | ModelEntry | AlgorithmEntry) else None


def _open_to(entry: AnyEntry | None, project: str) -> Access:
    """Return the rights that an entry gives to the members of a project."""
    return entry.access if entry is not None and entry.home in {"", project} else Access.NONE


def image_errors(image: ImageEntry, spec: JobSpec, nodes: Iterable[Node]) -> Iterator[str]:
    """Yield why the image does not suit the job, as the ends of sentences. `spec`: with its node specs resolved."""
    if Scope.TRAINING not in image.scopes:
        yield f"{visible(image.name)} is meant for {' and '.join(image.scopes)}, not for training; choose another"
    types = frozenset(each.casefold() for each in image.card_types)
    if not types:
        return
    cards = {card.model.casefold(): card for node in nodes for card in node.cards}
    made_for = f"{visible(image.name)} is made for {' and '.join(map(visible, image.card_types))}"
    for index, each in enumerate(spec.specs):
        if (other := _unsuited(each, types, cards.values())) is not None:
            yield f"{made_for}, and specs[{index}] {other}; choose another image, or other cards"


def _unsuited(spec: NodeSpec, types: frozenset[str], cards: Collection[Card]) -> str | None:
    """Return what of the spec none of the types suits, as the end of a sentence; None: they suit."""
    if not spec.card_milli:
        return None if NO_CARDS in types else f"has no cards ({NO_CARDS})"
    wanted = {each.casefold() for each in spec.card_models}
    known = {each.model.casefold() for each in cards}
    # The job may get any card of the cluster that it does not exclude, so that the image must suit all of these.
    for card in cards:
        if (not wanted or card.model.casefold() in wanted) and types.isdisjoint(_types(card)):
            return f"may be given {visible(card.model)} ({card.vendor})"
    unknown = (each for each in spec.card_models if each.casefold() not in known | types)
    return next((f"asks for {visible(each)}" for each in unknown), None)


def _types(card: Card) -> set[str]:
    return {card.model.casefold(), str(card.vendor).casefold()}
