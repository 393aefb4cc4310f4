"""Everything that the core needs of a cluster at one moment, in one readable file: `cockpit snapshot FILE`."""

from __future__ import annotations

import msgspec

from cockpit.engine.state import ClusterState
from cockpit.errors import SpecErrors
from cockpit.model.ids import JobId, Millis
from cockpit.model.priority import Breakdown
from cockpit.model.reasons import Reason

VERSION = 1


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


def write_snapshot(snapshot: Snapshot) -> str:
    """JSON, indented for people."""
    return msgspec.json.format(msgspec.json.encode(snapshot), indent=1).decode() + "\n"


def read_snapshot(text: str, source: str) -> Snapshot:
    """The inverse. Raises `SpecErrors` for a file that is none, or one of a later cockpit."""
    try:
        version = msgspec.json.decode(text, type=_Version).version
        if version > VERSION:
            raise SpecErrors(
                [f"{source}: is of version {version}; this cockpit reads up to {VERSION}. Update cockpit."]
            )
        return msgspec.json.decode(text, type=Snapshot)
    except msgspec.MsgspecError as error:
        raise SpecErrors([f"{source}: is no snapshot of a cluster: {error}"]) from None
