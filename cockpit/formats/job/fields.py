"""The fields of a job file, once: reading, writing, advice on misspelt names and the JSON Schema follow this table."""

from __future__ import annotations

from cockpit.formats.job.batchscript import BATCH_SCRIPT
from cockpit.formats.job.conditions import Dependencies, Indices, Moment
from cockpit.formats.job.life import ELASTIC, HOOKS, RESTART, RESUME
from cockpit.formats.job.mounts import ALGORITHM, DATASET, MODEL, TASK, VOLUME
from cockpit.formats.job.pools import SWEEP, pool_table
from cockpit.formats.kinds import Choice, Environment, Flag, ImageText, ListOf, Path, Reading, Single, Text, WholeNumber
from cockpit.formats.labels import Labels, TolerationText
from cockpit.formats.measures import Cards, Duration, Memory
from cockpit.formats.tables import Field, Table
from cockpit.model.names import NAME_LENGTH, NAME_PATTERN
from cockpit.model.rules.bounds import (
    CPUS,
    GRACE_SECONDS,
    LABEL_LENGTH,
    MOST_CARD_MODELS,
    MOST_LABELS,
    MOST_PARTITIONS,
    MOST_PINS,
    MOST_SPECS,
    NICE,
    NODES,
    PARAMETER_SERVERS,
    TIME_LIMIT_SECONDS,
    TOLERATION_SECONDS,
    WINDOW_SECONDS,
)
from cockpit.model.rules.conflicts import MOST_BATCH_TASKS
from cockpit.model.rules.mounts import MOST_MOUNTS
from cockpit.model.rules.pools import MOST_POOLS
from cockpit.model.rules.text import COMMAND_BYTES
from cockpit.model.spec import (
    Access,
    DebugHold,
    Failover,
    HoldAllocation,
    HoldCards,
    HomeAccess,
    JobKind,
    JobSpec,
    Mode,
    NodeSpec,
    PriorityWord,
    Suspension,
)

_NAME = Text(minLength=1, maxLength=NAME_LENGTH, pattern=NAME_PATTERN)
_LABEL = Text(minLength=1, maxLength=LABEL_LENGTH)


class _NodeSpecs(Table[NodeSpec]):
    """Reads node specs; the name of one stands for the fields of a catalogue entry."""

    def read(self, value: object, at: str, reading: Reading) -> NodeSpec:
        spec = super().read(value, at, reading)
        if spec.name and spec != NodeSpec(name=spec.name):
            reading.wrong(
                f"{at}.name", "cannot be combined with other fields, which the catalogue gives; remove it or them"
            )
        return spec

    def write(self, value: NodeSpec) -> dict[str, object]:
        return super().write(NodeSpec(name=value.name) if value.name else value)


NODE_SPEC = _NodeSpecs(
    NodeSpec,
    [
        Field(name="cpus", attribute="cpus", kind=WholeNumber(CPUS), about="CPUs per node."),
        Field(name="memory", attribute="memory_mib", kind=Memory(), about="Memory per node; without a unit, MiB."),
        Field(name="cards", attribute="card_milli", kind=Cards(), about="Cards per node, or a share of one below 1."),
        Field(
            name="card_models",
            attribute="card_models",
            kind=ListOf(_LABEL, MOST_CARD_MODELS),
            about="Acceptable card models; by default any.",
        ),
        Field(
            name="card_model",
            attribute="card_models",
            kind=Single(_LABEL),
            alias=True,
            about="The card model, instead of card_models.",
        ),
        Field(
            name="name",
            attribute="name",
            kind=_NAME,
            about="A spec of the catalogue, instead of the other fields.",
        ),
    ],
    short="name",
)


DEBUG_HOLD = Table(
    DebugHold,
    [
        Field(
            name="cards",
            attribute="cards",
            kind=Choice(HoldCards),
            about="Free the cards at once (free), or hold them too (keep).",
        ),
        Field(
            name="window",
            attribute="window_seconds",
            kind=Duration(WINDOW_SECONDS),
            about="How long the container is held; by default as the administrator set it (4 h).",
        ),
        Field(
            name="allocation",
            attribute="allocation",
            kind=Choice(HoldAllocation),
            about="Under Slurm: hold the nodes (the default), or copy the folder, free them and wait for others.",
        ),
    ],
)

SUSPENSION = Table(
    Suspension,
    [
        Field(
            name="scheduling",
            attribute="scheduling",
            kind=Flag(),
            about="Start only from a queue of the quota tree.",
        ),
    ],
)

FAILOVER = Table(
    Failover,
    [
        Field(
            name="toleration_seconds",
            attribute="toleration_seconds",
            kind=WholeNumber(TOLERATION_SECONDS),
            about="How long a cluster may fail to place it; by default 30.",
        ),
    ],
)

