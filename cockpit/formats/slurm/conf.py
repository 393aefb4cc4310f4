"""A cluster's rules and nodes as slurm.conf. Source of every parameter: slurm.conf(5), Slurm 22.05 to 25."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from cockpit.errors import SpecErrors
from cockpit.formats.slurm.spec_fields import slurm_time
from cockpit.formats.trestext import plain_number, tres_text
from cockpit.model.accounts import NORMAL
from cockpit.model.cardmodels import gres_type
from cockpit.model.cluster import (
    Backfill,
    BackfillKind,
    Cluster,
    Partition,
    Preemption,
    Priority,
    PriorityKind,
    Tres,
    Weights,
)
from cockpit.model.node import Node
from cockpit.model.text import visible
from cockpit.sched.rules.tres import CARDS

MINUTE = 60
MIB_PER_GIB = 1024
NAME, STATE_FOLDER = "cockpit", "/var/spool/slurmctld"
ALL = "all"
"""The partition of a cluster that has none."""
# slurm.conf separates words by blanks, lists by commas, and a key from its value by `=`; `#` begins a comment and
# brackets a range.
_NO_WORD = re.compile(r"[^\w.:@+*-]")
_NO_PATH = re.compile(r"[\x00-\x1f\"\\]")
_QUOTED_PATH = re.compile(r"[\s#=]")
_WEIGHT_NAMES = {
    "age": "Age",
    "assoc": "Assoc",
    "fairshare": "Fairshare",
    "job_size": "JobSize",
    "partition": "Partition",
    "qos": "QOS",
}


class SlurmConf(msgspec.Struct, frozen=True):
    """The file, and what a site does with it."""

    text: str
    to_do: tuple[str, ...]
    """Sentences: lines to fill in, and what has no counterpart in Slurm."""


def slurm_conf(
    cluster: Cluster, nodes: Sequence[Node], *, scripts: Mapping[str, str] | None = None, host: str = "localhost"
) -> SlurmConf:
    """Return the slurm.conf of a cluster, and what its site has to do beside it.

    `scripts`: by `Prolog` and `Epilog`, the pattern of the files that the scripts were written to; None: they were not.
    `host`: where slurmctld runs.
    """
    sections = (
        ("This site: fill these in", _site(host)),
        ("Accounting", _accounting(cluster, nodes)),
        ("Scheduling", _scheduling(cluster.backfill)),
        ("Priority", _priority(cluster.priority)),
        ("Preemption", _preemption(cluster.preemption)),
        ("Scripts", (f"{name}={_path(name, pattern)}" for name, pattern in (scripts or {}).items())),
        ("Nodes", _nodes(nodes)),
        ("Partitions", _partitions(cluster, nodes)),
    )
    lines = [line for title, body in sections for line in _section(title, list(body))]
    return SlurmConf("\n".join(lines), tuple(_to_do(cluster, nodes, scripts)))


def _section(title: str, body: list[str]) -> list[str]:
    return [f"# {title}", *body, ""] if body else []


def _path(name: str, path: str) -> str:
    """Return a path as slurm.conf reads it.

    Blanks and `#` are allowed within double quotes; for other special characters there is no way. Raises SpecErrors.
    """
    if _NO_PATH.search(path):
        raise SpecErrors([f"{name}: no line of slurm.conf can name {visible(path, 200)}; export to another folder"])
    return f'"{path}"' if _QUOTED_PATH.search(path) else path


def _word(name: str, text: str) -> str:
    """Return the word. Raises SpecErrors if slurm.conf would split it."""
    if _NO_WORD.search(text):
        raise SpecErrors([f'{name}: "{visible(text)}" has characters that slurm.conf takes apart; rename it'])
    return text


def _site(host: str) -> Iterator[str]:
    # slurm.conf(5) has no defaults for the first two.
    yield f"ClusterName={NAME}"
    yield f"SlurmctldHost={host}"
    yield f"StateSaveLocation={STATE_FOLDER}"


def _accounting(cluster: Cluster, nodes: Sequence[Node]) -> Iterator[str]:
    """Yield which resources are counted, where, and which limits are enforced."""
    models = {f"{CARDS}:{gres_type(card.model)}" for node in nodes for card in node.cards}
    counted = models | _weighed_cards(cluster)
    if counted:
        yield "GresTypes=gpu"
    if needs_database(cluster):
        if counted:
            # The generic count beside those of models: limits such as GrpTRES=gres/gpu=8 need it.
            yield f"AccountingStorageTRES={','.join(sorted({CARDS} | counted))}"
        yield "AccountingStorageType=accounting_storage/slurmdbd"
    if cluster.enforce:
        yield f"AccountingStorageEnforce={','.join(cluster.enforce)}"


def needs_database(cluster: Cluster) -> bool:
    """Return whether slurmctld needs slurmdbd to start: for associations, their usage, QOS, and resources beside CPUs
    and memory."""
    shared = cluster.priority.kind is PriorityKind.MULTIFACTOR and cluster.priority.weights.fairshare
    return bool(cluster.enforce or shared or named_qos(cluster) or _weighed_cards(cluster))


def _weighed_cards(cluster: Cluster) -> set[str]:
    """Check that each TRES with a weight or price is counted."""
    tables = (cluster.priority.weights.tres, *(each.billing_weights for each in cluster.partitions))
    return {name for each in tables for name in _slurm_names(each) if name.startswith(CARDS)}


def named_qos(cluster: Cluster) -> list[str]:
    """Return the QOS that partitions name; slurmctld ends if slurmdbd lacks the one that is a partition's own."""
    names = (name for each in cluster.partitions for name in (each.qos, *each.allow_qos, *each.deny_qos))
    return list(dict.fromkeys(name for name in names if name not in {"", NORMAL}))


