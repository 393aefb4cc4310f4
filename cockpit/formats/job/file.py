"""Job files: YAML, JSON, or JSON Lines with one job a line. A file is checked whole and read whole, or not at all."""

from __future__ import annotations

import posixpath
from collections.abc import Callable

import msgspec

from cockpit.errors import SpecErrors
from cockpit.formats.documents import Document, Documents
from cockpit.formats.job.fields import JOB
from cockpit.formats.jsontext import is_json, json_documents, json_line_documents
from cockpit.formats.kinds import Reading
from cockpit.launch.batchscript import SCRIPT_NAME
from cockpit.launch.checks import grammar_errors, meeting_errors
from cockpit.model.ids import Millis
from cockpit.model.rules.conflicts import conflict_errors
from cockpit.model.rules.spec import field_errors
from cockpit.model.spec import DAY_SECONDS, DEFAULT_GRACE_SECONDS, DependencyKind, HomeAccess, JobSpec, Mode
from cockpit.model.text import visible

ReadJobs = Callable[[str, str, str], list[JobSpec]]
"""Reads the jobs of a text by its source's name, the text, and the folder where its relative paths begin."""
MOST_CHARACTERS = 64 * 1024 * 1024
_JSON = {
    ".json": json_documents,
    ".jsonl": json_line_documents,
    ".ndjson": json_line_documents,
}


class Defaults(msgspec.Struct, frozen=True, kw_only=True):
    """What a job file may leave out and the model does not know: the administrator's and the reader's own."""

    time_limit_seconds: int = DAY_SECONDS
    grace_seconds: int = DEFAULT_GRACE_SECONDS
    home_folder: str = ""
    """What `~` stands for in paths; empty: unknown, and `~` is refused."""
    now: Millis | None = None
    """What `now` stands for in moments; None: unknown, and `now+2h` is refused."""


def read_jobs(source: str, text: str, folder: str, *, defaults: Defaults) -> list[JobSpec]:
    """All jobs of a text, at least one. `source` is its name, whose ending says the format (else the content does);
    `folder`, absolute, is where its relative paths begin. Raises `SpecErrors` with all errors of all jobs, each led by
    source, place and field: `jobs.jsonl:17: specs[0].memory: …`."""
    documents = parsed(source, text)
    errors = list(documents.errors)
    specs = []
    for document in documents.found:
        reading = Reading(folder, defaults.home_folder, defaults.now)
        specs.append(_job(document, reading, defaults))
        errors += [f"{document.where}: {error}" for error in reading.errors]
    errors += _repeated_names(documents.found, specs)
    if not specs and not errors:
        errors = [": holds no job; write name, command and output"]
    if errors:
        raise SpecErrors([f"{visible(source, 200)}{error}" for error in errors])
    return specs


def job_values(source: str, text: str) -> dict[str, object]:
    """The fields of a text's one job as they stand there, unread. Raises `SpecErrors` where it holds anything else."""
    documents = parsed(source, text)
    found = [each.value for each in documents.found]
    if documents.errors or len(found) != 1 or not isinstance(found[0], dict):
        errors = documents.errors or [": write the fields of one job that differ, such as time_limit: 2h"]
        raise SpecErrors([f"{visible(source, 200)}{error}" for error in errors])
    return found[0]


def parsed(source: str, text: str) -> Documents:
    """The values of a text in YAML, JSON or JSON Lines; what cannot be parsed is among the errors."""
    if len(text) > MOST_CHARACTERS:
        return Documents([], [f": has {len(text)} characters; submit it in parts of at most {MOST_CHARACTERS}"])
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        return Documents([], [": is not UTF-8; save it as UTF-8"])
    text = text.removeprefix("\ufeff")
    ending = posixpath.splitext(source)[1].lower()
    if parse := _JSON.get(ending):
        return parse(text)
    return _parsed_by_content(text) if ending not in {".yaml", ".yml"} else _yaml(text)


def _parsed_by_content(text: str) -> Documents:
    """JSON Lines when the first line is JSON by itself and is not all; JSON when it is JSON; else YAML."""
    first, _, rest = text.strip().partition("\n")
    if first[:1] not in {"{", "["}:
        return _yaml(text)
    if rest and is_json(first):
        return json_line_documents(text)
    return json_documents(text) if is_json(text) else _yaml(text)


def _yaml(text: str) -> Documents:
    from cockpit.formats.yamltext import yaml_documents

    return yaml_documents(text)


def _job(document: Document, reading: Reading, defaults: Defaults) -> JobSpec:
    """The spec, as far as it can be read; what is wrong with it stays in `reading`."""
    given = JOB.given(document.value, "", reading)
    if given is None:
        return JOB.stand_in
    preset = {"time_limit_seconds": defaults.time_limit_seconds, "grace_seconds": defaults.grace_seconds}
    if (elastic := given.get("elastic")) is not None:
        given.setdefault("nodes", elastic.workers)
    if (resume := given.get("resume")) is not None and resume.elastic is not None and elastic is None:
        given["elastic"] = resume.sizes(given.get("nodes", 1))
    if pools := given.get("worker_pools"):
        given.setdefault("specs", (pools[0].spec,))
    if given.get("script") is not None:
        given = {"command": SCRIPT_NAME, "mode": Mode.SLURM, "home": HomeAccess.RW, **given}
    spec = JobSpec(**{**preset, **given}, limit_by_default="time_limit_seconds" not in given).as_accepted
    between = [] if reading.errors else [*conflict_errors(spec), *meeting_errors(spec)]
    reading.errors += [*field_errors(spec), *grammar_errors(spec), *between]
    return spec


def _repeated_names(documents: list[Document], specs: list[JobSpec]) -> list[str]:
    """A name is unique among a project's live jobs, so among those that are submitted together; but a singleton waits
    for its namesakes, and may have any."""
    first: dict[tuple[str | None, str], str] = {}
    errors = []
    for document, spec in zip(documents, specs, strict=True):
        if not isinstance(document.value, dict) or document.value.get("name") != spec.name:
            continue  # no readable name
        if any(each.kind is DependencyKind.SINGLETON for each in spec.dependencies):
            continue
        earlier = first.setdefault((spec.project, spec.name), document.where)
        if earlier != document.where:
            place = f"line {earlier[1:]}" if earlier.startswith(":") else earlier
            errors.append(
                f'{document.where}: name: "{visible(spec.name)}" is taken by the job at {place}; give another'
            )
    return errors
