"""The candidates of each field of the form: words of the job file, what the cluster has, and names of the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from cockpit.formats.job.texts import SPECS, Member, field_of, member_of
from cockpit.model.catalogue import DatasetEntry, ModelEntry
from cockpit.model.image import HOST
from cockpit.model.spec import Access, HomeAccess, JobKind, JobSpec, Mode, PriorityWord
from cockpit.present.form.choices import FieldChoice
from cockpit.present.form.fields import FIELD_OF, KIND, FormResult, JobForm, reference_to, title
from cockpit.present.form.node_choices import card_model_choices, node_choices
from cockpit.present.form.rule_choices import RuleChoices
from cockpit.present.tables.catalogue import means_text

if TYPE_CHECKING:
    from cockpit.model.catalogue import EntryRow
    from cockpit.present.form.facts import ClusterFacts

Judge = Callable[[JobForm], FormResult]
"""Reads a form by all rules that need no cluster."""

WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    KIND: {
        JobKind.REGULAR: "one command",
        JobKind.BATCH: "several tasks, each with its own command",
        JobKind.INTERACTIVE: "a session: a shell or a notebook",
    },
    "mode": {
        Mode.STANDALONE: "one node",
        Mode.HOROVOD: "mpirun starts the command on all nodes",
        Mode.TENSORFLOW: "runs on each node, with TF_CONFIG",
        Mode.PYTORCH: "runs on each node, for torchrun",
        Mode.DEEPSPEED: "runs on the first node, with a hostfile",
        Mode.SLURM: "runs on the first node, for srun and mpirun",
        Mode.WORKER_POOLS: "up to four kinds of replicas",
    },
    "priority": {
        PriorityWord.NORMAL: "the default",
        PriorityWord.URGENT: "limited in number per user and project",
        PriorityWord.VERY_URGENT: "for administrators",
    },
    "home": {HomeAccess.NONE: "not there", HomeAccess.RO: "read-only", HomeAccess.RW: "writable"},
    "access": {
        Access.RW: "members of the project may do everything",
        Access.RO: "members of the project may read and clone it",
        Access.NONE: "members of the project do not see it",
    },
}
"""What each word of a field means."""
REFERRED: Final = frozenset({"algorithm", "datasets", "models", "volumes"})
"""Fields in which an entry of the catalogue is more than its name."""


class Candidates:
    """The candidates of a form's fields, by what is known of the cluster."""

    def __init__(self, facts: ClusterFacts, judge: Judge) -> None:
        self._facts, self._judge, self._up = facts, judge, facts.up
        self._rules = RuleChoices(facts)

    def of(self, path: str, form: JobForm, spec: JobSpec | None) -> list[FieldChoice]:
        """Return the field's candidates, those that the job may have first; empty: it is free text alone.

        `spec`: the job as far as the form can be read; None: it cannot.
        """
        member = member_of(path)
        if member is not None and member.group == SPECS:
            found = self._of_spec(member, spec)
        else:
            found = [*self._of_cluster(path, spec), *self._of_catalogue(path)] or self._words(path, form)
        return sorted(found, key=lambda each: bool(each.why_not))

    def exist_for(self, path: str) -> bool:
        """Return whether the field has candidates, without a look at what each node has free."""
        schema, member = field_of(path).kind.schema(), member_of(path)
        if schema.get("type") == "boolean" or "enum" in schema:
            return True
        if path == "partitions":
            return self._rules.has_partitions
        if member is not None and member.field == "card_models":
            return any(row.node.cards for row in self._up)
        return bool(self.of(path, JobForm({}), None))

    def _of_spec(self, member: Member, spec: JobSpec | None) -> list[FieldChoice]:
        if member.field != "card_models":
            return []
        wanted = spec.specs[member.number] if spec is not None and member.number < len(spec.specs) else None
        return list(card_model_choices(self._up, wanted, self._facts.demand))

    def _of_cluster(self, path: str, spec: JobSpec | None) -> Iterator[FieldChoice]:
        match path:
            case "partitions":
                yield from self._rules.partitions(spec)
            case "account":
                yield from self._rules.accounts()
            case "qos":
                yield from self._rules.qos(spec)
            case "reservation":
                yield from self._rules.reservations(spec)
            case "pool":
                yield from node_choices(self._up, spec, lambda row: row.node.pool)
            case "driver_version":
                yield from node_choices(self._up, spec, lambda row: row.node.driver_version)
            case "node_names":
                yield from node_choices(self._up, spec, lambda row: row.node.name)
            case "image":
                yield from self._images()

    def _images(self) -> Iterator[FieldChoice]:
        if self._facts.host_image:
            yield FieldChoice(HOST, "the file system of the node, the default")
        for image, job in self._facts.images.items():
            yield FieldChoice(image, f"the image of job {job}")

    def _of_catalogue(self, path: str) -> Iterator[FieldChoice]:
        for row in self._facts.catalogue:
            if FIELD_OF.get(row.entry.kind) == path:
                reference = reference_to(row) if path in REFERRED else None
                yield FieldChoice(row.entry.name, _facts_of(row), reference=reference)

    def _words(self, path: str, form: JobForm) -> list[FieldChoice]:
        """Return the words that the field may have; those with which the form would have another error say which."""
        schema = field_of(path).kind.schema()
        words: Sequence[str] = ("true", "false") if schema.get("type") == "boolean" else schema.get("enum", ())
        about = WORDS.get(path, {})
        before = self._judge(form).errors if words else {}
        return [
            FieldChoice(word, about.get(word, ""), self._not_for(path, word) or self._error(path, word, form, before))
            for word in words
        ]

    def _not_for(self, path: str, word: str) -> str:
        is_admins = path == "priority" and word == PriorityWord.VERY_URGENT and not self._facts.admin
        return "only administrators set it" if is_admins else ""

    def _error(self, path: str, word: str, form: JobForm, before: Mapping[str, str]) -> str:
        """Return the first error that the form would have with this word and does not have yet; empty: none."""
        trial = form.copy()
        trial.texts[path] = word
        if path == KIND:
            trial.follow_kind()
        after = self._judge(trial).errors
        if path in after:
            return after[path]
        return next((f"{title(each)}: {error}" for each, error in after.items() if each not in before), "")


def _facts_of(row: EntryRow) -> str:
    about = row.entry.about or means_text(row)
    if isinstance(row.entry, DatasetEntry | ModelEntry) and row.entry.versions:
        return f"version {list(row.entry.versions)[-1]} · {about}"
    return about