def _scheduling(backfill: Backfill) -> Iterator[str]:
    """Yield what is allocated, and the parameters of the backfill."""
    # cons_tres knows the options of sbatch about cards (--gpus and the like), which cons_res lacks.
    yield "SelectType=select/cons_tres"
    # CPUs and memory are what cockpit allocates, too; without memory here Slurm would overcommit it.
    yield "SelectTypeParameters=CR_CPU_Memory"
    if backfill.kind is BackfillKind.OFF:
        yield "SchedulerType=sched/builtin"
        return
    yield "SchedulerType=sched/backfill"
    given = (
        # slurm.conf has the window in minutes. Rounded up: a shorter one would plan fewer jobs than cockpit does.
        ("bf_window", -(-backfill.window_seconds // MINUTE)),
        ("bf_resolution", backfill.resolution_seconds),
        ("bf_max_job_test", backfill.depth),
    )
    # bf_continue: backfill goes on where it was after it has released its locks. Without it a long queue would never be
    # planned to its end, as cockpit's is.
    yield f"SchedulerParameters={','.join(['bf_continue', *(f'{name}={value}' for name, value in given if value)])}"


def _priority(priority: Priority) -> Iterator[str]:
    """Yield the rules of priority."""
    yield f"PriorityType={priority.kind}"
    if priority.flags:
        yield f"PriorityFlags={','.join(each.slurm for each in priority.flags)}"
    yield f"PriorityFavorSmall={_yes(priority.favor_small)}"
    yield f"PriorityMaxAge={slurm_time(priority.max_age_seconds)}"
    yield f"PriorityCalcPeriod={slurm_time(priority.calc_period_seconds)}"
    yield f"PriorityDecayHalfLife={slurm_time(priority.decay_half_life_seconds)}"
    yield f"PriorityUsageResetPeriod={priority.usage_reset}"
    yield f"FairShareDampeningFactor={priority.dampening_factor}"
    yield from _weights(priority.weights)


def _weights(weights: Weights) -> Iterator[str]:
    for attribute, name in _WEIGHT_NAMES.items():
        yield f"PriorityWeight{name}={getattr(weights, attribute)}"
    if weights.tres:
        yield f"PriorityWeightTRES={tres_text(_slurm_names(weights.tres))}"


def _preemption(preemption: Preemption) -> Iterator[str]:
    yield f"PreemptType={preemption.kind}"
    yield f"PreemptMode={','.join(preemption.mode)}"
    yield f"PreemptExemptTime={slurm_time(preemption.exempt_seconds)}"
    # The default is Slurm's own; the line would only puzzle a site without gang scheduling.
    if preemption.slice_seconds != Preemption().slice_seconds:
        yield f"SchedulerTimeSlice={preemption.slice_seconds}"


def _nodes(nodes: Sequence[Node]) -> Iterator[str]:
    """Yield a line for each node."""
    for node in nodes:
        cards: dict[str, int] = {}
        for card in node.cards:
            cards[gres_type(card.model)] = cards.get(gres_type(card.model), 0) + 1
        gres = ",".join(f"gpu:{model}:{count}" for model, count in cards.items())
        words = [f"NodeName={_word('NodeName', node.name)}", f"CPUs={node.cpus}", f"RealMemory={node.memory_mib}"]
        # UNKNOWN: slurmctld learns the state from slurmd when that registers.
        yield " ".join([*words, *([f"Gres={gres}"] if gres else []), "State=UNKNOWN"])


def _partitions(cluster: Cluster, nodes: Sequence[Node]) -> Iterator[str]:
    # Without a default partition sbatch refuses jobs that name none.
    usual = cluster.default_partition
    for partition in cluster.partitions or (Partition(name=ALL),):
        words = _partition_words(partition, _nodes_of(partition, cluster, nodes))
        default = _yes(usual is None or usual is partition)
        yield f"PartitionName={_word('PartitionName', partition.name)} Default={default} {' '.join(words)}"


def _nodes_of(partition: Partition, cluster: Cluster, nodes: Sequence[Node]) -> list[str]:
    """Return the nodes of a partition without login nodes, which run no jobs."""
    every = not (partition.pools or partition.nodes)
    return [
        node.name
        for node in nodes
        if (every or node.name in partition.nodes or node.pool in partition.pools)
        and not (cluster.login_pool and node.pool == cluster.login_pool)
    ]


def _partition_words(partition: Partition, nodes: Sequence[str]) -> Iterator[str]:
    """Yield the settings of a partition."""
    if nodes:
        yield f"Nodes={','.join(_word('Nodes', each) for each in nodes)}"
    yield f"State={partition.state.upper()}"
    yield f"MaxTime={_time(partition.max_time_seconds)}"
    # Without it Slurm takes MaxTime.
    if partition.default_time_seconds is not None:
        yield f"DefaultTime={_time(partition.default_time_seconds)}"
    if partition.min_nodes:
        yield f"MinNodes={partition.min_nodes}"
    if partition.max_nodes is not None:
        yield f"MaxNodes={partition.max_nodes}"
    for name, value in _lists(partition):
        yield f"{name}={','.join(_word(name, each) for each in value)}"
    if partition.qos:
        yield f"QOS={_word('QOS', partition.qos)}"
    yield f"PriorityJobFactor={partition.priority_job_factor}"
    yield f"PriorityTier={partition.priority_tier}"
    if partition.preempt_mode:
        yield f"PreemptMode={partition.preempt_mode}"
    if partition.grace_seconds:
        yield f"GraceTime={partition.grace_seconds}"
    if partition.billing_weights:
        yield f"TRESBillingWeights={_prices(partition.billing_weights)}"


def _lists(partition: Partition) -> Iterator[tuple[str, tuple[str, ...]]]:
    lists = (
        ("AllowAccounts", partition.allow_accounts),
        ("DenyAccounts", partition.deny_accounts),
        ("AllowQos", partition.allow_qos),
        ("DenyQos", partition.deny_qos),
    )
    return ((name, value) for name, value in lists if value)


def _prices(tres: Tres) -> str:
    """Return prices, of memory for each GiB, as people write it."""
    return ",".join(
        f"{name}={plain_number(price * MIB_PER_GIB)!r}G" if name == "mem" else f"{name}={plain_number(price)!r}"
        for name, price in _slurm_names(tres).items()
    )


def _slurm_names(tres: Tres) -> Tres:
    kinds = ((name.partition(":"), number) for name, number in tres.items())
    return {f"{kind}{colon}{gres_type(model)}": number for (kind, colon, model), number in kinds}


def _time(seconds: int | None) -> str:
    """Return a time limit, which Slurm counts in minutes and rounds up."""
    return "UNLIMITED" if seconds is None else slurm_time(-(-seconds // MINUTE) * MINUTE)


def _yes(value: bool) -> str:
    return "YES" if value else "NO"


def _qos_commands(names: Sequence[str]) -> str:
    return "; ".join(f"sacctmgr -i add qos {shlex.quote(name)}" for name in names)


def _to_do(cluster: Cluster, nodes: Sequence[Node], scripts: Mapping[str, str] | None) -> Iterator[str]:
    """Yield what a site has to add or do itself."""
    yield "ClusterName, SlurmctldHost, StateSaveLocation: give your site's; the rest of its kind has Slurm's defaults"
    yield "NodeName: each node is its own host; add NodeAddr or NodeHostname where its name is not one"
    if needs_database(cluster):
        yield "AccountingStorageHost: give the host of slurmdbd, unless it is slurmctld's"
    if names := named_qos(cluster):
        yield f"QOS of partitions: slurmdbd has to have them before slurmctld starts: {_qos_commands(names)}"
    if any(node.cards for node in nodes):
        yield "gres.conf: on each node, say which devices its cards are (AutoDetect=nvml finds NVIDIA's)"
    if (cluster.prolog_scripts or cluster.epilog_scripts) and scripts is None:
        yield "Prolog, Epilog: Slurm wants files; export to a FILE, and the scripts are written beside it"
    if cluster.home:
        yield f"/home: mount {cluster.home} there on every node; Slurm itself mounts nothing"
    if any(card.slices for node in nodes for card in node.cards):
        yield "Parts of cards have no line: Slurm's own are called shard, see gres.conf(5)"
    for partition in cluster.partitions:
        if partition.allow_users:
            yield f"PartitionName={partition.name}: Slurm allows groups, not users; see AllowGroups"
    if cluster.urgent_jobs is not None:
        yield "Urgent jobs: Slurm has no such bound; a QOS with MaxSubmitJobsPerUser comes nearest"
