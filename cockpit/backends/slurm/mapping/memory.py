"""Memory of jobs that name none: the default of their partition or of the cluster, else all memory of each node.

Source: `DefMemPerNode`, `DefMemPerCPU` and `SelectTypeParameters` in slurm.conf(5); sbatch(1) on `--mem`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from msgspec.structs import replace

from cockpit.backends.slurm.mapping import values
from cockpit.formats.foreign.sbatch_options import MEMORY, script_options
from cockpit.model.spec import JobSpec, NodeSpec

if TYPE_CHECKING:
    from cockpit.backends.slurm.mapping.nodes import SlurmNode
    from cockpit.backends.slurm.mapping.records import Record
    from cockpit.backends.slurm.mapping.spreads import Tasks
    from cockpit.model.batchscript import BatchScript
    from cockpit.model.cluster import Cluster
    from cockpit.model.job import Job

_UNSAID: Final = NodeSpec().memory_mib
"""Memory in the spec of a job file or a script that names none."""


class DefaultMemory(NamedTuple):
    """What a job gets that names no memory; both None: all memory of each node."""

    per_node_mib: int | None = None
    per_cpu_mib: int | None = None


class MemoryRules(NamedTuple):
    """How a cluster allocates memory."""

    is_allocated: bool = True
    """Whether jobs are given memory at all (`CR_…_MEMORY`); else nothing of a node's memory is used up."""
    cluster: DefaultMemory | None = None
    """None: unknown, since slurmrestd does not report it."""
    partitions: Mapping[str, DefaultMemory] = {}
    """The partitions that have a default of their own."""

    def default(self, partition: str) -> DefaultMemory | None:
        return self.partitions.get(partition, self.cluster)


LEAST: Final = 1
"""MiB of memory of a job whose memory does not count: a spec must name some."""
ANY_MEMORY: Final = MemoryRules()


class Sizes(Protocol):
    """The lists of a cluster that decide how much memory a job gets (`ClusterLists`)."""

    @property
    def memory(self) -> MemoryRules: ...

    @property
    def rules(self) -> Cluster: ...

    @property
    def nodes(self) -> tuple[SlurmNode, ...]: ...


def memory_rules(conf: Record, partitions: Iterable[Record]) -> MemoryRules:
    """Return the rules in the records of `scontrol show config` and `show partition`."""
    select = conf.get("SelectTypeParameters", "")
    own = {each.get("PartitionName", ""): _default(each) for each in partitions}
    return MemoryRules(
        is_allocated=not select or "MEMORY" in select.upper(),
        cluster=_default(conf) if _KEYS & conf.keys() else None,
        partitions={name: each for name, each in own.items() if each != DefaultMemory()},
    )


_KEYS: Final = {"DefMemPerNode", "DefMemPerCPU"}


def _default(record: Record) -> DefaultMemory:
    node, cpu = (values.memory_mib(record.get(key, "")) for key in ("DefMemPerNode", "DefMemPerCPU"))
    return DefaultMemory(node or None, cpu or None)


def names_memory(spec: JobSpec) -> bool:
    """Return whether the job asks for an amount of memory. A job file always does, also by its default; a batch script
    may leave it to Slurm."""
    if spec.script is None or spec.specs[0].memory_mib != _UNSAID:
        return True
    return bool(_asked(spec.script)) and not asks_for_all_memory(spec)


def asks_for_all_memory(spec: JobSpec) -> bool:
    """Return whether the script asks for all memory of each node (`--mem=0`)."""
    asked = _asked(spec.script) if spec.script is not None else []
    return bool(asked) and all(values.memory_mib(each) == 0 for each in asked)


def _asked(script: BatchScript) -> list[str]:
    return [value for name, value in script_options(script.text).items() if name in MEMORY]


def with_default_memory(spec: JobSpec, everything: Sizes) -> JobSpec:
    """Return the spec of a batch script that is not submitted yet, with the memory that Slurm would allocate if the
    script names none. A job file always names memory, also by its default."""
    if names_memory(spec) or spec.exclusive:
        return spec
    default = everything.memory.default(_partition(spec, everything.rules))
    if asks_for_all_memory(spec):
        default = DefaultMemory()
    if default is None:
        return spec
    each = spec.specs[0]
    mib = default.per_node_mib or (default.per_cpu_mib or 0) * each.cpus
    return replace(spec, specs=(replace(each, memory_mib=mib),)) if mib else with_all_memory(spec, everything)


def with_memory(spec: JobSpec, tasks: Tasks | None, everything: Sizes) -> JobSpec:
    """Return the spec of a queued job. Slurm's amount of memory of a job that names none is that of some node."""
    if tasks is None or tasks.memory_mib or tasks.card_memory_mib or spec.exclusive:
        return spec
    return with_all_memory(spec, everything)


def with_all_memory(spec: JobSpec, everything: Sizes) -> JobSpec:
    """Return the spec of a job that gets all memory of each of its nodes.

    Where its nodes have equal memory, that much; else the job has its nodes for itself, as no other job fits beside it.
    """
    if not everything.memory.is_allocated:
        return replace(spec, specs=tuple(replace(each, memory_mib=LEAST) for each in spec.specs))
    names = _partition_nodes(spec, everything.rules)
    wanted = set(spec.node_names) or names
    models = {model for each in spec.specs for model in each.card_models}
    sizes = {
        each.node.memory_mib
        for each in everything.nodes
        if each.node.name in wanted and (not models or any(card.model in models for card in each.node.cards))
    }
    is_alike = len(sizes) == 1
    memory = sizes.pop() if is_alike else LEAST
    specs = tuple(replace(each, memory_mib=memory) for each in spec.specs)
    return replace(spec, specs=specs, exclusive=spec.exclusive or not is_alike)


def without_memory(job: Job) -> Job:
    """Return the job as one that uses no memory, for a cluster that allocates none."""
    spec = replace(job.spec, specs=tuple(replace(each, memory_mib=LEAST) for each in job.spec.specs))
    if job.attempt is None:
        return replace(job, spec=spec)
    placement = tuple(replace(each, memory_mib=0) for each in job.attempt.placement)
    return replace(job, spec=spec, attempt=replace(job.attempt, placement=placement))


def _partition(spec: JobSpec, rules: Cluster) -> str:
    return next(iter(spec.partitions or (each.name for each in rules.partitions if each.default)), "")


def _partition_nodes(spec: JobSpec, rules: Cluster) -> set[str]:
    named = set(spec.partitions or (_partition(spec, rules),))
    return {name for each in rules.partitions if each.name in named for name in each.nodes}
