"""What can still be changed of a job that has started: the fields, why some cannot, and what their texts mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from cockpit.formats.typed_values import LIMIT_EXPECTED, limit_text, read_limit
from cockpit.model.asking import WantedLimit
from cockpit.model.capabilities import Ability
from cockpit.model.rules.bounds import NODES
from cockpit.model.spec import NO_LIMIT_SECONDS

if TYPE_CHECKING:
    from cockpit.model.capabilities import Capabilities
    from cockpit.model.jobdetail import JobDetail
    from cockpit.model.spec import JobSpec

LIMIT: Final = "time_limit"
MIN, NOW, MAX = WORKERS = ("min_workers", "workers", "max_workers")
PRIORITY: Final = "priority"
_WORKERS_ABOUT: Final = {
    MIN: "The fewest workers with which it runs.",
    NOW: "The workers that it has now, between the other two.",
    MAX: "The most workers to which it grows.",
}


class RunningField(NamedTuple):
    """A field of a running job."""

    path: str
    text: str
    """Its present value."""
    about: str = ""
    why_not: str = ""
    """Why it cannot be changed; empty: it can."""


class Changes(NamedTuple):
    """The changes that the texts of the fields mean; a field without a change is None."""

    limit: WantedLimit | None
    spec: JobSpec | None
    """The job with other workers."""
    errors: Mapping[str, str]
    """Error texts by the path of the field."""


def running_fields(detail: JobDetail, capabilities: Capabilities) -> list[RunningField]:
    """Return the fields in their order on the screen. `capabilities`: what the job's cluster can do."""
    spec = detail.job.spec
    limit = limit_text(WantedLimit(spec.time_limit_seconds)) if spec.time_limit_seconds < NO_LIMIT_SECONDS else "none"
    fields = [RunningField(LIMIT, limit, f"Write {LIMIT_EXPECTED}.", capabilities.why_not("set_time_limit"))]
    if spec.elastic is None:
        why_not = "Only elastic jobs change their number of nodes while they run."
        fields.append(RunningField("nodes", str(spec.nodes), why_not=why_not))
    else:
        why_not = capabilities.why_not(Ability.RESIZE)
        fields += [
            RunningField(path, str(getattr(spec.elastic, path)), _WORKERS_ABOUT[path], why_not) for path in WORKERS
        ]
    started = "It orders the queue, which this job has left."
    word = str(spec.priority) if spec.qos is None else f"{spec.priority}, QOS {spec.qos}"
    return [*fields, RunningField(PRIORITY, word, why_not=capabilities.why_not("set_priority") or started)]


def read_changes_of(detail: JobDetail, fields: Mapping[str, RunningField], texts: Mapping[str, str]) -> Changes:
    """Return what the texts would change. `fields` and `texts` are by path."""
    changed = {path: text.strip() for path, text in texts.items() if text.strip() != fields[path].text}
    errors: dict[str, str] = {}
    limit = None
    if LIMIT in changed and (limit := read_limit(changed[LIMIT])) is None:
        errors[LIMIT] = f"is no time limit; write {LIMIT_EXPECTED}"
    spec = _with_workers(detail.job.spec, texts, errors) if changed.keys() & {*WORKERS} else None
    return Changes(limit, spec if not errors else None, errors)


def _with_workers(spec: JobSpec, texts: Mapping[str, str], errors: dict[str, str]) -> JobSpec | None:
    """Return the job with the workers that the texts name; add an error for each that cannot be."""
    numbers: dict[str, int] = {}
    for path in WORKERS:
        text = texts[path].strip()
        if text.isascii() and text.isdigit() and NODES.low <= int(text[:9]) <= NODES.high:
            numbers[path] = int(text[:9])
        else:
            errors[path] = f"is no number of workers; write one from {NODES.low} to {NODES.high}"
    if errors or spec.elastic is None:
        return None
    if numbers[MIN] > numbers[MAX]:
        errors[MIN] = f"is more than the {numbers[MAX]} that it may have at most"
    elif not numbers[MIN] <= numbers[NOW] <= numbers[MAX]:
        errors[NOW] = f"is not between {numbers[MIN]} and {numbers[MAX]}"
    return replace(spec, nodes=numbers[NOW], elastic=replace(spec.elastic, **numbers))
