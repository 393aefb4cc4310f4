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
from cockpit.model.staging import Staging

KEEP_SECONDS = Bounds(0, 3660 * 86_400, " s")
PERCENT = Bounds(1, 100)

STAGING = Table(
    Staging,
    [
        Field(
            name="folder",
            attribute="folder",
            kind=Checked(Path(), path_error),
            required=True,
            about="Give the folder on fast storage in which copies are made; the engine makes one of its own in it.",
        ),
        Field(
            name="keep",
            attribute="keep_seconds",
            kind=duration(KEEP_SECONDS),
            about="How long a copy stays after its last use.",
        ),
        Field(
            name="full",
            attribute="full_percent",
            kind=whole(PERCENT),
            about="Per cent of the disk that copies may fill; nodes with a fuller disk start no more jobs.",
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


def _member_error(word: str) -> str | None:
    return None if word == EVERY_OTHER_NODE else node_name_error(word)


def _storage_or_folder_error(text: str) -> str | None:
    return path_error(text) if text.startswith("/") else storage_error(text)


def _script_error(text: str) -> str | None:
    return text_error(text, VALUE_BYTES)


_SCRIPTS = ListOf(Checked(Text(minLength=1), _script_error), MOST_SCRIPTS)

FILE = Table(
    ClusterFile,
    [
        Field(
            name="mutable",
            attribute="mutable",
            kind=Flag(),
            about="false: settings that `cockpit cluster init` read from a slurmSpec cannot be changed.",
        ),
        Field(
            name="fixed",
            attribute="fixed",
            kind=Text(),
            about="Written by `cockpit cluster init`: distinguishes its settings from edited ones.",
        ),
        Field(
            name="overcommit",
            attribute="overcommit",
            kind=Flag(),
            about="Let the nodes together have more CPUs and memory than this machine; they are then marked.",
        ),
        Field(
            name="urgent_jobs",
            attribute="urgent_jobs",
            kind=whole(MANY),
            about="The largest number of urgent jobs of a user in one project; without it: no bound.",
        ),
        Field(
            name="sharing",
            attribute="sharing",
            kind=Flag(),
            about="false: no job may be shared with the members of its project; only `access: none` is accepted.",
        ),
        Field(
            name="max_resumes",
            attribute="max_resumes",
            kind=whole(RESTARTS),
            about="The largest `max_resumes` of a job; without it: no bound.",
        ),
        Field(
            name="max_grace_period",
            attribute="max_grace_seconds",
            kind=duration(GRACE_SECONDS),
            about="The longest grace period of a job with `resume`; without it: no bound.",
        ),
        Field(name="login_node_pool", attribute="login_node_pool", kind=name(), about="Its nodes run no jobs."),
        Field(
            name="home_directory_storage",
            attribute="home_directory_storage",
            kind=Checked(Text(minLength=1), _storage_or_folder_error),
            about="The /home of every container: a storage of [home], or a folder; without it: the machine's own.",
        ),
        Field(
            name="prolog_bash_scripts",
            attribute="prolog_bash_scripts",
            kind=_SCRIPTS,
            about="Whole Bash scripts, run on every node of each job before it starts.",
        ),
        Field(
            name="epilog_bash_scripts",
            attribute="epilog_bash_scripts",
            kind=_SCRIPTS,
            about="Whole Bash scripts, run on every node of each job after its end.",
        ),
        Field(
            name="node_pools",
            attribute="node_pools",
            kind=MapOf(name(), ListOf(Checked(Text(minLength=1), _member_error), MOST_NAMES)),
            about="The nodes of each pool, or other pools that it stands for; * is every node of no other pool.",
        ),
        Field(
            name="dedicated_pools",
            attribute="dedicated_pools",
            kind=ListOf(name(), MOST_NAMES),
            about="Dedicated pools: only jobs that name such a pool run on its nodes.",
        ),
        Field(
            name="home",
            attribute="home",
            kind=MapOf(Checked(Text(), storage_error), Checked(Path(), path_error)),
            about="The folder of each storage on this machine, by the storage's full name.",
        ),
        Field(
            name="staging",
            attribute="staging",
            kind=STAGING,
            about="Where datasets are staged; without it they are not.",
        ),
        Field(name="machine", attribute="machine", kind=MACHINE, about="Additions to this machine's own node."),
        Field(
            name="nodes",
            attribute="nodes",
            kind=ListOf(NODE, MOST_ROWS),
            about="Virtual nodes: parts of this machine, instead of its own node.",
        ),
        Field(
            name="accounting", attribute="accounting", kind=ACCOUNTING, about="Which rules of accounts are enforced."
        ),
        Field(name="priority", attribute="priority", kind=PRIORITY, about="The order of the queue."),
        Field(name="backfill", attribute="backfill", kind=BACKFILL, about="Which jobs may start before others."),
        Field(name="preemption", attribute="preemption", kind=PREEMPTION, about="Which jobs may preempt others."),
        Field(
            name="partitions",
            attribute="partitions",
            kind=ListOf(PARTITION, MOST_ROWS),
            about="Sets of nodes with rules; without any, jobs may use every node without bounds.",
        ),
        Field(
            name="qos",
            attribute="qos",
            kind=ListOf(QOS, MOST_ROWS),
            about="QOS at the engine's first start; later `cockpit accounts` changes them.",
        ),
        Field(
            name="accounts",
            attribute="accounts",
            kind=ListOf(ACCOUNT, MOST_ASSOCIATIONS),
            about="Accounts at the engine's first start; later `cockpit accounts` changes them.",
        ),
        Field(
            name="users",
            attribute="users",
            kind=ListOf(USER, MOST_ASSOCIATIONS),
            about="Users of these accounts at the engine's first start.",
        ),
        Field(
            name="projects",
            attribute="projects",
            kind=ListOf(PROJECT, MOST_ROWS),
            about="Projects and their members; if there are any, a job belongs to one of its submitter's projects.",
        ),
    ],
)
