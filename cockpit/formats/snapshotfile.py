"""Everything that the core needs of a cluster at one moment, in one readable file: `cockpit snapshot FILE`."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cockpit.engine.state import ClusterState
from cockpit.errors import SpecErrors
from cockpit.model.accounts import ROOT, account_troubles, assoc_key
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import OCCUPYING
from cockpit.model.masking import masked, masked_spec
from cockpit.model.priority import Breakdown
from cockpit.model.reasons import Reason
from cockpit.model.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cockpit.model.accounts import Accounts
    from cockpit.model.job import Job
    from cockpit.model.node import Allocation


VERSION = 1
# With DEL; JSON itself escapes the control characters below the blank.
_NOT_ASCII = re.compile(r"[^\x00-\x7e]")


class SchedulerReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the cluster's own scheduler printed about a waiting job."""

    reason: Reason | None = None
    starts_at: Millis | None = None
    priorities: tuple[Breakdown, ...] = ()
    """The priorities in each of its partitions."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster at one moment."""

    version: int = VERSION
    cluster: str
    """The cluster's name."""
    at: Millis
    scheduler: str = msgspec.field(default="", name="told_by")
    """The name of the cluster's own scheduler: `Slurm`; empty: cockpit's own."""
    reports: dict[JobId, SchedulerReport] = msgspec.field(default_factory=dict, name="told")
    """By waiting job, where the scheduler is not cockpit's."""
    state: ClusterState


class _Version(msgspec.Struct):
    version: int


def without_secrets(state: ClusterState) -> ClusterState:
    """Return the state without the secrets in the environments of jobs, by the names of the variables and by values."""
    jobs = {job.id: replace(job, spec=masked_spec(job.spec)) for job in state.jobs.values()}
    return dataclasses.replace(state, jobs=jobs)


def write_snapshot(snapshot: Snapshot) -> str:
    """Return JSON, indented for people, without secrets, and in ASCII: a terminal takes nothing of it for a control
    sequence."""
    text = masked(msgspec.json.format(msgspec.json.encode(snapshot), indent=1).decode())
    return _NOT_ASCII.sub(_escape, text) + "\n"


def _escape(match: re.Match[str]) -> str:
    """Return a character as JSON escapes it: beyond 16 bits as two halves."""
    halves = match[0].encode("utf-16-be")
    return "".join(f"\\u{halves[at]:02x}{halves[at + 1]:02x}" for at in range(0, len(halves), 2))


def read_snapshot(text: str, source: str) -> Snapshot:
    """Read what `write_snapshot` writes. Raises `SpecErrors` for another file, or one of a later cockpit."""
    try:
        # The version first: a later format may not fit the types at all, and would give another error.
        version = msgspec.json.decode(text, type=_Version).version
        if version > VERSION:
            raise SpecErrors(
                [f"{source}: is of version {version}; this cockpit reads up to {VERSION}. Update cockpit."]
            )
        snapshot = msgspec.json.decode(text, type=Snapshot)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise SpecErrors([f"{source}: is no snapshot of a cluster: {error}"]) from None
    if errors := snapshot_errors(snapshot.state):
        raise SpecErrors([f"{source}: {error}" for error in errors])
    return snapshot


MOST_ERRORS = 20


def snapshot_errors(state: ClusterState) -> list[str]:
    """Return one sentence per contradiction, behind its place; of many only the first ones."""
    # One more than is shown, to know whether there are more. The generator stops there.
    errors = [error for _, error in zip(range(MOST_ERRORS + 1), _errors(state), strict=False)]
    return (
        [*errors[:MOST_ERRORS], "state: further contradictions are not listed"] if len(errors) > MOST_ERRORS else errors
    )


def _errors(state: ClusterState) -> Iterator[str]:
    """Yield the contradictions of a state."""
    yield from _misnamed("nodes", {name: node.name for name, node in state.nodes.items()})
    yield from _misnamed("jobs", {job: each.id for job, each in state.jobs.items()})
    yield from _misnamed("reservations", {name: each.name for name, each in state.reservations.items()})
    yield from _accounts(state.accounts)
    for key in state.usage:
        if key not in state.accounts.associations:
            yield f"state.usage: {_key(key)} matches no association; remove it or add the association"
    for job in state.jobs.values():
        yield from _job(job, state)


def _accounts(accounts: Accounts) -> Iterator[str]:
    at = "state.accounts"
    yield from _misnamed("accounts.associations", {key: each.key for key, each in accounts.associations.items()})
    yield from _misnamed("accounts.qos", {name: each.name for name, each in accounts.qos.items()})
    if assoc_key(ROOT) not in accounts.associations:
        yield f"{at}.associations: has no account root, which is above all others"
    for trouble in account_troubles(accounts):
        yield f"{at}: {_key(trouble.key)}: {trouble.field}: {trouble.sentence}"


def _misnamed(at: str, names: Mapping[object, object]) -> Iterator[str]:
    """Return entries whose key differs from their name."""
    for key, own in names.items():
        if key != own:
            yield f"state.{at}: the entry {_key(key)} has the key {_key(own)} in itself"


def _job(job: Job, state: ClusterState) -> Iterator[str]:
    """Yield the contradictions of a job."""
    at = f"state.jobs[{job.id}]"
    # What a job occupies is the placement of its attempt.
    if job.state in OCCUPYING and job.attempt is None:
        yield f"{at}: is {job.state} without an attempt"
    attempts = () if job.attempt is None else (*job.earlier, job.attempt)
    # Only these hold cards now; a node of an ended attempt may be gone.
    if job.attempt is not None and (job.state in OCCUPYING or job.kept):
        for part in job.attempt.placement:
            yield from _allocation(f"{at}.attempt", part, state)
    for attempt in attempts:
        there = len(job.spec.specs)
        if not 0 <= attempt.spec_index < there:
            yield f"{at}: attempt {attempt.number} is of alternative {attempt.spec_index}, and there are {there}"
    if not job.spec.specs:
        yield f"{at}.spec.specs: is empty"


def _allocation(at: str, part: Allocation, state: ClusterState) -> Iterator[str]:
    """Yield what is wrong with resources that a job holds."""
    node = state.nodes.get(part.node)
    if node is None:
        yield f"{at}: runs on node {visible(part.node)}, which is not among the nodes"
        return
    for each in part.slices:
        # The scheduler indexes the cards of a node with these numbers.
        if not 0 <= each.card < len(node.cards):
            yield f"{at}: has card {each.card} of node {visible(part.node)}, which has {len(node.cards)}"


def _key(key: object) -> str:
    return visible(str(key))
