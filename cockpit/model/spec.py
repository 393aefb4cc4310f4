"""What a person asks for: the job spec, after reading and with every default filled in."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from cockpit.model.batchscript import BatchScript
from cockpit.model.ids import JobId, Millis
from cockpit.model.image import HOST, Mpi
from cockpit.model.labels import Toleration
from cockpit.model.mounts import Algorithm, Dataset, Model, Reference, Volume
from cockpit.model.resilience import Elastic, JobRestart, Restart, Resume, WorkerRestart

WHOLE_CARD = 1000
"""Thousandths of a card: `card_milli` of one whole card."""

DAY_SECONDS = 86_400
DEFAULT_GRACE_SECONDS = 30


class Mode(StrEnum):
    """How the replicas of a job find each other. `launch.modes` makes of it what each is started with."""

    STANDALONE = "standalone"
    """There is only one."""
    HOROVOD = "horovod"
    TENSORFLOW = "tensorflow"
    PYTORCH = "pytorch"
    DEEPSPEED = "deepspeed"
    SLURM = "slurm"
    """As under sbatch: the command runs on the first node, and `srun` or `mpirun` in it on all."""
    WORKER_POOLS = "worker-pools"
    """Of up to four kinds, as on Vertex AI; the primary's end is the job's."""


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


class JobKind(StrEnum):
    """What a job is to do."""

    __hash__ = str.__hash__  # as equality; Enum's own is made by name, in Python, for each of a hundred thousand rows

    REGULAR = "regular"
    """One command."""
    BATCH = "batch"
    """Several tasks, each with a command, an algorithm and a folder for its output of its own."""
    INTERACTIVE = "interactive"
    """A session: a shell that people enter, or a notebook."""


class HoldCards(StrEnum):
    """What happens to a failed job's cards while its container is kept."""

    FREE = "free"
    KEEP = "keep"


class HoldAllocation(StrEnum):
    """What happens to a failed job's nodes on a cluster that gives whole allocations, as Slurm does."""

    KEEP = "keep"
    FREE = "free"
    """Given back; a copy of its folder is kept, and the job waits to be let go again."""


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
    name: str = ""
    """Of the catalogue's spec that this is; the engine fills in the rest when it accepts the job."""

    @property
    def whole_cards(self) -> int:
        return self.card_milli // WHOLE_CARD

    @property
    def shares_a_card(self) -> bool:
        return 0 < self.card_milli < WHOLE_CARD


