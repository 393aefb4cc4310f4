"""`orchestratorSpec.slurmSpec`: the JSON that training clusters are made from, or the slurmSpec by itself.

Source of its fields and values: Vertex AI's guide to training clusters; what values may be: slurm.conf(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from cockpit.errors import SpecErrors
from cockpit.formats.cluster.rule_checks import preemption_errors
from cockpit.formats.documents import UnreadableError, json_value
from cockpit.formats.kinds import Reading, described
from cockpit.formats.slurm.spec_fields import SPEC, SchedulingSpec, SpecFields
from cockpit.model.cluster import Cluster, Preemption, Priority, PriorityKind, Weights
from cockpit.model.text import visible

MOST_CHARACTERS = 16 * 1024 * 1024
OUTER = ("orchestratorSpec", "slurmSpec")
_OUTER_NAMES = {"orchestratorSpec": ("orchestratorSpec", "orchestrator_spec"), "slurmSpec": ("slurmSpec", "slurm_spec")}
_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|//\s*\.\.\.[^\n"{}]*?\.\.\.|//[^\n]*')
"""A text, or a comment to the end of the line. `// ... other settings ...` ends where its dots say so: an example
that lost its line ends stays readable."""
_PLACEHOLDER = re.compile(r"[:\[,]\s*([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\s*[,}\]]")


class SlurmSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The result of reading a slurmSpec."""

    cluster: Cluster
    """The rules; `home` is empty, since only the site knows the folder, and pools are the site's ids."""
    storage: str = ""
    """The storage that is to be /home."""
    warnings: tuple[str, ...] = ()
    """Fields without a meaning here, each behind its path."""
    at: str = ""
    """The path of the slurmSpec in its document, which begins the paths of errors."""


def read_slurm_spec(source: str, text: str) -> SlurmSpec:
    """Read a slurmSpec.

    `source` leads every error. Raises `SpecErrors` with all errors and their JSON paths.
    """
    document = _document(source, text)
    reading = Reading("/", "")
    value, at = _inner(document, reading)
    spec = SPEC.read(value, at, reading)
    prefix = f"{at}." if at else ""
    # No conflict is reported at a field that could not be read: its stand-in may be the cause.
    places = {error.partition(": ")[0] for error in reading.errors}
    between = [f"{prefix}{error}" for error in _conflicts(spec)]
    errors = [*reading.errors, *(error for error in between if error.partition(": ")[0] not in places)]
    if errors:
        raise SpecErrors([f"{visible(source, 200)}: {error}" for error in errors])
    return SlurmSpec(
        cluster=_cluster(spec),
        storage=spec.storage,
        warnings=(*reading.warnings, *(f"{prefix}{each}" for each in _idle(spec.scheduling))),
        at=at,
    )


def _document(source: str, text: str) -> object:
    """Parse the JSON of a spec, which may have comments. Raises `SpecErrors`."""
    if len(text) > MOST_CHARACTERS:
        raise SpecErrors([f"{visible(source, 200)}: has {len(text)} characters; no slurmSpec is that long"])
    # Texts are matched too, and put back, so that `//` within one stays.
    # A byte order mark is no JSON, and editors on Windows write one.
    plain = _COMMENT.sub(lambda match: match[1] or " ", text.removeprefix("\ufeff"))
    try:
        return json_value(plain)
    except UnreadableError as error:
        left = sorted(set(_PLACEHOLDER.findall(plain)))
        advice = f"; write values for the placeholders {', '.join(left)}" if left else ""
        raise SpecErrors([f"{visible(source, 200)}: {error}{advice}"]) from None


def _inner(document: object, reading: Reading) -> tuple[object, str]:
    """Return the slurmSpec and its path. Fields beside it are named in warnings."""
    at = ""
    for name in OUTER:
        if not isinstance(document, dict):
            reading.wrong(at, f"is {described(document)}; write a table with slurmSpec in it")
            return {"partitions": []}, at
        name_used = next((each for each in _OUTER_NAMES[name] if each in document), None)
        # Either of the outer names may be missing: the slurmSpec alone is accepted, too.
        if name_used is None:
            continue
        beside = [each for each in document if each != name_used]
        reading.warnings += [f"{at}{visible(each)}: is not the slurmSpec, and counts for nothing" for each in beside]
        document, at = document[name_used], f"{at}{name_used}."
    return document, at.removesuffix(".")


def _conflicts(spec: SpecFields) -> Iterator[str]:
    """Yield what is wrong between the fields."""
    seen: set[str] = set()
    for index, partition in enumerate(spec.partitions):
        if partition.name in seen:
            yield f"partitions[{index}].id: {partition.name} is the id of an earlier partition"
        seen.add(partition.name)
        if spec.login_pool and spec.login_pool in partition.pools:
            yield f"partitions[{index}].node_pool_ids: {spec.login_pool} is the login pool, whose nodes run no jobs"
    for error in preemption_errors(_preemption(spec.scheduling), kind="preempt_type", mode="preempt_mode"):
        yield f"scheduling.{error}"


def _idle(spec: SchedulingSpec) -> Iterator[str]:
    """Yield settings that count for nothing beside the others."""
    if spec.priority_type == PriorityKind.BASIC and _weights(spec) != Weights():
        yield "scheduling.priority_type: with priority/basic the weights count for nothing"
    # slurm.conf(5), PreemptExemptTime: only these two modes honour it.
    if spec.exempt_seconds and not {"REQUEUE", "CANCEL"} & set(spec.preempt_mode):
        yield "scheduling.preempt_exempt_time: counts only with REQUEUE or CANCEL"


def _weights(spec: SchedulingSpec) -> Weights:
    """Return the weights of a spec."""
    return Weights(
        age=spec.age,
        assoc=spec.assoc,
        fairshare=spec.fairshare,
        job_size=spec.job_size,
        partition=spec.partition,
        qos=spec.qos,
        tres=spec.tres,
    )


def _preemption(spec: SchedulingSpec) -> Preemption:
    return Preemption(kind=spec.preempt_type, mode=spec.preempt_mode, exempt_seconds=spec.exempt_seconds)


def _cluster(spec: SpecFields) -> Cluster:
    """Return the rules of a spec; they are not mutable."""
    return Cluster(
        partitions=spec.partitions,
        enforce=spec.accounting.enforce,
        priority=Priority(kind=PriorityKind(spec.scheduling.priority_type), weights=_weights(spec.scheduling)),
        preemption=_preemption(spec.scheduling),
        login_pool=spec.login_pool,
        prolog_scripts=spec.prolog_scripts,
        epilog_scripts=spec.epilog_scripts,
        # Such clusters are made by their provider from the file, so the file is where they are changed.
        mutable=False,
    )
