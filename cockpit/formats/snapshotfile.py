"""Everything that the core needs of a cluster at one moment, in one readable file: `cockpit snapshot FILE`."""

from __future__ import annotations

import dataclasses
import re

import msgspec
from msgspec.structs import replace

from cockpit.engine.state import ClusterState
from cockpit.errors import SpecErrors
from cockpit.formats.snapshotchecks import snapshot_errors
from cockpit.model.ids import JobId, Millis
from cockpit.model.priority import Breakdown
from cockpit.model.reasons import Reason
from cockpit.model.spec import JobSpec

VERSION = 1
MASK = "***"
_NOT_ASCII = re.compile(r"[^\x00-\x7e]")
_SECRET = re.compile(r"token|secret|passw|credential|api_?key|access_?key|private_?key|auth", re.IGNORECASE)


class Told(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the cluster's own scheduler said of a waiting job."""

    reason: Reason | None = None
    starts_at: Millis | None = None
    priorities: tuple[Breakdown, ...] = ()
    """In each of its partitions."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster at one moment."""

    version: int = VERSION
    cluster: str
    """Its name."""
    at: Millis
    told_by: str = ""
    """Whose scheduler it has: `Slurm`; empty: cockpit's own."""
    told: dict[JobId, Told] = {}
    """By waiting job, where the scheduler is another's."""
    state: ClusterState


class _Version(msgspec.Struct):
    version: int


def without_secrets(state: ClusterState) -> ClusterState:
    """The same cluster; values of jobs' environments whose names say that they are secret are gone."""
    jobs = {job.id: replace(job, spec=_without_secrets(job.spec)) for job in state.jobs.values()}
    return dataclasses.replace(state, jobs=jobs)


def _without_secrets(spec: JobSpec) -> JobSpec:
    if not any(map(_SECRET.search, spec.env)):
        return spec
    return replace(spec, env={name: MASK if _SECRET.search(name) else value for name, value in spec.env.items()})


def write_snapshot(snapshot: Snapshot) -> str:
    """JSON, indented for people, in ASCII: no terminal takes anything of it for an order."""
    text = msgspec.json.format(msgspec.json.encode(snapshot), indent=1).decode()
    return _NOT_ASCII.sub(_escaped, text) + "\n"


def _escaped(found: re.Match[str]) -> str:
    """As JSON has it: what lies beyond 16 bits in two halves."""
    halves = found[0].encode("utf-16-be")
    return "".join(f"\\u{halves[at]:02x}{halves[at + 1]:02x}" for at in range(0, len(halves), 2))


def read_snapshot(text: str, source: str) -> Snapshot:
    """The inverse. Raises `SpecErrors` for a file that is none, or one of a later cockpit."""
    try:
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
