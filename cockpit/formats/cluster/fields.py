"""The fields of cluster.toml, once: reading, advice on misspelt names and the JSON Schema follow these tables."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from cockpit.formats.cluster.account_fields import ACCOUNT, QOS, USER
from cockpit.formats.cluster.node_fields import MACHINE, MOST_ROWS, NODE, DeclaredMachine, DeclaredNode, node_name_error
from cockpit.formats.cluster.rule_fields import (
    ACCOUNTING,
    BACKFILL,
    PARTITION,
    PREEMPTION,
    PRIORITY,
    PROJECT,
    Accounting,
)
from cockpit.formats.cluster.rule_fields import COUNT as MANY
from cockpit.formats.kinds import Flag, ListOf, Path, Text
from cockpit.formats.measures import Checked, duration, whole
from cockpit.formats.rulekinds import MOST_NAMES, MapOf, name, storage_error
from cockpit.formats.rulekinds import MOST_ROWS as MOST_ASSOCIATIONS
from cockpit.formats.tables import Field, Table
from cockpit.model.accounts import Association, Qos
from cockpit.model.cluster import Backfill, Partition, Preemption, Priority, Project
from cockpit.model.rules.bounds import GRACE_SECONDS, RESTARTS, VALUE_BYTES, Bounds
from cockpit.model.rules.text import path_error, text_error
from cockpit.model.spec import DAY_SECONDS
from cockpit.model.staging import Staging

KEEP_SECONDS = Bounds(0, 3660 * 86_400, " s")
PERCENT = Bounds(1, 100)

STAGING = Table(
    Staging,
    [
        Field(
            "folder",
            Checked(Path(), path_error),
            "Give the folder on fast storage in which copies are made; the engine makes one of its own in it.",
            required=True,
        ),
        Field("keep", duration(KEEP_SECONDS), "How long a copy stays after its last use.", attribute="keep_seconds"),
        Field(
            "full",
            whole(PERCENT),
            "Per cent of the disk that copies may fill; nodes with a fuller disk start no more jobs.",
            attribute="full_percent",
        ),
    ],
)


class ClusterFile(msgspec.Struct, frozen=True, kw_only=True):
    """The content of cluster.toml."""

    mutable: bool = True
    fixed: str = ""
    """The fields that `cluster init` fixed; see `is_sealed`."""
    overcommit: bool = False
    urgent_jobs: int | None = None
    sharing: bool = True
    max_resumes: int | None = None
    max_grace_seconds: int | None = None
    drain_after_prechecks: int = 2
    precheck_exclusion_seconds: int = 3600
    login_node_pool: str = ""
    home_directory_storage: str = ""
    """A name of `home`, or a folder."""
    prolog_bash_scripts: tuple[str, ...] = ()
    epilog_bash_scripts: tuple[str, ...] = ()
    node_pools: Mapping[str, tuple[str, ...]] = {}
    dedicated_pools: tuple[str, ...] = ()
    home: Mapping[str, str] = {}
    staging: Staging | None = None
    machine: DeclaredMachine = DeclaredMachine()
    nodes: tuple[DeclaredNode, ...] = ()
    accounting: Accounting = Accounting()
    priority: Priority = Priority()
    backfill: Backfill = Backfill()
    preemption: Preemption = Preemption()
    partitions: tuple[Partition, ...] = ()
    qos: tuple[Qos, ...] = ()
    accounts: tuple[Association, ...] = ()
    users: tuple[Association, ...] = ()
    projects: tuple[Project, ...] = ()


EVERY_OTHER_NODE = "*"
"""In a node pool: all nodes that are in no other pool."""
MOST_SCRIPTS = 64


_SCRIPTS = ListOf(Checked(Text(minLength=1), lambda text: text_error(text, VALUE_BYTES)), MOST_SCRIPTS)

FILE = Table(
    ClusterFile,
    [
        Field(
            "mutable", Flag(), "false: settings that `cockpit cluster init` read from a slurmSpec cannot be changed."
        ),
        Field("fixed", Text(), "Written by `cockpit cluster init`: distinguishes its settings from edited ones."),
        Field(
            "overcommit",
            Flag(),
            "Let the nodes together have more CPUs and memory than this machine; they are then marked.",
        ),
        Field(
            "urgent_jobs",
            whole(MANY),
            "The largest number of urgent jobs of a user in one project; without it: no bound.",
        ),
        Field(
            "sharing",
            Flag(),
            "false: no job may be shared with the members of its project; only `access: none` is accepted.",
        ),
        Field("max_resumes", whole(RESTARTS), "The largest `max_resumes` of a job; without it: no bound."),
        Field(
            "max_grace_period",
            duration(GRACE_SECONDS),
            "The longest grace period of a job with `resume`; without it: no bound.",
            attribute="max_grace_seconds",
        ),
        Field(
            "drain_after_prechecks",
            whole(Bounds(1, 1000)),
            "How many different jobs' prechecks have to fail on a node for it to be drained; 1: at the first failure.",
        ),
        Field(
            "precheck_exclusion",
            duration(Bounds(1, 30 * DAY_SECONDS, " s")),
            "How long a job does not use a node where its precheck failed.",
            attribute="precheck_exclusion_seconds",
        ),
        Field("login_node_pool", name(), "Its nodes run no jobs."),
        Field(
            "home_directory_storage",
            Checked(Text(minLength=1), lambda text: path_error(text) if text.startswith("/") else storage_error(text)),
            "The /home of every container: a storage of [home], or a folder; without it: the machine's own.",
        ),
        Field("prolog_bash_scripts", _SCRIPTS, "Whole Bash scripts, run on every node of each job before it starts."),
        Field("epilog_bash_scripts", _SCRIPTS, "Whole Bash scripts, run on every node of each job after its end."),
        Field(
            "node_pools",
            MapOf(
                name(),
                ListOf(
                    Checked(
                        Text(minLength=1), lambda word: None if word == EVERY_OTHER_NODE else node_name_error(word)
                    ),
                    MOST_NAMES,
                ),
            ),
            "The nodes of each pool, or other pools that it stands for; * is every node of no other pool.",
        ),
        Field(
            "dedicated_pools",
            ListOf(name(), MOST_NAMES),
            "Dedicated pools: only jobs that name such a pool run on its nodes.",
        ),
        Field(
            "home",
            MapOf(Checked(Text(), storage_error), Checked(Path(), path_error)),
            "The folder of each storage on this machine, by the storage's full name.",
        ),
        Field("staging", STAGING, "Where datasets are staged; without it they are not."),
        Field("machine", MACHINE, "Additions to this machine's own node."),
        Field("nodes", ListOf(NODE, MOST_ROWS), "Virtual nodes: parts of this machine, instead of its own node."),
        Field("accounting", ACCOUNTING, "Which rules of accounts are enforced."),
        Field("priority", PRIORITY, "The order of the queue."),
        Field("backfill", BACKFILL, "Which jobs may start before others."),
        Field("preemption", PREEMPTION, "Which jobs may preempt others."),
        Field(
            "partitions",
            ListOf(PARTITION, MOST_ROWS),
            "Sets of nodes with rules; without any, jobs may use every node without bounds.",
        ),
        Field("qos", ListOf(QOS, MOST_ROWS), "QOS at the engine's first start; later `cockpit accounts` changes them."),
        Field(
            "accounts",
            ListOf(ACCOUNT, MOST_ASSOCIATIONS),
            "Accounts at the engine's first start; later `cockpit accounts` changes them.",
        ),
        Field("users", ListOf(USER, MOST_ASSOCIATIONS), "Users of these accounts at the engine's first start."),
        Field(
            "projects",
            ListOf(PROJECT, MOST_ROWS),
            "Projects and their members; if there are any, a job belongs to one of its submitter's projects.",
        ),
    ],
)