JOB = Table(
    JobSpec,
    [
        Field(
            name="name",
            attribute="name",
            kind=_NAME,
            required=True,
            about="Give a name: printable, no slash, no leading dot or hyphen; unique in the project among live jobs.",
        ),
        Field(
            name="command",
            attribute="command",
            kind=Text(minLength=1, maxLength=COMMAND_BYTES),
            required=True,
            spared=lambda given: given.get("kind", JobKind.REGULAR) is not JobKind.REGULAR or "script" in given,
            about="Give the executable and its arguments; wrap what needs a shell: bash -c '…'.",
        ),
        Field(
            name="kind",
            attribute="kind",
            kind=Choice(JobKind),
            about="One command (regular), several tasks (batch), or a session: a shell or a notebook (interactive).",
        ),
        Field(
            name="output",
            attribute="output",
            kind=Path(),
            required=True,
            about="Give the folder that the job sees as /workspace/outputs.",
        ),
        Field(
            name="algorithm",
            attribute="algorithm",
            kind=ALGORITHM,
            about="The folder that the job sees as /workspace/algorithm.",
        ),
        Field(
            name="tasks",
            attribute="tasks",
            kind=ListOf(TASK, MOST_BATCH_TASKS),
            about="For a batch: each task's command and algorithm; task i writes into <name>-<i> of the output folder.",
        ),
        Field(
            name="datasets",
            attribute="datasets",
            kind=ListOf(DATASET, MOST_MOUNTS),
            about="Datasets that the job sees below /workspace/dataset (annotations: /workspace/anno_dataset).",
        ),
        Field(
            name="models",
            attribute="models",
            kind=ListOf(MODEL, MOST_MOUNTS),
            about="Models that the job sees, read-only, below /workspace/model.",
        ),
        Field(
            name="volumes",
            attribute="volumes",
            kind=ListOf(VOLUME, MOST_MOUNTS),
            about="Writable folders that the job sees as /workspace/volume/<name>.",
        ),
        Field(
            name="mode",
            attribute="mode",
            kind=Choice(Mode),
            about="How its nodes find each other: standalone (one node), horovod, tensorflow, pytorch, deepspeed, "
            "slurm (a batch script) or worker-pools.",
        ),
        Field(
            name="parameter_servers",
            attribute="parameter_servers",
            kind=WholeNumber(PARAMETER_SERVERS),
            about="TensorFlow's parameter servers beside the nodes, each with 1 CPU and 1 GiB; 0 means all-reduce.",
        ),
        Field(
            name="worker_pools",
            attribute="worker_pools",
            kind=ListOf(pool_table(NODE_SPEC), MOST_POOLS),
            about="Up to four kinds of replicas: the primary, workers, servers, evaluators; {} omits one.",
        ),
        Field(
            name="spec",
            attribute="specs",
            kind=Single(NODE_SPEC),
            alias=True,
            about="The spec, instead of specs: its name in the catalogue, or its fields.",
        ),
        Field(
            name="nodes",
            attribute="nodes",
            kind=WholeNumber(NODES),
            about="Number of nodes, each with the resources of a spec.",
        ),
        Field(
            name="specs",
            attribute="specs",
            kind=ListOf(NODE_SPEC, MOST_SPECS, least=1),
            about="Resources per node; several specs are equal alternatives, and the first that can start is used.",
        ),
        Field(
            name="node_names",
            attribute="node_names",
            kind=ListOf(_LABEL, MOST_PINS),
            about="Run only on these nodes; excludes pool and driver_version.",
        ),
        Field(name="pool", attribute="pool", kind=_LABEL, about="Run only on nodes of this resource pool."),
        Field(
            name="driver_version",
            attribute="driver_version",
            kind=_LABEL,
            about="Run only on nodes with this card driver; needs a spec with cards.",
        ),
        Field(
            name="node_selector",
            attribute="node_selector",
            kind=Labels(),
            about="Run only on nodes with these labels: {disk: ssd}, or disk=ssd.",
        ),
        Field(
            name="tolerations",
            attribute="tolerations",
            kind=ListOf(TolerationText(), MOST_LABELS),
            about="Run also on nodes with these taints: gpu=yes, spot (with any value), * (any taint).",
        ),
        Field(name="exclusive", attribute="exclusive", kind=Flag(), about="Share its nodes with no other job."),
        Field(name="terminal", attribute="terminal", kind=Flag(), about="Hold the container if the job fails."),
        Field(
            name="debug_hold",
            attribute="debug_hold",
            kind=DEBUG_HOLD,
            about="How a failed job's container is held.",
        ),
        Field(
            name="time_limit",
            attribute="time_limit_seconds",
            kind=Duration(TIME_LIMIT_SECONDS),
            always=True,
            about="Run-time limit, after which the job is expired; without a unit, seconds.",
        ),
        Field(
            name="grace_period",
            attribute="grace_seconds",
            kind=Duration(GRACE_SECONDS),
            always=True,
            about="Time between the request to end and the kill; without a unit, seconds.",
        ),
        Field(name="hold", attribute="hold", kind=Flag(), about="Submit held, to be released later."),
        Field(
            name="home",
            attribute="home",
            kind=Choice(HomeAccess),
            about="The submitter's home folder in the container: none, read-only (ro) or writable (rw).",
        ),
        Field(
            name="image",
            attribute="image",
            kind=ImageText(),
            about="The root file system: the machine's own (host), dir:PATH, tar:PATH, or a name for podman or docker.",
        ),
        Field(
            name="staging",
            attribute="staging",
            kind=Flag(),
            about="Copy its datasets, all read-only, to fast storage of its nodes before the command runs.",
        ),
        Field(name="env", attribute="env", kind=Environment(), about="Environment variables."),
        Field(
            name="labels",
            attribute="labels",
            kind=Labels(),
            about="Your own keys and values, shown on its page: {team: nlp}, or team=nlp.",
        ),
        Field(
            name="project",
            attribute="project",
            kind=_NAME,
            about="The project that the job belongs to; by default the submitter's own.",
        ),
        Field(
            name="access",
            attribute="access",
            kind=Choice(Access),
            about="What other members of the project may do: everything (rw), read and clone (ro), or nothing (none).",
        ),
        Field(
            name="account",
            attribute="account",
            kind=_LABEL,
            about="The account that is charged; by default the submitter's.",
        ),
        Field(
            name="partitions",
            attribute="partitions",
            kind=ListOf(_LABEL, MOST_PARTITIONS),
            about="Acceptable partitions; by default the cluster's default partition.",
        ),
        Field(
            name="partition",
            attribute="partitions",
            kind=Single(_LABEL),
            alias=True,
            about="The partition, instead of partitions.",
        ),
        Field(
            name="qos",
            attribute="qos",
            kind=_LABEL,
            about="The QOS; by default the one that the priority word names, else the account's default.",
        ),
        Field(
            name="priority",
            attribute="priority",
            kind=Choice(PriorityWord),
            about="How urgent it is: normal, urgent (bounded per user and project) or very-urgent (by administrators).",
        ),
        Field(
            name="nice",
            attribute="nice",
            kind=WholeNumber(NICE),
            about="Subtracted from the priority; only administrators may set a negative value.",
        ),
        Field(
            name="begin_at",
            attribute="begin_at",
            kind=Moment(),
            about="Earliest start: a time with its zone, or now+2h.",
        ),
        Field(
            name="deadline",
            attribute="deadline_at",
            kind=Moment(),
            about="Latest end: a job that cannot end by then with its whole time limit is ended before its start.",
        ),
        Field(
            name="dependencies",
            attribute="dependencies",
            kind=Dependencies(),
            about="Conditions on other jobs as for sbatch: afterok:123, afterany, afternotok, aftercorr, singleton.",
        ),
        Field(
            name="array",
            attribute="array",
            kind=Indices(),
            about="One task per index as for sbatch: 0-9 or 1,3,5-9:2, with %2 two of them at once.",
        ),
        Field(
            name="sweep",
            attribute="sweep",
            kind=SWEEP,
            about="Run the job once for each combination of parameters: {parameters: {lr: [0.1, 0.01]}}.",
        ),
        Field(
            name="reservation",
            attribute="reservation",
            kind=_LABEL,
            about="The reservation whose nodes it runs on.",
        ),
        Field(
            name="suspension",
            attribute="suspension",
            kind=SUSPENSION,
            about="What is suspended, as in a PropagationPolicy: with scheduling: true the job waits in its queue.",
        ),
        Field(
            name="divide_over_clusters",
            attribute="divide_over_clusters",
            kind=Flag(),
            about="On a fleet its nodes may be in several clusters; otherwise all are in one.",
        ),
        Field(
            name="failover",
            attribute="failover",
            kind=FAILOVER,
            about="On a fleet: when a placement that its cluster cannot start is given up and replaced.",
        ),
        Field(
            name="elastic",
            attribute="elastic",
            kind=ELASTIC,
            about="It runs with as many workers as fit, between bounds; excludes nodes.",
        ),
        Field(
            name="restart",
            attribute="restart",
            kind=RESTART,
            about="It restarts when it fails, a limited number of times; excludes resume and elastic.",
        ),
        Field(
            name="resume",
            attribute="resume",
            kind=RESUME,
            about="It resumes from its checkpoints when it is interrupted; needs pool, excludes restart and elastic.",
        ),
        Field(
            name="hooks",
            attribute="hooks",
            kind=HOOKS,
            about="Scripts to run in its container: before_start and after_end.",
        ),
        Field(
            name="script",
            attribute="script",
            kind=BATCH_SCRIPT,
            about="A batch script that runs as under sbatch, instead of command; needs mode: slurm.",
        ),
    ],
)
