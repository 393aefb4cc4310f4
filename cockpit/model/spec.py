"""The specification of a job, as read from a user's request and with all defaults filled in."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from itertools import chain, islice, repeat

import msgspec
from msgspec.structs import replace

from cockpit.model.batchscript import BatchScript
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.image import HOST, Mpi
from cockpit.model.labels import Toleration
from cockpit.model.mounts import Algorithm, Dataset, Model, Reference, Volume
from cockpit.model.resilience import Elastic, JobRestart, Restart, Resume, WorkerRestart

WHOLE_CARD = 1000
"""Thousandths of a card: `card_milli` of one whole card."""

DAY_SECONDS = 86_400
NO_LIMIT_SECONDS = 3660 * DAY_SECONDS
"""The largest time limit, which stands for none: a job of another scheduler's cluster may run as long as it needs."""
DEFAULT_GRACE_SECONDS = 30


class Mode(StrEnum):
    """How the replicas of a job find each other. `launch.modes` turns it into environment variables and files."""

    STANDALONE = "standalone"
    """There is only one replica."""
    HOROVOD = "horovod"
    TENSORFLOW = "tensorflow"
    PYTORCH = "pytorch"
    DEEPSPEED = "deepspeed"
    SLURM = "slurm"
    """The command runs on the first node, as under sbatch; `srun` or `mpirun` in it starts processes on all nodes."""
    WORKER_POOLS = "worker-pools"
    """Replicas of up to four kinds, as on Vertex AI; the job ends when the primary ends."""


class Access(StrEnum):
    """What other members of its project may do with a job. `engine.access` says which operation needs which access."""

    RW = "rw"
    """All rights that the owner has."""
    RO = "ro"
    """See it and copy it."""
    NONE = "none"
    """No rights; the job is hidden from them."""


class HomeAccess(StrEnum):
    """How the submitter's home folder appears in the container."""

    NONE = "none"
    RO = "ro"
    RW = "rw"


class JobKind(StrEnum):
    """The kind of a job."""

    # Enum hashes the member's name in Python code, which takes its time in lists of a hundred thousand jobs.
    __hash__ = str.__hash__

    REGULAR = "regular"
    """One command."""
    BATCH = "batch"
    """Several tasks, each with its own command, algorithm and output folder."""
    INTERACTIVE = "interactive"
    """A session: a shell that users open, or a notebook."""


class HoldCards(StrEnum):
    """What happens to a failed job's cards while its container is held."""

    FREE = "free"
    KEEP = "keep"


class HoldReplicas(StrEnum):
    """Which failed replicas of a job are held on a Kubernetes cluster."""

    FIRST = "first"
    ALL = "all"


class HoldAllocation(StrEnum):
    """What happens to a failed job's allocation during its debug hold on a Slurm cluster."""

    KEEP = "keep"
    FREE = "free"
    """The allocation is released; a copy of the job's folder is kept, and the job is requeued in held state."""


class PriorityWord(StrEnum):
    """The urgency of a job, chosen by its owner. It selects the QOS of that name unless the job names one."""

    NORMAL = "normal"
    URGENT = "urgent"
    VERY_URGENT = "very-urgent"
    """Only an administrator may set it."""


class DependencyKind(StrEnum):
    """sbatch's --dependency."""

    AFTER_OK = "afterok"
    AFTER_ANY = "afterany"
    AFTER_NOT_OK = "afternotok"
    AFTER_CORR = "aftercorr"
    """Each task of an array waits for the task of the other array with the same index."""
    SINGLETON = "singleton"
    """It waits for every earlier job of the same user and name."""


def task_text(job: int, task: int | None) -> str:
    """Return the id of a task as `123_4`, or that of a job as `123`."""
    return str(job) if task is None else f"{job}_{task}"


class Dependency(msgspec.Struct, frozen=True):
    """A condition on the end of another job. A job starts once all its dependencies are met."""

    kind: DependencyKind
    job: JobId = JobId(0)
    """The job or array that it waits for; 0 for a singleton."""
    task: int | None = None
    """The index of the one task of the array that it waits for; None: the whole job or array."""

    @property
    def target(self) -> str:
        """The id as users write it: `123`, `123_4`; empty for a singleton."""
        return task_text(self.job, self.task) if self.job else ""


class Array(msgspec.Struct, frozen=True):
    """sbatch's --array: one job per index."""

    indices: tuple[int, ...]
    at_once: int = 0
    """The number of tasks that may run at the same time (`%limit`); 0: all."""


