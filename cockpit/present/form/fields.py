"""The fields of a job's submit form: their texts, the errors of each, and the catalogue's entries in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from cockpit.errors import SpecErrors
from cockpit.formats.catalogue.file import TABLES
from cockpit.formats.job.texts import (
    FIELDS,
    GROUPS,
    SPECS,
    TASKS,
    Member,
    field_of,
    member_of,
    member_paths,
    texts_of,
    values_of,
)
from cockpit.launch.checks import meeting_errors, submission_errors
from cockpit.model.catalogue import AnyEntry, DatasetEntry, EntryKind, ModelEntry, SpecEntry
from cockpit.model.masked_logs import SHORTEST_KNOWN
from cockpit.model.masking import is_revealing, masked
from cockpit.model.secret_signs import MASK, is_secret_variable
from cockpit.model.spec import Access, JobKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cockpit.formats.job.file import ReadJobs
    from cockpit.model.catalogue import EntryRow
    from cockpit.model.spec import JobSpec


SOURCE: Final = "the form"
KIND: Final = "kind"
USUAL: Final = (
    *("name", "command", "algorithm", "output", "nodes"),
    *(SPECS, "mode", "time_limit", "priority", "partitions", "account", "qos", "terminal", "datasets", KIND),
)
"""Fields that a new form always has,"""
ENV: Final = "env"
IMAGE: Final = "image"
"""A field that a form also has where a job needs an image."""
EACH_TASKS: Final = ("command", "algorithm")
"""except these in a batch, where each task has them."""
_PATH: Final = re.compile(
    r"(?:the form: )?(?:jobs\[0\]\.)?(?P<path>[a-z_]+(?:\[\d+\])?(?:\.[a-z_]+)*)[^:]*: (?P<said>.*)"
)


_STAND_INS: Final = {"name": "job", "command": "true", "output": "/"}
"""Values of the fields that every job has, where they are missing or wrong."""


class FormResult(NamedTuple):
    """Result of reading the form: the job spec, or the errors."""

    spec: JobSpec | None
    """The job spec; None: the form has errors."""
    errors: Mapping[str, str]
    """Error texts by the path of the form's field."""
    others: tuple[str, ...]
    """Errors that belong to none of the form's fields."""


