"""Writes the first cluster.toml of a site for `cockpit cluster init`, alone or from a slurmSpec."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from cockpit.errors import SpecErrors
from cockpit.formats.cluster.fields import EVERY_OTHER_NODE, FILE, ClusterFile
from cockpit.formats.cluster.file import own_nodes, read_cluster_file, seal, unmapped_storage
from cockpit.formats.cluster.pools import known_pools, unknown_pool
from cockpit.formats.cluster.rule_fields import Accounting
from cockpit.formats.cluster.text import cluster_text, completed_text
from cockpit.formats.slurm.spec import SlurmSpec
from cockpit.formats.tomltext import parse_toml
from cockpit.model.cluster import Partition, Priority, PriorityKind, Weights
from cockpit.model.node import Node

MACHINES_HOME = "/home"
USUAL_WEIGHTS = Weights(age=1000, fairshare=10_000, job_size=500, partition=1000, qos=2000)
RULES = (
    "mutable",
    "fixed",
    "login_node_pool",
    "home_directory_storage",
    "prolog_bash_scripts",
    "epilog_bash_scripts",
    "accounting",
    "priority",
    "preemption",
    "partitions",
)
"""The tables that init writes. All others (nodes, pools, storages, accounts) are the site's own."""


class InitialConfig(msgspec.Struct, frozen=True):
    """The file, as values and as text."""

    file: ClusterFile
    text: str


def has_rules(text: str, source: str) -> bool:
    """Return whether a cluster.toml already has what init would write. Raises `SpecErrors` if it is not TOML."""
    return bool(set(RULES) & parse_toml(text, source).keys())


def initial_cluster(
    machine: Node,
    spec: SlurmSpec | None,
    text: str | None,
    *,
    source: str = "cluster.toml",
    spec_source: str = "slurmSpec",
) -> InitialConfig:
    """Return the file that `spec` makes of the site's present file.

    `spec`: None means the usual rules. `text`: None means that there is no file. A file without rules is completed and
    its text stays as it is; else everything but the rules is kept. Raises `SpecErrors` for the present file, or with
    the spec's paths for what the file does not know.
    """
    site = read_cluster_file(machine, text, source) if text is not None else ClusterFile()
    if spec is None:
        file = _usual(site)
    else:
        # Checked before the two are merged, so that an error names the place in the spec, which is what the user edits.
        errors = list(_unknown_to(site, spec, machine))
        if errors:
            raise SpecErrors([f"{spec_source}: {error}" for error in errors])
        file = seal(_of_spec(_with_site(site, spec, machine), spec))
    # Comments and order of the site's own text are kept where nothing has to be replaced.
    if text is not None and not has_rules(text, source):
        return InitialConfig(file, completed_text(text, site, file))
    return InitialConfig(file, cluster_text(file))


def _usual(site: ClusterFile) -> ClusterFile:
    """Return the usual rules: one partition with all nodes, and weights for the factors that most sites use."""
    return replace(
        site,
        mutable=True,
        fixed="",
        partitions=(Partition(name="main", default=True),),
        priority=Priority(kind=PriorityKind.MULTIFACTOR, weights=USUAL_WEIGHTS),
        # Without preemption, accounting and scripts, as in a file that leaves them out.
        preemption=FILE.stand_in.preemption,
        accounting=Accounting(),
        login_node_pool="",
        home_directory_storage="",
        prolog_bash_scripts=(),
        epilog_bash_scripts=(),
    )


def _of_spec(site: ClusterFile, spec: SlurmSpec) -> ClusterFile:
    """Return the site's file with the rules of a spec."""
    cluster = spec.cluster
    return replace(
        site,
        partitions=cluster.partitions,
        login_node_pool=cluster.login_pool,
        home_directory_storage=spec.storage,
        accounting=Accounting(cluster.enforce),
        priority=cluster.priority,
        preemption=cluster.preemption,
        prolog_bash_scripts=cluster.prolog_scripts,
        epilog_bash_scripts=cluster.epilog_scripts,
    )


def _with_site(site: ClusterFile, spec: SlurmSpec, machine: Node) -> ClusterFile:
    """Return the spec with this machine as the first pool and its /home as the storage, where the site's file
    has none."""
    if not _pools_of_machine(site, machine):
        # The first pool that the spec names gets the nodes, the others none: a single machine cannot be divided.
        pools = dict.fromkeys(_named_pools(spec), ())
        site = replace(site, node_pools={**pools, next(iter(pools)): (EVERY_OTHER_NODE,)})
    if spec.storage and not site.home:
        site = replace(site, home={spec.storage: MACHINES_HOME})
    return site


def _unknown_to(site: ClusterFile, spec: SlurmSpec, machine: Node) -> Iterator[str]:
    """Return the names in the spec that the site's file lacks, for the kinds that it has entries of."""
    prefix = f"{spec.at}." if spec.at else ""
    known = _pools_of_machine(site, machine)
    # A site without pools takes those of the spec, so that no name can be unknown.
    for at, partition in enumerate(spec.cluster.partitions if known else ()):
        for index, pool in enumerate(partition.pools):
            if pool not in known:
                yield f"{prefix}partitions[{at}].node_pool_ids[{index}]: {unknown_pool(pool, known)}"
    login = spec.cluster.login_pool
    if known and login and login not in known:
        yield f"{prefix}login_node_pool_id: {unknown_pool(login, known)}"
    if site.home and spec.storage and spec.storage not in site.home:
        yield f"{prefix}home_directory_storage: {unmapped_storage(spec.storage)}"


def _pools_of_machine(site: ClusterFile, machine: Node) -> tuple[str, ...]:
    return known_pools(site.node_pools, own_nodes(machine, site))


def _named_pools(spec: SlurmSpec) -> list[str]:
    """Return the partitions' pools, then the login pool."""
    named = [pool for partition in spec.cluster.partitions for pool in partition.pools]
    return list(dict.fromkeys([*named, *filter(None, [spec.cluster.login_pool])]))