class TaskSpread(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """Tasks on any number of nodes, as many on each as fit there: sbatch's `-n 24` without a fixed number of nodes.

    The job's node spec is then what each of its nodes must offer at least, and `nodes` how many they are at least.
    """

    tasks: int
    each: NodeSpec
    """What one task takes of its node; an amount of 0 is asked for by node alone."""
    most_nodes: int | None = None
    """None: any number."""
    most_per_node: int | None = None
    """How many tasks may share a node; None: as many as fit."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One task of a batch."""

    command: str
    algorithm: Algorithm | None = None


LAUNCHER = NodeSpec(cpus=1, memory_mib=1024)
"""What the launcher of an elastic job may use; it is given nothing, since it only starts the workers' processes."""
PARAMETER_SERVER = NodeSpec(cpus=1, memory_mib=1024)
"""The one size that a parameter server has."""


class WorkerPool(msgspec.Struct, frozen=True, kw_only=True):
    """Replicas of one kind. Without any it only keeps the positions of the pools behind it."""

    replicas: int = 0
    spec: NodeSpec = NodeSpec()
    command: str = ""
    """Empty: the job's."""
    image: str = ""
    """Empty: the job's."""
    machine_type: str = ""
    """As a cloud names it; says its bandwidth where that is known."""
    disk_type: str = ""
    disk_gib: int = 0
    bandwidth_gbps: int = 0
    """Of one replica, outward; 0: its machine type's."""


class Search(StrEnum):
    """In which order the combinations of a sweep are tried."""

    GRID = "grid"
    RANDOM = "random"


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """The same job with different values of its parameters, one trial for each; `launch.sweeps` says which."""

    parameters: dict[str, tuple[str, ...]]
    max_trials: int = 0
    """0: one for each combination."""
    parallel: int = 0
    """How many may run at the same time; 0: all."""
    search: Search = Search.GRID
    seed: int = 0


class DebugHold(msgspec.Struct, frozen=True, kw_only=True):
    """How a failed container is kept."""

    cards: HoldCards = HoldCards.FREE
    allocation: HoldAllocation | None = None
    """Only on a Slurm cluster; None: there it is kept."""
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


class Hooks(msgspec.Struct, frozen=True, kw_only=True):
    """Scripts of the job's own, run by Bash in each of its containers. Empty: there is none."""

    before_start: str = ""
    """Where it fails, so does the job, and its command is not run."""
    after_end: str = ""
    """However the command ended."""


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One job. Paths are absolute; sizes are MiB, times are seconds."""

    name: str
    labels: dict[str, str] = {}
    """The submitter's own keys and values, of which nothing depends."""
    kind: JobKind = JobKind.REGULAR
    command: str = ""
    """Empty: a batch, whose tasks have each its own, or a session without a program of its own."""
    output: str
    algorithm: Algorithm | None = None
    tasks: tuple[Task, ...] = ()
    """Of a batch. Task i writes into the folder `<name>-<i>` of `output`."""
    datasets: tuple[Dataset, ...] = ()
    models: tuple[Model, ...] = ()
    volumes: tuple[Volume, ...] = ()
    mode: Mode | None = None
    """None: standalone, but for jobs of several nodes that need none (`launch.checks`)."""
    parameter_servers: int = 0
    """Beside the nodes, of `PARAMETER_SERVER`'s size; 0: all-reduce."""
    worker_pools: tuple[WorkerPool, ...] = ()
    """The primary, workers, parameter or reduction servers, evaluators. The first one's spec is the job's only one."""
    sweep: Sweep | None = None
    """Its trials are the tasks of an array."""
    nodes: int = 1
    specs: tuple[NodeSpec, ...] = (NodeSpec(),)
    spread: TaskSpread | None = None
    """How its tasks share out over its nodes; None: a replica on each of `nodes` nodes. Of jobs of a Slurm cluster
    alone; excludes alternatives, helpers and `elastic`."""
    node_names: tuple[str, ...] = ()
    """Empty: any. Excludes `pool` and `driver_version`."""
    pool: str | None = None
    pool_nodes: tuple[str, ...] = ()
    """Of a pool of the catalogue: its nodes when the job was accepted. Written by the engine alone."""
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
    image: str = HOST
    """`model.image` says what it may be; a name may be one of the catalogue."""
    image_found: str = ""
    """What the name means in the catalogue; empty: it stands for itself. Written by the engine alone, as is its MPI."""
    image_mpi: Mpi | None = None
    """What the catalogue says of its MPI."""
    staging: bool = False
    """Its datasets are copied to fast storage of its nodes before the command runs."""
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
    restart: Restart | None = None
    """Excludes `resume` and `elastic`, which has policies of its own."""
    resume: Resume | None = None
    """Needs `pool`; excludes `restart`, and an `elastic` other than its own."""
    hooks: Hooks = Hooks()
    script: BatchScript | None = None
    """What runs in the place of `command`, which says the same for people and for other forms then. Needs the mode
    `slurm`."""

    @property
    def end_grace_seconds(self) -> int:
        """Between the request to end and the kill."""
        return self.grace_seconds if self.resume is None else self.resume.grace_seconds

    @property
    def is_best_effort(self) -> bool:
        return self.elastic is not None and self.elastic.best_effort

    @property
    def as_accepted(self) -> JobSpec:
        """Of best effort, the job without what its workers do not ask for; every other one itself."""
        if not self.is_best_effort:
            return self
        return replace(self, specs=tuple([replace(each, cpus=0, memory_mib=0) for each in self.specs]))

    @property
    def has_launcher(self) -> bool:
        """Whether its command runs in a replica of its own, the first, which starts the workers' processes."""
        return self.elastic is not None and self.resume is None and self.mode is Mode.HOROVOD

    @property
    def first_worker(self) -> int:
        """The rank of the first replica that holds something."""
        return 1 if self.has_launcher else 0

    @property
    def checkpoint_seconds(self) -> int:
        """So long it wants to have, at least, for a checkpoint where it has to go."""
        if self.resume is not None:
            return self.resume.grace_seconds
        return 0 if self.elastic is None else self.elastic.grace_seconds or 0

    @property
    def most_retries(self) -> int:
        """So often it begins again by itself after a failure."""
        if self.resume is not None:
            return self.resume.max_resumes
        if self.elastic is not None and self.elastic.job_restart_policy is JobRestart.ON_FAILURE:
            return self.elastic.backoff_limit
        return self.restart.max_restarts if self.restart is not None else 0

    @property
    def most_worker_retries(self) -> int:
        """So many begin again by themselves, of the job and its workers together; 0: no worker does."""
        elastic = self.elastic
        return 0 if elastic is None or elastic.worker_restart_policy is WorkerRestart.NEVER else elastic.backoff_limit

    @property
    def suspends(self) -> bool:
        """Whether it is suspended where it has to give up more workers than it can do without, to go on by itself."""
        return self.elastic is not None and self.resume is None

    @property
    def root_image(self) -> str:
        """What its containers begin with, as `model.image` writes it."""
        return self.image_found or self.image

    @property
    def helpers(self) -> tuple[NodeSpec, ...]:
        """What each replica behind the first `nodes` ones asks for, where not all are alike."""
        if self.parameter_servers:
            return (PARAMETER_SERVER,) * self.parameter_servers
        if not self.worker_pools:
            return ()
        return tuple([pool.spec for pool in self.worker_pools[1:] for _ in range(pool.replicas)])

    @property
    def least_nodes(self) -> int:
        """So many start together or not at all."""
        return self.nodes + len(self.helpers) if self.elastic is None else self.elastic.min_workers

    @property
    def most_nodes(self) -> int:
        return self.nodes + len(self.helpers) if self.elastic is None else self.elastic.max_workers

    def algorithms(self) -> Iterator[tuple[str, Algorithm]]:
        """Its own, or those of its tasks, each with the path of its field."""
        if self.algorithm is not None:
            yield "algorithm", self.algorithm
        for index, task in enumerate(self.tasks):
            if task.algorithm is not None:
                yield f"tasks[{index}].algorithm", task.algorithm

    def references(self) -> Iterator[tuple[str, Reference]]:
        """What it mounts but its output, each with the path of its field."""
        yield from self.algorithms()
        for field, given in (("datasets", self.datasets), ("models", self.models), ("volumes", self.volumes)):
            yield from ((f"{field}[{index}]", each) for index, each in enumerate(given))