class JobForm:
    """The form's texts as the user typed them, by path. Values that the form's fields cannot express are kept as fields
    of their own."""

    def __init__(self, values: Mapping[str, object], *, needs_image: bool = False) -> None:
        """Fill the form. `values`: with the names of a job file. `needs_image`: whether the cluster's jobs do."""
        given = texts_of(values)
        self.needs_image = needs_image
        usual = list(USUAL)
        if needs_image:
            usual.insert(usual.index("output"), IMAGE)
        if values.get(KIND) == JobKind.BATCH:
            tasks = [path for path in given if path.startswith(TASKS)]
            usual = ["name", KIND, *tasks, *(path for path in usual if path not in EACH_TASKS)]
        # Specs are one line of text, or the fields of each; the fields of one empty spec where there is none.
        if SPECS not in given:
            at = usual.index(SPECS)
            usual[at : at + 1] = [path for path in given if path.startswith(SPECS)] or member_paths(SPECS, 0)
        self.texts: dict[str, str] = {**dict.fromkeys(usual, ""), **given}

    def copy(self) -> JobForm:
        """Return a form with the same texts, which changes by itself."""
        form = JobForm({}, needs_image=self.needs_image)
        form.texts = dict(self.texts)
        return form

    def add(self, path: str) -> str:
        """Add an empty field and return its path; for specs and tasks add the fields of one more behind the last, and
        return the first path."""
        paths = member_paths(path, len(self._numbers(path))) if path in GROUPS else [path]
        self.put(dict.fromkeys(paths, ""))
        return paths[0]

    def follow_kind(self) -> bool:
        """Move command and algorithm to the first task when the job becomes a batch, and back from an only task when it
        no longer is one. Return whether fields have changed."""
        batch = self.texts.get(KIND, "").strip() == JobKind.BATCH
        fields = dict(zip(EACH_TASKS, member_paths(TASKS, 0), strict=True))
        names = fields if batch else {task: own for own, task in fields.items()}
        # Several tasks, or texts on both sides: nothing is moved, as something would be overwritten.
        paths = self.texts.keys()
        if not paths & names.keys() or paths & {*names.values()} or len(self._numbers(TASKS)) > 1:
            return False
        # Rebuilt, so that the fields keep their order under their new names.
        self.texts = {names.get(path, path): text for path, text in self.texts.items()}
        return True

    def put(self, texts: Mapping[str, str]) -> None:
        """Set these fields to these texts; a new field is added behind the other fields of its group."""
        order = [*self.texts]
        for path in texts:
            if path not in order:
                near = [at for at, other in enumerate(order) if _belongs_after(path, other)]
                order.insert(near[-1] + 1 if near else len(order), path)
        known = {**self.texts, **texts}
        self.texts = {path: known[path] for path in order}

    def put_specs(self, specs: Sequence[Mapping[str, object]]) -> None:
        """Replace the form's node specs by these, which have the form of a job file."""
        named = {number for number, spec in enumerate(specs) if "name" in spec}
        # A spec with a name of the catalogue is that name alone: empty fields beside it would read as if they counted.
        fresh = {
            path: text
            for path, text in texts_of({SPECS: list(specs)}).items()
            if text or ((member := member_of(path)) is not None and member.number not in named)
        }
        texts: dict[str, str] = {}
        for path, text in self.texts.items():
            if path == self.first_spec:
                texts |= fresh
            if not _is_in(path, SPECS):
                texts[path] = text
        self.texts = texts | fresh

    @property
    def first_spec(self) -> str:
        """The path of the first field that describes the requested nodes; empty: no field does."""
        return next((path for path in self.texts if _is_in(path, SPECS)), "")

    @property
    def specs(self) -> list[int]:
        """Numbers of the node specs in the form."""
        return self._numbers(SPECS)

    def lead(self, path: str) -> str:
        """Return the heading above a field: `spec 1`, `or spec 2` at each spec's first field where there are several;
        else empty."""
        member = member_of(path)
        if member is None or member.group != SPECS or len(self.specs) < 2:
            return ""
        first = next(each for each in self.texts if _is_of(each, SPECS, member.number))
        return f"{'or ' if member.number else ''}spec {member.number + 1}" if path == first else ""

    def _numbers(self, group: str) -> list[int]:
        members = (member for path in self.texts if (member := member_of(path)) is not None)
        return sorted({member.number for member in members if member.group == group})

    @property
    def absent(self) -> list[str]:
        """Return the paths of fields that can be added: for a batch first a further task; a further node spec unless
        the specs are written on one line; and what the form's node specs do not have yet."""
        batch = self.texts.get(KIND) == JobKind.BATCH
        there = self.texts.keys() | {*(EACH_TASKS if batch else ())}
        named = [Member(SPECS, number, field).path for number in self.specs for field in GROUPS[SPECS]]
        paths = dict.fromkeys((*([TASKS] if batch else []), *FIELDS, *named))
        return [path for path in paths if path not in there]

    def choice(self, path: str) -> str:
        """Return the label of a field in the list of fields to add."""
        member = member_of(path)
        if member is not None:
            return f"{member.group.removesuffix('s')} {member.number + 1}: {title(path)}"
        return f"another {path.removesuffix('s')}" if path in GROUPS else title(path)

    def values(self) -> dict[str, object]:
        """Return the form's values with the names of a job file."""
        return values_of(self.texts)

    def read_spec(self, read: ReadJobs, folder: str) -> FormResult:
        """Read the form by the rules of job files; relative paths begin at `folder`."""
        text = msgspec.json.encode(self.values()).decode()
        try:
            (spec,) = read(SOURCE, text, folder)
        except SpecErrors as wrong:
            return self.errors_by_field(wrong.errors)
        return FormResult(spec, {}, ())

    def readable_spec(self, read: ReadJobs, folder: str) -> JobSpec | None:
        """Return the job without the fields that are wrong, for what can be said of it before all of them are right;
        None: it has no such job."""
        form = self.copy()
        for _ in range(2):  # a field that is left out may be missing to another one
            result = form.read_spec(read, folder)
            if result.spec is not None:
                return result.spec
            form.texts |= {path: _STAND_INS.get(path, "") for path in result.errors}
        return None

    def judge(self, read: ReadJobs, folder: str) -> FormResult:
        """Read the form, and check the job by all rules that need no cluster."""
        result = self.read_spec(read, folder)
        if result.spec is None:
            return result
        errors = [*submission_errors(result.spec), *meeting_errors(result.spec)]
        return self.errors_by_field(errors) if errors else result

    def errors_by_field(self, errors: Sequence[str]) -> FormResult:
        """Return the errors sorted by field: each at the form's field that its path names, and only the first error of
        a field."""
        at: dict[str, str] = {}
        others: list[str] = []
        for error in errors:
            path, text = self._place(error)
            if path:
                at.setdefault(path, text)
            else:
                others.append(text)
        return FormResult(None, at, tuple(others))

    def _place(self, error: str) -> tuple[str, str]:
        match = _PATH.fullmatch(error)
        if match is None:
            return "", error.removeprefix(f"{SOURCE}: ")
        path = self._form_path(match["path"])
        # The error may be about a part that the form shows as one text: then it belongs to the nearest field around it.
        near = (path, path.rpartition(".")[0], path.partition("[")[0], path.partition(".")[0])
        shown = next((each for each in near if each in self.texts), "")
        return (shown, match["said"]) if shown else ("", error.removeprefix(f"{SOURCE}: "))

    def _form_path(self, path: str) -> str:
        """Return the form's path for a path of the job file, in which blank specs are left out and the others are
        renumbered."""
        member = member_of(path)
        if member is None or member.group != SPECS:
            return path
        # Errors count the specs that were read, and blank ones are not.
        written = [number for number in self.specs if any(self._spec_texts(number))]
        number = written[member.number] if member.number < len(written) else member.number
        return member._replace(number=number).path

    def _spec_texts(self, number: int) -> Iterator[str]:
        return (text.strip() for path, text in self.texts.items() if _is_of(path, SPECS, number))


