"""The rows of a fleet's table: jobs and pods over all member clusters, with the fleet's state and the member's own."""

from __future__ import annotations

import msgspec

from cockpit.model.ids import JobId, Millis


class FleetJobRow(msgspec.Struct, frozen=True, kw_only=True):
    """A job on one cluster of a fleet. A job that is divided over clusters has a row for each of them, and a job that
    the fleet has bound to no cluster yet has one row without a cluster."""

    job: JobId
    """The id by which the open backend knows the job; 0: it is only known to its cluster."""
    name: str
    user: str
    cluster: str
    """The member; empty: the job is bound to none."""
    fleet_state: str
    """The fleet's word for the job's state; empty: no fleet has submitted it."""
    state: str
    """The member's own word for its state; empty: the member has not answered for it."""
    created_at: Millis | None
    """When the member's own object was created; without one, when the job was submitted."""
    adopted: bool
    """Whether the fleet controls the member's object; False: it was submitted to the member directly."""
    own: str = ""
    """The member's own name or number of its object; empty: none is known."""
    order: str = ""
    """The id under which the fleet has ordered it from the member, which the member's object carries; empty: none."""
    replicas: int = 0
    """The replicas that run on this cluster, or are to run there."""
    division: str = ""
    """How its replicas are spread over the clusters: `Gang`, all together or none; `Divided`, each cluster starts its
    share by itself; `Duplicated`, whole on each cluster; empty: it is not spread, or no policy says so."""
    ready: int = 0
    """Those of them that run."""
    reason: str = ""
    """Why it does not run there, as a sentence; empty: it does, or the reason is not known."""
    heard_at: Millis | None = None
    """When the member last answered for it; None: never."""
    silence: str = ""
    """Why the member does not answer at present, as a sentence; empty: it does."""


class FleetPodRow(msgspec.Struct, frozen=True, kw_only=True):
    """A pod, or another replica of a job, on one cluster of a fleet."""

    job: JobId
    """As in `FleetJobRow`."""
    name: str
    """The pod's name; of a replica that is no pod, its host name."""
    cluster: str
    ready: int
    """The containers that are ready."""
    containers: int
    status: str
    """The member's own word, such as Running or CrashLoopBackOff."""
    restarts: int
    created_at: Millis | None
    rank: int | None = None
    """The replica's rank in the fleet's job; None: unknown."""
    node: str = ""
    """The member's own name of its node; empty: it has none yet."""
    own: str = ""
    """As in `FleetJobRow`: the job's own name or number at the member."""


class FleetShown(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs and pods of all members that the user may see."""

    jobs: tuple[FleetJobRow, ...] = ()
    """In the order of the fleet's jobs, then those that were submitted to members directly."""
    pods: tuple[FleetPodRow, ...] = ()
    """By job and rank."""


class MemberObject(msgspec.Struct, frozen=True, kw_only=True):
    """A member's own object of a job, complete."""

    cluster: str
    own: str
    form: str
    """The language of the text: yaml, json or text."""
    text: str
    heard_at: Millis | None = None
    """When the member gave it; None: just now."""
