"""The fields of a job file, once: reading, writing, advice on misspelt names and the JSON Schema follow this table."""

from __future__ import annotations

from cockpit.formats.job.conditions import Dependencies, Indices, Moment
from cockpit.formats.job.life import ELASTIC, HOOKS, RESTART, RESUME
from cockpit.formats.job.mounts import ALGORITHM, DATASET, MODEL, TASK, VOLUME
from cockpit.formats.job.pools import SWEEP, pool_table
from cockpit.formats.kinds import Choice, Environment, Flag, ImageText, ListOf, Path, Reading, Single, Text, WholeNumber
from cockpit.formats.labels import Labels, TolerationText
from cockpit.formats.measures import Cards, Duration, Memory
from cockpit.formats.tables import Field, Table
from cockpit.model.batchscript import BatchScript, EarlySignal, OpenMode
from cockpit.model.names import NAME_LENGTH, NAME_PATTERN
from cockpit.model.rules.batchscript import MOST_ARGUMENTS, SIGNAL_PATTERN, SIGNAL_SECONDS
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
from cockpit.model.rules.text import COMMAND_BYTES, PATH_BYTES
from cockpit.model.spec import (
    Access,
    DebugHold,
    Failover,
    HoldAllocation,
    HoldCards,
    HoldReplicas,
    HomeAccess,
    JobKind,
    JobSpec,
    Mode,
    NodeSpec,
    PriorityWord,
    Suspension,
)

EARLY_SIGNAL = Table(
    EarlySignal,
    [
        Field("name", Text(pattern=SIGNAL_PATTERN), "Give the signal's name without SIG: USR1.", required=True),
        Field("seconds", WholeNumber(SIGNAL_SECONDS), "Seconds before the time limit."),
        Field("shell", Flag(), "Signal only the script's own process, instead of the tasks of srun."),
    ],
)
BATCH_SCRIPT = Table(
    BatchScript,
    [
        Field(
            "text",
            Text(minLength=1, maxLength=COMMAND_BYTES),
            "Give the whole script; its first line names the interpreter: #!/bin/bash.",
            required=True,
        ),
        Field("file", Path(), "The file from which the script was read, for display."),
        Field("arguments", ListOf(Text(maxLength=COMMAND_BYTES), MOST_ARGUMENTS), "Arguments of the script."),
        Field(
            "work_dir",
            Path(),
            "Give the folder in which the script runs; the job sees it under its own path.",
            required=True,
        ),
        Field("submit_dir", Path(), "The folder that SLURM_SUBMIT_DIR names; by default work_dir."),
        Field(
            "output",
            Text(maxLength=PATH_BYTES),
            "The file for its output, with sbatch's patterns; by default slurm-%j.out in work_dir.",
        ),
        Field("error", Text(maxLength=PATH_BYTES), "The file for its errors; by default that of its output."),
        Field("input", Text(maxLength=PATH_BYTES), "The file that it reads as standard input; by default none."),
        Field("open_mode", Choice(OpenMode), "Whether existing files are emptied (truncate) or continued (append)."),
        Field("early_signal", EARLY_SIGNAL, "A signal that it gets before its time limit."),
    ],
)


_NAME = Text(minLength=1, maxLength=NAME_LENGTH, pattern=NAME_PATTERN)
_LABEL = Text(minLength=1, maxLength=LABEL_LENGTH)


class _NodeSpecs(Table[NodeSpec]):
    """Reads node specs; a name alone means the entry of the catalogue with its fields."""

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
        Field("cpus", WholeNumber(CPUS), "CPUs per node."),
        Field("memory", Memory(), "Memory per node; without a unit, MiB.", attribute="memory_mib"),
        Field("cards", Cards(), "Cards per node, or a share of one below 1.", attribute="card_milli"),
        Field("card_models", ListOf(_LABEL, MOST_CARD_MODELS), "Acceptable card models; by default any."),
        Field(
            "card_model", Single(_LABEL), "The card model, instead of card_models.", attribute="card_models", alias=True
        ),
        Field("name", _NAME, "A spec of the catalogue, instead of the other fields."),
    ],
    short="name",
)


