"""What a person asks for: the job spec, after reading and with every default filled in."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.model.ids import JobId, Millis
from cockpit.model.labels import Toleration

WHOLE_CARD = 1000
"""Thousandths of a card: `card_milli` of one whole card."""

DAY_SECONDS = 86_400
DEFAULT_GRACE_SECONDS = 30


class Access(StrEnum):
    """What other members of its project may do with a job. `engine.access` says which act needs which."""

    RW = "rw"
    """All that its owner may."""
    RO = "ro"
    """Look, and copy it."""
    NONE = "none"
    """Nothing: to them it is not there."""


class HomeAccess(StrEnum):
    """How the submitter's home folder appears in the container."""

    NONE = "none"
    RO = "ro"
    RW = "rw"


class HoldCards(StrEnum):
    """What happens to a failed job's cards while its container is kept."""

    FREE = "free"
    KEEP = "keep"


class PriorityWord(StrEnum):
    """How urgent its owner says it is; maps to the QOS of that name unless the job names one."""

    NORMAL = "normal"
    URGENT = "urgent"
    VERY_URGENT = "very-urgent"
    """Only an administrator gives it."""


class DependencyKind(StrEnum):
    """sbatch's --dependency."""

    AFTER_OK = "afterok"
    AFTER_ANY = "afterany"
    AFTER_NOT_OK = "afternotok"
    AFTER_CORR = "aftercorr"
    """Each task of an array after the same task of the other."""
    SINGLETON = "singleton"
    """After every earlier job of the same user and name."""


def task_text(job: int, task: int | None) -> str:
    """`123_4`, or `123` without a task."""
    return str(job) if task is None else f"{job}_{task}"


class Dependency(msgspec.Struct, frozen=True):
    """One condition on another job; all conditions of a job must come true."""

    kind: DependencyKind
    job: JobId = JobId(0)
    """The job or array; 0 for a singleton."""
    task: int | None = None
    """The index of the one task of the array that is meant; None: all of them."""

    @property
    def target(self) -> str:
        """As a person writes it: `123`, `123_4`; empty for a singleton."""
        return task_text(self.job, self.task) if self.job else ""


class Array(msgspec.Struct, frozen=True):
    """sbatch's --array: one job per index."""

    indices: tuple[int, ...]
    at_once: int = 0
    """How many may run at the same time (`%limit`); 0: all."""


class NodeSpec(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """What one node of the job must offer. Several in a job are equal alternatives."""

    cpus: int = 1
    memory_mib: int = 1024
    card_milli: int = 0
    """Thousandths of a card per node: below 1000 a share of one card, else whole cards (a multiple of 1000)."""
    card_models: tuple[str, ...] = ()
    """Any of these; empty means any model."""

    @property
    def whole_cards(self) -> int:
        return self.card_milli // WHOLE_CARD

    @property
    def shares_a_card(self) -> bool:
        return 0 < self.card_milli < WHOLE_CARD


class Algorithm(msgspec.Struct, frozen=True, kw_only=True):
    """The folder mounted at /workspace/algorithm."""

    path: str
    read_only: bool = False


class Volume(msgspec.Struct, frozen=True, kw_only=True):
    """A writable folder mounted at /workspace/volume/<name>."""

    name: str
    path: str


class DebugHold(msgspec.Struct, frozen=True, kw_only=True):
    """How a failed container is kept."""

    cards: HoldCards = HoldCards.FREE
    window_seconds: int | None = None
    """None: the administrator's default."""


class Suspension(msgspec.Struct, frozen=True, kw_only=True):
    """What is put off, as in a PropagationPolicy."""

    scheduling: bool = False
    """The job starts only out of a queue of the quota tree: never past it."""


class Failover(msgspec.Struct, frozen=True, kw_only=True):
    """On a fleet: what becomes of a placement that fails at its cluster, as in a PropagationPolicy
    (`purgeMode: Immediately`)."""

    toleration_seconds: int = 30
    """So long it may stay without room there before it is given up."""


class Elastic(msgspec.Struct, frozen=True, kw_only=True):
    """A job that runs with more or fewer workers, one on each of its nodes, as there is room for them."""

    workers: int
    """So many it takes when it starts, if they are free; the job's `nodes`."""
    min_workers: int = 1
    """With fewer it does not run."""
    max_workers: int
    """It grows no further."""
    allow_scaling: bool = True
    """It may grow while it runs."""


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One job. Paths are absolute; sizes are MiB, times are seconds."""

    name: str
    command: str
    output: str
    algorithm: Algorithm | None = None
    volumes: tuple[Volume, ...] = ()
    nodes: int = 1
    specs: tuple[NodeSpec, ...] = (NodeSpec(),)
    node_names: tuple[str, ...] = ()
    """Empty: any. Excludes `pool` and `driver_version`."""
    pool: str | None = None
    driver_version: str | None = None
    node_selector: dict[str, str] = {}
    """Labels that a node must have."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints of nodes that it puts up with."""
    exclusive: bool = False
    terminal: bool = False
    debug_hold: DebugHold = DebugHold()
    time_limit_seconds: int = DAY_SECONDS
    limit_by_default: bool = False
    """Nobody chose the time limit: a partition's default takes its place. Only in requests, never in a job's record."""
    grace_seconds: int = DEFAULT_GRACE_SECONDS
    """Between the request to end and the kill."""
    hold: bool = False
    """Submit held: queued, with the reason Held, until released."""
    home: HomeAccess = HomeAccess.RO
    env: dict[str, str] = {}
    project: str | None = None
    """None: the submitter's own project, named like the user."""
    access: Access = Access.NONE
    account: str | None = None
    """None: the user's default account."""
    partitions: tuple[str, ...] = ()
    """Any of these; empty: the cluster's default partition."""
    qos: str | None = None
    """None: what the priority word says, else the association's default."""
    priority: PriorityWord = PriorityWord.NORMAL
    nice: int = 0
    """Taken off the priority; only an administrator gives a negative one."""
    begin_at: Millis | None = None
    """Not before."""
    deadline_at: Millis | None = None
    """It must be able to end by then, else it is ended unstarted."""
    dependencies: tuple[Dependency, ...] = ()
    array: Array | None = None
    reservation: str = ""
    suspension: Suspension = Suspension()
    divide_over_clusters: bool = False
    """On a fleet its nodes may lie in several clusters (`replicaSchedulingType: Divided`)."""
    failover: Failover = Failover()
    elastic: Elastic | None = None
    """None: it runs on exactly `nodes` nodes."""

    @property
    def least_nodes(self) -> int:
        """So many start together or not at all."""
        return self.nodes if self.elastic is None else self.elastic.min_workers

    @property
    def most_nodes(self) -> int:
        return self.nodes if self.elastic is None else self.elastic.max_workers