def _is_in(path: str, group: str) -> bool:
    """Return whether the path is the group as one line, or a field of one of the group's entries."""
    member = member_of(path)
    return path == group or (member is not None and member.group == group)


def _is_of(path: str, group: str, number: int) -> bool:
    member = member_of(path)
    return member is not None and (member.group, member.number) == (group, number)


def _belongs_after(path: str, other: str) -> bool:
    """Return whether a field belongs behind another: they are of one group, and the other's entry is the same or an
    earlier one."""
    one, two = member_of(path), member_of(other)
    return one is not None and two is not None and one.group == two.group and two.number <= one.number


def title(path: str) -> str:
    """Return the label of a field: `card models`; `#1 command` for a task's field."""
    member = member_of(path)
    if member is None:
        return path.replace("_", " ")
    name = member.field.replace("_", " ")
    return f"#{member.number} {name}" if member.group == TASKS else name


def shown_text(path: str, text: str) -> str:
    """Return the text of a field without secrets, for showing it while the user does not edit it."""
    if path != ENV or is_revealing():
        return masked(text)
    # As JSON writes an environment, in which each name that is a secret's counts.
    shown = masked(f'"{ENV}": {text}').removeprefix(f'"{ENV}": ')
    try:
        env = values_of({ENV: text}).get(ENV)
    except (SpecErrors, ValueError):
        return shown
    for name, value in env.items() if isinstance(env, dict) else ():
        # A number or another short value is masked by its place alone: elsewhere it may be anything.
        if isinstance(value, str) and len(value) >= SHORTEST_KNOWN and is_secret_variable(str(name), value):
            shown = shown.replace(value, MASK)
    return shown


def about(path: str) -> str:
    """Return a sentence about the field's purpose."""
    return field_of(path).about


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
        form.texts |= texts_of({path: [*(before if isinstance(before, list) else []), reference_to(row)]})
    else:
        form.texts |= texts_of({path: reference_to(row) if path == "algorithm" else row.entry.name})
    return path


def reference_to(row: EntryRow) -> dict[str, object]:
    """Return the reference to a catalogue entry as a job file writes it."""
    entry, reference = row.entry, dict[str, object]({"name": row.entry.name})
    values = TABLES[entry.kind].write(entry)
    if "source" in values:
        reference["source"] = values["source"]
    if isinstance(entry, DatasetEntry | ModelEntry) and entry.versions:
        # The newest version, written out, so that the user sees which one the job gets.
        reference["version"] = list(entry.versions)[-1]
    # Only who may change an entry can mount it for writing.
    if entry.kind in {EntryKind.DATASET, EntryKind.ALGORITHM} and row.may is not Access.RW:
        reference["read_only"] = True
    return reference


def with_named_specs(spec: JobSpec, entries: Iterable[AnyEntry]) -> JobSpec:
    """Return the spec with each named node spec replaced by the catalogue's node spec of that name."""
    if not any(each.name for each in spec.specs):
        return spec
    known = {each.name: each.spec for each in entries if isinstance(each, SpecEntry)}
    return replace(spec, specs=tuple(known.get(each.name, each) for each in spec.specs))
