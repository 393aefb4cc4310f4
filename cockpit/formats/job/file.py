"""Reads job files: YAML, JSON, or JSON Lines with one job in each line. One error anywhere refuses the whole file.

1. Parse the text into plain values, one document for each job (`parsed`).
2. Read each document by the table of fields (`JOB`), add defaults and derived fields, and check all rules (`_job`).
3. Check that no name is used twice.
4. Return the specs, or raise all errors of all jobs together.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable

import msgspec

from cockpit.errors import SpecErrors
from cockpit.formats.documents import Document, Documents, is_json, json_documents, json_line_documents
from cockpit.formats.job.fields import JOB
from cockpit.formats.kinds import Reading, Schema
from cockpit.launch.batchscript import SCRIPT_NAME
from cockpit.launch.checks import grammar_errors, meeting_errors
from cockpit.model.ids import Millis
from cockpit.model.rules.conflicts import conflict_errors
from cockpit.model.rules.spec import field_errors
from cockpit.model.spec import DAY_SECONDS, DEFAULT_GRACE_SECONDS, DependencyKind, HomeAccess, JobKind, JobSpec, Mode
from cockpit.model.text import visible

ReadJobs = Callable[[str, str, str], list[JobSpec]]
"""Function that reads jobs: name of the source, text, absolute folder of relative paths."""
MOST_CHARACTERS = 64 * 1024 * 1024
_JSON = {".json": json_documents, ".jsonl": json_line_documents, ".ndjson": json_line_documents}


class Defaults(msgspec.Struct, frozen=True, kw_only=True):
    """Defaults for missing fields that depend on the administrator's settings and on the user."""

    time_limit_seconds: int = DAY_SECONDS
    grace_seconds: int = DEFAULT_GRACE_SECONDS
    home_folder: str = ""
    """Home folder, for `~` in paths; empty: `~` is refused."""
    now: Millis | None = None
    """Present time, for moments such as `now+2h`; None: they are refused."""


def read_jobs(source: str, text: str, folder: str, *, defaults: Defaults) -> list[JobSpec]:
    """Return all jobs of a text, at least one.

    `source`: its name, whose ending decides the format; without a known ending the content does. `folder`: absolute
    folder of relative paths. Raises `SpecErrors` with all errors of all jobs, each of which begins with source, place
    and field: `jobs.jsonl:17: specs[0].memory: …`.
    """
    documents = parsed(source, text)  # step 1
    errors = list(documents.errors)
    specs = []
    for document in documents.items:
        reading = Reading(folder, defaults.home_folder, defaults.now)
        specs.append(_job(document, reading, defaults))  # step 2
        errors += [f"{document.where}: {error}" for error in reading.errors]
    errors += _repeated_names(documents.items, specs)  # step 3
    if not specs and not errors:
        errors = [": holds no job; write name, command and output"]
    if errors:
        raise SpecErrors([f"{visible(source, 200)}{error}" for error in errors])
    return specs


def job_values(source: str, text: str) -> dict[str, object]:
    """Return the plain fields of a text with one job, without reading them. Raises `SpecErrors` for any other text."""
    documents = parsed(source, text)
    values = [each.value for each in documents.items]
    if documents.errors or len(values) != 1 or not isinstance(values[0], dict):
        errors = documents.errors or [": write the fields of one job that differ, such as time_limit: 2h"]
        raise SpecErrors([f"{visible(source, 200)}{error}" for error in errors])
    return values[0]


def parsed(source: str, text: str) -> Documents:
    """Return the plain values of a text in YAML, JSON or JSON Lines, with the errors of what cannot be parsed."""
    if len(text) > MOST_CHARACTERS:
        return Documents([], [f": has {len(text)} characters; submit it in parts of at most {MOST_CHARACTERS}"])
    # Lone surrogates are what Python makes of bytes that are not UTF-8.
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        return Documents([], [": is not UTF-8; save it as UTF-8"])
    text = text.removeprefix("\ufeff")
    ending = posixpath.splitext(source)[1].lower()
    if parse := _JSON.get(ending):
        return parse(text)
    return _parsed_by_content(text) if ending not in {".yaml", ".yml"} else _yaml(text)


def _parsed_by_content(text: str) -> Documents:
    """Parse a text of unknown format.

    It is JSON Lines if its first line is JSON and others follow, JSON if the whole is JSON, else YAML.
    """
    first, _, rest = text.strip().partition("\n")
    if first[:1] not in {"{", "["}:
        return _yaml(text)
    # One complete job on the first line and more below: each line is a job.
    if rest and is_json(first):
        return json_line_documents(text)
    return json_documents(text) if is_json(text) else _yaml(text)


def _yaml(text: str) -> Documents:
    from cockpit.formats.yamltext import yaml_documents

    return yaml_documents(text)


def _job(document: Document, reading: Reading, defaults: Defaults) -> JobSpec:
    """Return the spec of a document, as far as it can be read; its errors are added to `reading`."""
    given = JOB.given(document.value, "", reading)
    if given is None:
        return JOB.stand_in
    preset = {"time_limit_seconds": defaults.time_limit_seconds, "grace_seconds": defaults.grace_seconds}
    if (elastic := given.get("elastic")) is not None:
        # Derived fields come before the rules, which see the job as the engine will.
        given.setdefault("nodes", elastic.workers)
    if (resume := given.get("resume")) is not None and resume.elastic is not None and elastic is None:
        given["elastic"] = resume.sizes(given.get("nodes", 1))
    if pools := given.get("worker_pools"):
        given.setdefault("specs", (pools[0].spec,))
    if given.get("script") is not None:
        # Only defaults: a field that the file gives stays, and a rule refuses what does not fit.
        given = {"command": SCRIPT_NAME, "mode": Mode.SLURM, "home": HomeAccess.RW, **given}
    spec = JobSpec(**{**preset, **given}, limit_by_default="time_limit_seconds" not in given).as_accepted
    # Conflicts between fields only if each was read: a stand-in value could seem to conflict with another field.
    between = [] if reading.errors else [*conflict_errors(spec), *meeting_errors(spec)]
    reading.errors += [*field_errors(spec), *grammar_errors(spec), *between]
    return spec


def _repeated_names(documents: list[Document], specs: list[JobSpec]) -> list[str]:
    """Return an error for each name that two jobs of one project have.

    Live jobs of a project must have different names. A job with the dependency `singleton` may share a name, since it
    waits for the jobs of the same name.
    """
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


SPEC_VERSION = 1
"""The version of the job file's format."""


def job_schema() -> Schema:
    """Return the JSON Schema 2020-12 of one job.

    It accepts all that `read_jobs` accepts; what a schema cannot say (the command's grammar, fields that exclude each
    other, characters that cannot be seen), `read_jobs` refuses beyond it.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:cockpit-cluster:job:{SPEC_VERSION}",
        "title": "A cockpit job",
        **JOB.schema(),
        "if": {"properties": {"kind": {"enum": [str(JobKind.BATCH), str(JobKind.INTERACTIVE)]}}, "required": ["kind"]},
        "else": {"required": ["command"]},
    }