DEBUG_HOLD = Table(
    DebugHold,
    [
        Field("cards", Choice(HoldCards), "Free the cards at once (free), or hold them too (keep)."),
        Field(
            "window",
            Duration(WINDOW_SECONDS),
            "How long the container is held; by default as the administrator set it (4 h).",
            attribute="window_seconds",
        ),
        Field(
            "allocation",
            Choice(HoldAllocation),
            "Under Slurm: hold the nodes (the default), or copy the folder, free them and wait for others.",
        ),
        Field(
            "replicas",
            Choice(HoldReplicas),
            "On Kubernetes: hold the replica that failed first (first, the default), or each that fails (all).",
        ),
    ],
)

SUSPENSION = Table(Suspension, [Field("scheduling", Flag(), "Start only from a queue of the quota tree.")])

FAILOVER = Table(
    Failover,
    [
        Field(
            "toleration_seconds",
            WholeNumber(TOLERATION_SECONDS),
            "How long a cluster may fail to place it; by default 30.",
        )
    ],
)

JOB = Table(
    JobSpec,
    [
        Field(
            "name",
            _NAME,
            "Give a name: printable, no slash, no leading dot or hyphen; unique in the project among live jobs.",
            required=True,
        ),
        Field(
            "command",
            Text(minLength=1, maxLength=COMMAND_BYTES),
            "Give the executable and its arguments; wrap what needs a shell: bash -c '…'.",
            required=True,
            # A batch has tasks, a session a shell, a script itself: none of them needs a command.
            spared=lambda given: given.get("kind", JobKind.REGULAR) is not JobKind.REGULAR or "script" in given,
        ),
        Field(
            "kind",
            Choice(JobKind),
            "One command (regular), several tasks (batch), or a session: a shell or a notebook (interactive).",
        ),
        Field("output", Path(), "Give the folder that the job sees as /workspace/outputs.", required=True),
        Field("algorithm", ALGORITHM, "The folder that the job sees as /workspace/algorithm."),
        Field(
            "tasks",
            ListOf(TASK, MOST_BATCH_TASKS),
            "For a batch: each task's command and algorithm; task i writes into <name>-<i> of the output folder.",
        ),
        Field(
            "datasets",
            ListOf(DATASET, MOST_MOUNTS),
            "Datasets that the job sees below /workspace/dataset (annotations: /workspace/anno_dataset).",
        ),
        Field("models", ListOf(MODEL, MOST_MOUNTS), "Models that the job sees, read-only, below /workspace/model."),
        Field(
            "volumes", ListOf(VOLUME, MOST_MOUNTS), "Writable folders that the job sees as /workspace/volume/<name>."
        ),
        Field(
            "mode",
            Choice(Mode),
            "How its nodes find each other: standalone (one node), horovod, tensorflow, pytorch, deepspeed, "
            "slurm (a batch script) or worker-pools.",
        ),
        Field(
            "parameter_servers",
            WholeNumber(PARAMETER_SERVERS),
            "TensorFlow's parameter servers beside the nodes, each with 1 CPU and 1 GiB; 0 means all-reduce.",
        ),
        Field(
            "worker_pools",
            ListOf(pool_table(NODE_SPEC), MOST_POOLS),
            "Up to four kinds of replicas: the primary, workers, servers, evaluators; {} omits one.",
        ),
        Field(
            "spec",
            Single(NODE_SPEC),
            "The spec, instead of specs: its name in the catalogue, or its fields.",
            attribute="specs",
            alias=True,
        ),
        Field("nodes", WholeNumber(NODES), "Number of nodes, each with the resources of a spec."),
        Field(
            "specs",
            ListOf(NODE_SPEC, MOST_SPECS, least=1),
            "Resources per node; several specs are equal alternatives, and the first that can start is used.",
        ),
        Field("node_names", ListOf(_LABEL, MOST_PINS), "Run only on these nodes; excludes pool and driver_version."),
        Field("pool", _LABEL, "Run only on nodes of this resource pool."),
        Field("driver_version", _LABEL, "Run only on nodes with this card driver; needs a spec with cards."),
        Field("node_selector", Labels(), "Run only on nodes with these labels: {disk: ssd}, or disk=ssd."),
        Field(
            "tolerations",
            ListOf(TolerationText(), MOST_LABELS),
            "Run also on nodes with these taints: gpu=yes, spot (with any value), * (any taint).",
        ),
        Field("exclusive", Flag(), "Share its nodes with no other job."),
        Field("terminal", Flag(), "Hold the container if the job fails."),
        Field("debug_hold", DEBUG_HOLD, "How a failed job's container is held."),
        Field(
            "time_limit",
            Duration(TIME_LIMIT_SECONDS),
            "Run-time limit, after which the job is expired; without a unit, seconds.",
            attribute="time_limit_seconds",
            always=True,
        ),
        Field(
            "grace_period",
            Duration(GRACE_SECONDS),
            "Time between the request to end and the kill; without a unit, seconds.",
            attribute="grace_seconds",
            always=True,
        ),
        Field("hold", Flag(), "Submit held, to be released later."),
        Field(
            "home",
            Choice(HomeAccess),
            "The submitter's home folder in the container: none, read-only (ro) or writable (rw).",
        ),
        Field(
            "image",
            ImageText(),
            "The root file system: the machine's own (host), dir:PATH, tar:PATH, or a name for podman or docker.",
        ),
        Field(
            "staging", Flag(), "Copy its datasets, all read-only, to fast storage of its nodes before the command runs."
        ),
        Field("env", Environment(), "Environment variables."),
        Field("labels", Labels(), "Your own keys and values, shown on its page: {team: nlp}, or team=nlp."),
        Field("project", _NAME, "The project that the job belongs to; by default the submitter's own."),
        Field(
            "access",
            Choice(Access),
            "What other members of the project may do: everything (rw), read and clone (ro), or nothing (none).",
        ),
        Field("account", _LABEL, "The account that is charged; by default the submitter's."),
        Field(
            "partitions",
            ListOf(_LABEL, MOST_PARTITIONS),
            "Acceptable partitions; by default the cluster's default partition.",
        ),
        Field("partition", Single(_LABEL), "The partition, instead of partitions.", attribute="partitions", alias=True),
        Field("qos", _LABEL, "The QOS; by default the one that the priority word names, else the account's default."),
        Field(
            "priority",
            Choice(PriorityWord),
            "How urgent it is: normal, urgent (bounded per user and project) or very-urgent (by administrators).",
        ),
        Field("nice", WholeNumber(NICE), "Subtracted from the priority; only administrators may set a negative value."),
        Field("begin_at", Moment(), "Earliest start: a time with its zone, or now+2h."),
        Field(
            "deadline",
            Moment(),
            "Latest end: a job that cannot end by then with its whole time limit is ended before its start.",
            attribute="deadline_at",
        ),
        Field(
            "dependencies",
            Dependencies(),
            "Conditions on other jobs as for sbatch: afterok:123, afterany, afternotok, aftercorr, singleton.",
        ),
        Field("array", Indices(), "One task per index as for sbatch: 0-9 or 1,3,5-9:2, with %2 two of them at once."),
        Field("sweep", SWEEP, "Run the job once for each combination of parameters: {parameters: {lr: [0.1, 0.01]}}."),
        Field("reservation", _LABEL, "The reservation whose nodes it runs on."),
        Field(
            "suspension",
            SUSPENSION,
            "What is suspended, as in a PropagationPolicy: with scheduling: true the job waits in its queue.",
        ),
        Field(
            "divide_over_clusters", Flag(), "On a fleet its nodes may be in several clusters; otherwise all are in one."
        ),
        Field(
            "failover", FAILOVER, "On a fleet: when a placement that its cluster cannot start is given up and replaced."
        ),
        Field("elastic", ELASTIC, "It runs with as many workers as fit, between bounds; excludes nodes."),
        Field("restart", RESTART, "It restarts when it fails, a limited number of times; excludes resume and elastic."),
        Field(
            "resume",
            RESUME,
            "It resumes from its checkpoints when it is interrupted; needs pool, excludes restart and elastic.",
        ),
        Field("hooks", HOOKS, "Scripts to run in its container: before_start and after_end."),
        Field(
            "script", BATCH_SCRIPT, "A batch script that runs as under sbatch, instead of command; needs mode: slurm."
        ),
    ],
)