class NodeSpec(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """The resources that the job needs on each of its nodes. Several node specs of a job are alternatives."""

    cpus: int = 1
    memory_mib: int = 1024
    card_milli: int = 0
    """Thousandths of a card per node: below 1000 a share of one card, else whole cards (a multiple of 1000)."""
    card_models: tuple[str, ...] = ()
    """The acceptable card models; empty: any."""
    name: str = ""
    """The name of a spec in the catalogue, from which the engine takes the other fields; empty: none."""

    @property
    def whole_cards(self) -> int:
        """The number of whole cards per node."""
        return self.card_milli // WHOLE_CARD

    @property
    def shares_a_card(self) -> bool:
        """Whether it needs only a share of one card."""
        return 0 < self.card_milli < WHOLE_CARD


class TaskSpread(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """Tasks spread over any number of nodes, as many on each as fit: sbatch's `-n 24` without a fixed number of nodes.

    The job's node spec is then the least that each of its nodes must have, and `nodes` the least number of nodes.
    """

    tasks: int
    each: NodeSpec
    """The resources of one task; where an amount is 0, only the node spec asks for that resource."""
    most_nodes: int | None = None
    """The most nodes; None: any number."""
    most_per_node: int | None = None
    """The most tasks on one node; None: as many as fit."""
    cards: int = 0
    """Whole cards of all nodes together, at least one on each (`--gpus`); 0: the tasks and the node spec ask for cards,
    or nothing does."""
    each_card: NodeSpec = NodeSpec(cpus=0, memory_mib=0)
    """The least CPUs and memory of a node for each of its `cards`."""
    tasks_per_card: int | None = None
    """The most tasks for each of a node's `cards`; None: any number."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One task of a batch."""

    command: str
    algorithm: Algorithm | None = None


LAUNCHER = NodeSpec(cpus=1, memory_mib=1024)
"""The limits of the launcher of an elastic job. It is allocated nothing: it only starts the workers' processes."""
PARAMETER_SERVER = NodeSpec(cpus=1, memory_mib=1024)
"""The resources of each parameter server."""
MOST_HELPERS = 1000
"""The most parameter servers, or replicas of worker pools beside the primary, of one job."""


class WorkerPool(msgspec.Struct, frozen=True, kw_only=True):
    """Replicas of one kind. A pool without replicas only keeps the positions of those after it."""

    replicas: int = 0
    spec: NodeSpec = NodeSpec()
    command: str = ""
    """The command; empty: the job's."""
    image: str = ""
    """The image; empty: the job's."""
    machine_type: str = ""
    """A cloud's name of a machine type, which gives the bandwidth where that is known."""
    disk_type: str = ""
    disk_gib: int = 0
    bandwidth_gbps: int = 0
    """The outgoing bandwidth of one replica; 0: that of its machine type."""


class Search(StrEnum):
    """The order in which the combinations of a sweep are tried."""

    GRID = "grid"
    RANDOM = "random"


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter sweep: trials of the same job with different values of its parameters (`launch.sweeps`)."""

    parameters: dict[str, tuple[str, ...]]
    """The values of each parameter."""
    max_trials: int = 0
    """The most trials; 0: one for each combination."""
    parallel: int = 0
    """The number of trials that may run at the same time; 0: all."""
    search: Search = Search.GRID
    seed: int = 0


class DebugHold(msgspec.Struct, frozen=True, kw_only=True):
    """How a failed container is held for debugging."""

    cards: HoldCards = HoldCards.FREE
    allocation: HoldAllocation | None = None
    """What happens to the allocation on a Slurm cluster; None: it is kept."""
    window_seconds: int | None = None
    """How long the container is held; None: the administrator's default."""
    replicas: HoldReplicas = HoldReplicas.FIRST
    """Which replicas of several are held on a Kubernetes cluster; elsewhere a hold is of the whole job."""


class Suspension(msgspec.Struct, frozen=True, kw_only=True):
    """The postponed steps of the job, as `suspension` in a Karmada PropagationPolicy."""

    scheduling: bool = False
    """Whether the job starts only once its queue of the quota tree admits it."""


class Failover(msgspec.Struct, frozen=True, kw_only=True):
    """On a fleet: when a placement that its cluster cannot start is given up, as in a Karmada PropagationPolicy
    (`purgeMode: Immediately`)."""

    toleration_seconds: int = 30
    """How long the placement may lack free resources there before it is given up."""


class Hooks(msgspec.Struct, frozen=True, kw_only=True):
    """Scripts of the job that Bash runs in each of its containers. Empty: there is none."""

    before_start: str = ""
    """The script before the command. If it fails, the job fails and the command is not run."""
    after_end: str = ""
    """The script after the command, however that ended."""


class ExcludedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node where a job may not run for a time, because the check before its start failed there."""

    node: NodeName
    because: str
    until: Millis


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The specification of one job. Paths are absolute; sizes are MiB, times are seconds."""

    name: str
    labels: dict[str, str] = {}
    """Keys and values for the submitter's own use."""
    kind: JobKind = JobKind.REGULAR
    command: str = ""
    """The command; empty for a batch, whose tasks have their own, and for a session without a program."""
    output: str
    """The folder for its output."""
    algorithm: Algorithm | None = None
    tasks: tuple[Task, ...] = ()
    """The tasks of a batch. Task i writes into the folder `<name>-<i>` of `output`."""
    datasets: tuple[Dataset, ...] = ()
    models: tuple[Model, ...] = ()
    volumes: tuple[Volume, ...] = ()
    mode: Mode | None = None
    """The mode; None: standalone, or no mode for jobs of several nodes that need none (`launch.checks`)."""
    parameter_servers: int = 0
    """The number of parameter servers besides the nodes, with `PARAMETER_SERVER` resources each; 0: all-reduce."""
    worker_pools: tuple[WorkerPool, ...] = ()
    """The pools of the primary, workers, parameter or reduction servers, and evaluators, in this order. The first one's
    spec is the job's only node spec."""
    sweep: Sweep | None = None
    """A parameter sweep, whose trials become the tasks of an array."""
    nodes: int = 1
    specs: tuple[NodeSpec, ...] = (NodeSpec(),)
    spread: TaskSpread | None = None
    """How its tasks are spread over its nodes; None: one replica on each of `nodes` nodes. Only for jobs of Slurm
    clusters; excludes alternatives, helpers and `elastic`."""
    components: tuple[JobSpec, ...] = ()
    """Further jobs that start together with this one, each on nodes by its own request and partition; they may share
    nodes. Only for heterogeneous jobs of Slurm clusters."""
    node_names: tuple[str, ...] = ()
    """The nodes that it may run on; empty: any. Excludes `pool` and `driver_version`."""
    pool: str | None = None
    pool_nodes: tuple[str, ...] = ()
    """The nodes of its catalogue pool when the job was accepted. Only the engine sets it."""
    excluded: tuple[ExcludedNode, ...] = ()
    """The nodes where it may not run for now, since its check failed there. Only the engine sets it."""
    driver_version: str | None = None
    node_selector: dict[str, str] = {}
    """Labels that a node must have."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints of nodes that the job tolerates."""
    exclusive: bool = False
    """Whether no other job may run on its nodes."""
    terminal: bool = False
    """Whether its container is held after a failure, so that the owner can open a shell in it."""
    debug_hold: DebugHold = DebugHold()
    time_limit_seconds: int = DAY_SECONDS
    limit_by_default: bool = False
    """Whether the time limit was left open, so that a partition's default replaces it. Only in requests, never in a
    job's record."""
    grace_seconds: int = DEFAULT_GRACE_SECONDS
    """The time between the request to end and the kill."""
    hold: bool = False
    """Whether the job is held at submission, until it is released."""
    # Readable, so that programs find their settings; read-only, so that a job's mistake does not cost the user's files.
    home: HomeAccess = HomeAccess.RO
    image: str = HOST
    """The image, in one of the forms of `model.image`, or its name in the catalogue."""
    image_found: str = ""
    """The image that the name has in the catalogue; empty: none. Only the engine sets it and `image_mpi`."""
    image_mpi: Mpi | None = None
    """The implementation of MPI in the image, by the catalogue; None: unknown."""
    staging: bool = False
    """Whether its data sets are copied to fast storage of its nodes before the command runs."""
    env: dict[str, str] = {}
    project: str | None = None
    """The project; None: the submitter's own, which is named like the user."""
    # Closed by default: a job shows commands and logs, and only its owner knows what is in them.
    access: Access = Access.NONE
    account: str | None = None
    """The account; None: the user's default account."""
    partitions: tuple[str, ...] = ()
    """The partitions in any of which it may run; empty: the cluster's default partition."""
    qos: str | None = None
    """The QOS; None: that of the priority word, else the association's default."""
    priority: PriorityWord = PriorityWord.NORMAL
    nice: int = 0
    """A number that lowers the priority; only an administrator may set a negative one."""
    begin_at: Millis | None = None
    """The earliest start; None: at once."""
    deadline_at: Millis | None = None
    """The latest end. A queued job that can no longer end by then, by its time limit, fails unstarted."""
    dependencies: tuple[Dependency, ...] = ()
    array: Array | None = None
    reservation: str = ""
    """The advance reservation in which it runs; empty: none."""
    suspension: Suspension = Suspension()
    divide_over_clusters: bool = False
    """Whether its nodes may lie in several clusters of a fleet (`replicaSchedulingType: Divided`)."""
    failover: Failover = Failover()
    elastic: Elastic | None = None
    """The settings of an elastic job; None: it runs on exactly `nodes` nodes."""
    restart: Restart | None = None
    """Restarts after failures. Excludes `resume`, and `elastic`, which has policies of its own."""
    resume: Resume | None = None
    """Resuming from checkpoints. Needs `pool`; excludes `restart`, and an `elastic` other than its own."""
    hooks: Hooks = Hooks()
    script: BatchScript | None = None
    """The batch script that runs in place of `command`; `command` then only describes it for users and exports. Needs
    the mode `slurm`."""

    @property
    def end_grace_seconds(self) -> int:
        """The time between the request to end and the kill."""
        return self.grace_seconds if self.resume is None else self.resume.grace_seconds

    @property
    def is_best_effort(self) -> bool:
        """Whether its workers request no CPUs and memory."""
        return self.elastic is not None and self.elastic.best_effort

    @property
    def latest_start_at(self) -> Millis | None:
        """The latest start at which it can end by its deadline; None: it has no deadline."""
        # By the limit and not by a predicted run time: only the limit is sure to end it in time.
        return None if self.deadline_at is None else Millis(self.deadline_at - 1000 * self.time_limit_seconds)

    @property
    def as_accepted(self) -> JobSpec:
        """Return the spec for the queue: a best-effort job requests neither CPUs nor memory, all others are
        unchanged."""
        if not self.is_best_effort:
            return self
        # The cards stay: they cannot be overcommitted, so also a best-effort worker has to be given them.
        return replace(self, specs=tuple([replace(each, cpus=0, memory_mib=0) for each in self.specs]))

    @property
    def has_launcher(self) -> bool:
        """Whether its command runs in a launcher, the first replica, which starts the workers' processes."""
        return self.elastic is not None and self.resume is None and self.mode is Mode.HOROVOD

    @property
    def first_worker(self) -> int:
        """The rank of the first replica that is allocated resources."""
        return 1 if self.has_launcher else 0

    @property
    def checkpoint_seconds(self) -> int:
        """The least grace period that it needs for a checkpoint when it is evicted."""
        if self.resume is not None:
            return self.resume.grace_seconds
        return 0 if self.elastic is None else self.elastic.grace_seconds or 0

    @property
    def most_retries(self) -> int:
        """The most requeues after failures."""
        if self.resume is not None:
            return self.resume.max_resumes
        if self.elastic is not None and self.elastic.job_restart_policy is JobRestart.ON_FAILURE:
            return self.elastic.backoff_limit
        return self.restart.max_restarts if self.restart is not None else 0

    @property
    def most_worker_retries(self) -> int:
        """The most retries of the job and its workers together; 0: no worker is replaced."""
        elastic = self.elastic
        return 0 if elastic is None or elastic.worker_restart_policy is WorkerRestart.NEVER else elastic.backoff_limit

    @property
    def suspends(self) -> bool:
        """Whether the job is suspended when it loses too many workers, and resumes by itself."""
        return self.elastic is not None and self.resume is None

    @property
    def root_image(self) -> str:
        """The image of its containers, in one of the forms of `model.image`."""
        return self.image_found or self.image

    @property
    def helpers(self) -> tuple[NodeSpec, ...]:
        """The node specs of replicas after the first `nodes` ones: parameter servers and further worker pools.

        Of a spec that has too many, and is refused for it, only the first ones: it may ask for billions.
        """
        if self.parameter_servers:
            return (PARAMETER_SERVER,) * min(self.parameter_servers, MOST_HELPERS)
        if not self.worker_pools:
            return ()
        replicas = (repeat(pool.spec, min(pool.replicas, MOST_HELPERS)) for pool in self.worker_pools[1:])
        return tuple(islice(chain.from_iterable(replicas), MOST_HELPERS))

    @property
    def helper_count(self) -> int:
        """The number of parameter servers, or of replicas of further worker pools, also where they are too many."""
        return self.parameter_servers or sum(pool.replicas for pool in self.worker_pools[1:])

    @property
    def least_nodes(self) -> int:
        """The number of replicas that start together or not at all."""
        return self.nodes + len(self.helpers) if self.elastic is None else self.elastic.min_workers

    @property
    def most_nodes(self) -> int:
        """The most replicas that the job may have."""
        return self.nodes + len(self.helpers) if self.elastic is None else self.elastic.max_workers

    def algorithms(self) -> Iterator[tuple[str, Algorithm]]:
        """Yield the job's algorithm, or those of its tasks, each with the path of its field."""
        if self.algorithm is not None:
            yield "algorithm", self.algorithm
        for index, task in enumerate(self.tasks):
            if task.algorithm is not None:
                yield f"tasks[{index}].algorithm", task.algorithm

    def references(self) -> Iterator[tuple[str, Reference]]:
        """Yield everything that the job mounts except its output, each with the path of its field."""
        yield from self.algorithms()
        for field, mounts in (("datasets", self.datasets), ("models", self.models), ("volumes", self.volumes)):
            yield from ((f"{field}[{index}]", mount) for index, mount in enumerate(mounts))
