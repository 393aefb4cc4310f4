"""Converts jobs between job files and the forms of other systems.

A form is recognised by its text (`form_of`). Reading notes what is left out; writing notes what is lost.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from errno import ENOENT
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from cockpit.errors import SpecErrors
from cockpit.formats.foreign.arena import is_arena, read_arena, write_arena
from cockpit.formats.foreign.customjob import is_custom_job, read_custom_job, write_custom_job
from cockpit.formats.foreign.draft import UNKNOWN, Draft, Submission
from cockpit.formats.foreign.gcloud import is_gcloud, read_gcloud, write_gcloud
from cockpit.formats.foreign.kubernetes_jobs import (
    read_job,
    read_mpi_job,
    read_tf_job,
    read_train_job,
    write_job,
    write_mpi_job,
    write_tf_job,
    write_train_job,
)
from cockpit.formats.foreign.propagation import is_policy, policy_of, take_policy
from cockpit.formats.foreign.pytorchjob import read_pytorch_job, write_pytorch_job
from cockpit.formats.foreign.sbatch import is_sbatch, read_sbatch, without_script
from cockpit.formats.foreign.sbatch_options import DIRECTIVE, script_lines
from cockpit.formats.foreign.sbatch_writing import write_sbatch
from cockpit.formats.foreign.trainingjob import read_training_job, write_training_job
from cockpit.formats.foreign.volcanojob import read_volcano_job, write_volcano_job
from cockpit.formats.job.life import ELASTIC
from cockpit.formats.job.specfile import spec_as_table, spec_as_yaml
from cockpit.launch.lexer import Literal, NotSimple, Part, Variable, lex
from cockpit.model.names import name_error
from cockpit.model.text import visible

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec


_POOLS: Final = re.compile(r"""["']?(?:workerPoolSpecs|worker_pool_specs)["']?\s*:""")
_OF_STDIN: Final = "sbatch"
"""sbatch's name for a job whose script has no file."""
STDIN: Final = "stdin"
"""The name of a text without a file."""
_NOT_YAML: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that JSON allows without an escape and YAML does not; JSON is also read as YAML."""
_COMMAND_LINE: Final = re.compile(
    r"^[ \t]*(?:\S*/)?(?P<program>arena|gcloud)[ \t](?:[^\n]*[ \t])?(?:submit|ai[ \t]+custom-jobs[ \t]+create)\b",
    re.MULTILINE,
)
_COMMENT: Final = re.compile(r"^\s*//.*$", re.MULTILINE)


class Form(StrEnum):
    """Ways to write a job."""

    YAML = "yaml"
    JSON = "json"
    SBATCH = "sbatch"
    ARENA = "arena"
    GCLOUD = "gcloud"
    PYTORCHJOB = "pytorchjob"
    TFJOB = "tfjob"
    MPIJOB = "mpijob"
    TRAINJOB = "trainjob"
    TRAININGJOB = "trainingjob"
    JOB = "job"
    VOLCANOJOB = "volcanojob"
    CUSTOMJOB = "customjob"


class TakenOver(NamedTuple):
    """A job file that says the same."""

    form: Form
    text: str
    """JSON."""
    notes: tuple[str, ...]
    """What could not be carried over, one sentence each."""


class WrittenJob(NamedTuple):
    text: str
    lost: tuple[str, ...]
    """Fields of the job that this form cannot say, or not fully."""


Beside = Callable[[str], str]
"""The text of a file that another one names. Raises `OSError`, `UnicodeDecodeError`."""


_TOO_LONG = "it holds a number with thousands of digits"


def alone(name: str) -> str:
    """Return the `Beside` of a text without a file."""
    raise FileNotFoundError(ENOENT, "names a file, which cannot be read from here", name)


def taken_over(source: str, text: str, beside: Beside = alone, submission: Submission = UNKNOWN) -> TakenOver | None:
    """Return the converted job; None: it has no foreign form. `submission`: the place that the job is submitted from.
    Raises `SpecErrors` if it has one and cannot be read."""
    # A script without #SBATCH lines is for sbatch, too, when it is submitted; `form_of` does not take it for one, since
    # any text may begin with `#!`.
    form = form_of(text) or (Form.SBATCH if text.startswith("#!") else None)
    if form is None:
        _refuse_other_kinds(source, text)
        _refuse_misplaced(source, text)
        return None
    try:
        if form is Form.SBATCH:
            draft = _named_like_its_file(read_sbatch("" if source == STDIN else source, text, submission), source)
        else:
            draft = _READERS[form](source, text, beside)
        if draft.errors:
            raise SpecErrors([f"{source}: {error}" for error in draft.errors])
        values = json.dumps(draft.finished(), ensure_ascii=False, separators=(",", ":"))
    except OSError as failed:
        raise SpecErrors([f"{source}: {visible(str(failed.filename), 200)}: {failed.strerror}"]) from None
    # A forged manifest may have any value anywhere: the readers do not check each type.
    except (ValueError, OverflowError, TypeError, AttributeError, KeyError) as error:
        why = _TOO_LONG if "int_max_str_digits" in str(error) else error
        raise SpecErrors([f"{source}: looks like {form} and cannot be read as that: {why}"]) from None
    return TakenOver(form, values, tuple(draft.notes))


def _refuse_other_kinds(source: str, text: str) -> None:
    """Refuse an object of Kubernetes that is none of the jobs. Raises SpecErrors."""
    # A quick look before the text is parsed, which takes long for large files.
    if "apiVersion" not in text or "kind" not in text:
        return
    try:
        kind = unknown_kind(items_of(_documents(source, text)))
    except ValueError:
        return
    if kind:
        known = ", ".join([*_KINDS, "Job of Kubernetes", "Job of Volcano"])
        raise SpecErrors(
            [f"{source}: is a {visible(kind, 200)} of Kubernetes; only these can become a job here: {known}"]
        )


def _refuse_misplaced(source: str, text: str) -> None:
    """Refuse a batch script without an interpreter, and a command line behind other commands. Raises SpecErrors."""
    line = _COMMAND_LINE.search(text)
    is_script = any(each.startswith(DIRECTIVE) for each in script_lines(text))
    if not is_script and line is None:
        return
    try:
        # In a job file such lines are text of a field.
        if any(isinstance(each, dict) for each in _documents(source, text)):
            return
    except ValueError:
        pass
    if is_script:
        why = f"has {DIRECTIVE} lines and no interpreter, as sbatch requires it; write #!/bin/bash as its first line"
    else:
        assert line is not None
        why = (
            f"has a line of {line['program']} behind other commands, which are not run here; copy that line into a "
            "file of its own, with the values of its variables"
        )
    raise SpecErrors([f"{source}: {why}"])


def form_of(text: str) -> Form | None:
    """Return the form of the text, by its content; None for a job file."""
    if is_sbatch(text):
        return Form.SBATCH
    if "arena" in text and is_arena(text):
        return Form.ARENA
    if "gcloud" in text and is_gcloud(text):
        return Form.GCLOUD
    # By patterns, without parsing: this runs for every text that is typed or pasted.
    for kind, group in kinds_in(text) if "kind" in text else ():
        if (form := _form_of_kind(kind, group)) is not None:
            return form
    return Form.CUSTOMJOB if _POOLS.search(text) else None


def _form_of_kind(kind: str, group: str) -> Form | None:
    """Return the form of a kind of object.

    `group`: of the API, with its version.
    """
    if kind == "Job":
        name = group.partition("/")[0]
        # Both are of kind `Job`: only the API group tells them apart.
        return {"batch": Form.JOB, "batch.volcano.sh": Form.VOLCANOJOB}.get(name)
    return _KINDS.get(kind)


def _form_of_document(document: object) -> Form | None:
    if not isinstance(document, dict):
        return None
    return _form_of_kind(str(document.get("kind", "")), str(document.get("apiVersion", "")))


def written(spec: JobSpec, form: Form, read: Callable[[str, str], list[JobSpec]]) -> WrittenJob:
    """Return the job written in that form. `read` reads a job file's text by its source's name: the result is read
    again, and whatever was lost is noted."""
    if spec.script is not None and form not in {Form.YAML, Form.JSON, Form.SBATCH}:
        # Only sbatch and cockpit have batch scripts; all others start a command.
        spec = without_script(spec)
    text = _WRITERS[form](spec)
    # cockpit's own forms have every field.
    if form in {Form.YAML, Form.JSON}:
        return WrittenJob(text, ())
    try:
        read_back = taken_over(form, text)
        assert read_back is not None
        (again,) = read(form, read_back.text)
    except SpecErrors as wrong:
        return WrittenJob(text, tuple(wrong.errors))
    # A script that only the form needs is no difference.
    if spec.script is None and again.script is not None:
        again = without_script(again)
    given, back = (_comparable(spec_as_table(each)) for each in (spec, again))
    return WrittenJob(text, tuple(_differences(given, back)))


def _comparable(table: dict[str, object]) -> dict[str, object]:
    """Return the table without those parts of a batch script that the job's other fields repeat, and without its
    origin."""
    script = table.get("script")
    if isinstance(script, dict):
        # The job's other fields say what the options do.
        lines = [line for line in script_lines(str(script["text"])) if line and not line.startswith(DIRECTIVE)]
        rest = {name: value for name, value in script.items() if name not in {"file", "submit_dir"}}
        table = {**table, "script": {**rest, "text": lines}}
    return table


def _differences(given: Mapping[str, object], back: Mapping[str, object]) -> list[str]:
    return [name for name in {**given, **back} if _normal(given.get(name), name) != _normal(back.get(name), name)]


def _normal(value: object, name: str = "") -> object:
    """Return a value in a form in which equal commands compare equal, however they are quoted."""
    if isinstance(value, dict):
        return {key: _normal(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [_normal(item) for item in value]
    if name == "command" and isinstance(value, str) and not isinstance(words := lex(value), NotSimple):
        return [[_part(part) for part in word.parts] for word in words]
    return value


def _part(part: Part) -> tuple[str, str]:
    """Return a part of a word in a form that does not depend on how a variable is written."""
    if isinstance(part, Variable):
        return "variable", part.name
    return ("text", part.text) if isinstance(part, Literal) else ("sum", part.text)


def _document(source: str, text: str, is_it: Callable[[object], bool], read: Callable[[Any], Draft]) -> Draft:
    documents = _documents(source, text)
    jobs = [each for each in documents if is_it(each)]
    if len(jobs) != 1:
        raise ValueError(f"there are {len(jobs)} jobs in it; give one")
    draft = read(jobs[0])
    beside(documents, jobs[0], draft)
    return draft


def _manifest(source: str, text: str, _: Beside) -> Draft:
    """Read a manifest by the kind of the job in it."""
    documents = items_of(_documents(source, text))
    jobs = [(each, form) for each in documents if (form := _form_of_document(each)) is not None]
    if len(jobs) != 1:
        raise ValueError(f"there are {len(jobs)} jobs in it; give one")
    ((job, form),) = jobs
    assert isinstance(job, dict)
    draft = _MANIFESTS[form](job)
    beside(documents, job, draft)
    return draft


def _documents(source: str, text: str) -> list[object]:
    from cockpit.formats.job.file import parsed

    documents = parsed(f"{source}.yaml" if not source.endswith((".json", ".yaml", ".yml")) else source, _plain(text))
    if documents.errors:
        raise ValueError(documents.errors[0].lstrip(": "))
    return [each.value for each in documents.items]


def _read_config(name: str, beside: Beside) -> Mapping[str, Any]:
    documents = _documents(name, beside(name))
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise ValueError(f"{name} is no CustomJobSpec")
    return documents[0]


def _named_like_its_file(draft: Draft, source: str) -> Draft:
    """Name the job after its file, as sbatch does with a script without a name."""
    name = _OF_STDIN if source == STDIN else posixpath.basename(source)
    if "name" not in draft.values and not name_error(name):
        draft.values["name"] = name
    return draft


def _plain(text: str) -> str:
    """Return a manual's JSON without its comments; in YAML such lines are text."""
    return _COMMENT.sub("", text) if text.lstrip().startswith(("{", "[")) else text


_KINDS: Final = {
    "PyTorchJob": Form.PYTORCHJOB,
    "TFJob": Form.TFJOB,
    "MPIJob": Form.MPIJOB,
    "TrainJob": Form.TRAINJOB,
    "TrainingJob": Form.TRAININGJOB,
}
_MANIFESTS: Final[Mapping[Form, Callable[[Mapping[str, Any]], Draft]]] = {
    Form.PYTORCHJOB: read_pytorch_job,
    Form.TFJOB: read_tf_job,
    Form.MPIJOB: read_mpi_job,
    Form.TRAINJOB: read_train_job,
    Form.TRAININGJOB: read_training_job,
    Form.JOB: read_job,
    Form.VOLCANOJOB: read_volcano_job,
}
_READERS: Final[Mapping[Form, Callable[[str, str, Beside], Draft]]] = {
    Form.ARENA: lambda _, text, __: read_arena(text, frozenset(field.name for field in ELASTIC.fields)),
    Form.GCLOUD: lambda _, text, beside: read_gcloud(text, lambda name: _read_config(name, beside)),
    Form.PYTORCHJOB: _manifest,
    Form.TFJOB: _manifest,
    Form.MPIJOB: _manifest,
    Form.TRAINJOB: _manifest,
    Form.TRAININGJOB: _manifest,
    Form.JOB: _manifest,
    Form.VOLCANOJOB: _manifest,
    Form.CUSTOMJOB: lambda source, text, _: _document(source, text, is_custom_job, read_custom_job),
}


def _json(value: object) -> str:
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return _NOT_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def _yaml(value: Mapping[str, object]) -> str:
    from cockpit.formats.job.specfile import values_as_yaml

    return values_as_yaml(value)


def _manifests(spec: JobSpec) -> list[Mapping[str, object]]:
    policy = policy_of(spec)
    return [write_pytorch_job(spec), *([policy] if policy is not None else [])]


def _as_yaml(write: Callable[[JobSpec], Mapping[str, object]]) -> Callable[[JobSpec], str]:
    return lambda spec: _yaml(write(spec))


_WRITERS: Final[Mapping[Form, Callable[[JobSpec], str]]] = {
    Form.YAML: spec_as_yaml,
    Form.JSON: lambda spec: _json(spec_as_table(spec)),
    Form.SBATCH: lambda spec: write_sbatch(spec_as_table(spec)),
    Form.ARENA: lambda spec: write_arena(spec_as_table(spec)),
    Form.GCLOUD: write_gcloud,
    Form.PYTORCHJOB: lambda spec: "---\n".join(_yaml(each) for each in _manifests(spec)),
    Form.TFJOB: _as_yaml(write_tf_job),
    Form.MPIJOB: _as_yaml(write_mpi_job),
    Form.TRAINJOB: _as_yaml(write_train_job),
    Form.TRAININGJOB: _as_yaml(write_training_job),
    Form.JOB: _as_yaml(write_job),
    Form.VOLCANOJOB: _as_yaml(write_volcano_job),
    Form.CUSTOMJOB: lambda spec: _json(write_custom_job(spec)),
}


_KIND: Final = re.compile(r"""["']?\bkind["']?\s*:\s*["']?(?P<kind>[A-Za-z]+)""")
_VERSION: Final = re.compile(r"""["']?\bapiVersion["']?\s*:\s*["']?(?P<group>[A-Za-z0-9./-]+)""")


def items_of(documents: list[object]) -> list[object]:
    """Return the documents, with the items of a `List` in its place."""
    single: list[object] = []
    for each in documents:
        items = each.get("items") if isinstance(each, dict) and str(each.get("kind", "")).endswith("List") else None
        single += items_of(items) if isinstance(items, list) else [each] if each is not None else []
    return single


def kinds_in(text: str) -> list[tuple[str, str]]:
    """Return the kinds in an unparsed text, each with the API group that is written near it."""
    groups = [match["group"] for match in _VERSION.finditer(text)]
    kinds = [match["kind"] for match in _KIND.finditer(text)]
    # Every pairing, since the text is not parsed: a wrong pair names no known form, apart from a file with several
    # objects, which is then parsed and checked.
    return [(kind, group) for kind in kinds for group in groups or [""]]


def unknown_kind(documents: list[object]) -> str:
    """Return the kind of the first object of Kubernetes among documents, with its API; empty: there is none."""
    for each in documents:
        if isinstance(each, Mapping) and "apiVersion" in each and "kind" in each:
            return f"{each['kind']} ({each['apiVersion']})"
    return ""


def beside(documents: list[object], job: object, draft: Draft) -> None:
    """Read the documents beside the job; each that means nothing here is noted."""
    others = [each for each in documents if each is not job]
    policies = [each for each in others if is_policy(each)]
    # Two policies may contradict each other; then none is taken, and both are noted.
    if len(policies) == 1:
        take_policy(policies[0], draft)
        others.remove(policies[0])
    names = [_document_words(each) for each in others]
    if names:
        draft.lacks("the other documents of the file", f"{', '.join(names)} left out")


def _document_words(document: object) -> str:
    if not isinstance(document, Mapping):
        return "one without a kind"
    metadata: Any = document.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, Mapping) else ""
    return " ".join(filter(None, (str(document.get("kind", "one without a kind")), str(name or ""))))
