"""Builds the cluster's rules from the records of `scontrol show config` and `show partition`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cockpit.backends.slurm.mapping import values
from cockpit.backends.slurm.mapping.records import Record
from cockpit.backends.slurm.mapping.values import hosts
from cockpit.formats.trestext import NumberMeaning, parse_tres
from cockpit.model.cluster import (
    Backfill,
    BackfillKind,
    Cluster,
    Enforce,
    Partition,
    PartitionState,
    Preemption,
    Priority,
    PriorityFlag,
    PriorityKind,
    Tres,
    UsageReset,
    Weights,
)

CONFIG = ("scontrol", "show", "config")
PARTITIONS = ("scontrol", "-o", "show", "partition")
PARTITION_KEY = "PartitionName"
MINUTE, DAY = 60, 86_400


def cluster(conf: Record, partitions: Iterable[Record]) -> Cluster:
    """Return the scheduling rules of the cluster, without those that the embedded core lacks."""
    return Cluster(
        partitions=tuple(partitions_of(partitions)),
        enforce=tuple(_members(Enforce, conf.get("AccountingStorageEnforce", ""))),
        priority=_priority(conf),
        backfill=_backfill(conf),
        preemption=_preemption(conf),
        # What cockpit shows of a Slurm cluster is configured in Slurm alone.
        mutable=False,
    )


def cluster_name(conf: Record) -> str:
    return conf.get("ClusterName", "slurm")


def version(conf: Record) -> str:
    """Return the controller's version, `22.05.8`; empty if it is unknown."""
    return conf.get("SLURM_VERSION", "")


def _priority(conf: Record) -> Priority:
    """Return the rules of priority in slurm.conf."""
    kind = PriorityKind.MULTIFACTOR if "multifactor" in conf.get("PriorityType", "") else PriorityKind.BASIC
    max_age = values.seconds(conf.get("PriorityMaxAge", ""))
    return Priority(
        kind=kind,
        weights=_weights(conf),
        flags=tuple(each for each in PriorityFlag if each.slurm in conf.get("PriorityFlags", "").split(",")),
        favor_small=values.truth(conf.get("PriorityFavorSmall", "")),
        # Defaults of slurm.conf(5), for clusters whose configuration is not reported (slurmrestd).
        max_age_seconds=7 * DAY if max_age is None else max_age,
        calc_period_seconds=values.seconds(conf.get("PriorityCalcPeriod", "")) or 5 * MINUTE,
        decay_half_life_seconds=values.seconds(conf.get("PriorityDecayHalfLife", "")) or 0,
        usage_reset=next(iter(_members(UsageReset, conf.get("PriorityUsageResetPeriod", ""))), UsageReset.NONE),
        dampening_factor=values.number(conf.get("FairShareDampeningFactor", "")) or 1,
    )


def _weights(conf: Record) -> Weights:
    """Return the weights in slurm.conf."""

    def weight(name: str) -> int:
        return values.number(conf.get(f"PriorityWeight{name}", "")) or 0

    return Weights(
        age=weight("Age"),
        assoc=weight("Assoc"),
        fairshare=weight("FairShare"),
        job_size=weight("JobSize"),
        partition=weight("Partition"),
        qos=weight("QOS"),
        tres=prices(conf.get("PriorityWeightTRES", ""), NumberMeaning.WEIGHT),
    )


def prices(text: str, meaning: NumberMeaning) -> Tres:
    """Return the weights of a text such as `CPU=1.0,Mem=0.25G,GRES/gpu=10`; none where it cannot be read."""
    tres = parse_tres(values.text(text), meaning)
    return tres if not isinstance(tres, str) else {}


def _backfill(conf: Record) -> Backfill:
    """Return the backfill rules: Slurm reserves for each job that it looks at, but only so deep and so far ahead, and
    by whole nodes (`_add_reservation` of its backfill.c takes nodes out of the bitmap of those that are free)."""
    # A missing entry means the default, sched/backfill.
    if "backfill" not in conf.get("SchedulerType", "backfill"):
        return Backfill(kind=BackfillKind.OFF)
    parameters = dict(each.partition("=")[::2] for each in conf.get("SchedulerParameters", "").split(","))
    return Backfill(
        kind=BackfillKind.CONSERVATIVE,
        window_seconds=MINUTE * (values.number(parameters.get("bf_window", "")) or 1440),
        resolution_seconds=values.number(parameters.get("bf_resolution", "")) or 60,
        # The defaults here are those of slurm.conf(5): a window of a day in minutes, 60 seconds, 500 jobs.
        depth=values.number(parameters.get("bf_max_job_test", "")) or 500,
        whole_nodes=True,
    )


def _preemption(conf: Record) -> Preemption:
    return Preemption(
        kind=conf.get("PreemptType", "preempt/none"),
        # `GANG,SUSPEND` is a list: GANG is no mode of its own but goes with one.
        mode=values.names(conf.get("PreemptMode", "")) or ("OFF",),
        exempt_seconds=values.seconds(conf.get("PreemptExemptTime", "")) or 0,
        slice_seconds=values.seconds(conf.get("SchedulerTimeSlice", "")) or 30,
    )


def partitions_of(records: Iterable[Record]) -> Iterator[Partition]:
    """Yield the partitions; a record without a name is left out."""
    return (_partition(record) for record in records if values.text(record.get(PARTITION_KEY, "")))


def _partition(record: Record) -> Partition:
    """Return the partition of a record of `scontrol show partition`."""

    def said(name: str) -> str:
        return record.get(name, "")

    return Partition(
        name=record[PARTITION_KEY],
        nodes=hosts(values.text(said("Nodes"))),
        default=values.truth(said("Default")),
        state=next(iter(_members(PartitionState, said("State").lower())), PartitionState.UP),
        max_time_seconds=values.seconds(said("MaxTime")),
        default_time_seconds=values.seconds(said("DefaultTime")),
        min_nodes=values.number(said("MinNodes")) or 0,
        max_nodes=values.number(said("MaxNodes")),
        allow_accounts=values.names(said("AllowAccounts")),
        deny_accounts=values.names(said("DenyAccounts")),
        allow_qos=values.names(said("AllowQos")),
        deny_qos=values.names(said("DenyQos")),
        qos=values.text(said("QoS")),
        priority_job_factor=values.number(said("PriorityJobFactor")) or 0,
        priority_tier=values.number(said("PriorityTier")) or 0,
        preempt_mode=values.text(said("PreemptMode")),
        grace_seconds=values.number(said("GraceTime")) or 0,
        billing_weights=prices(said("TRESBillingWeights"), NumberMeaning.PRICE),
    )


def _members(kind: type, printed: str) -> Iterable:  # type: ignore[type-arg] # of that kind
    """Return the members of the kind that the list names; Slurm ignores case."""
    known = {str(each).lower(): each for each in kind}  # type: ignore[attr-defined] # an enum
    return [known[word] for word in (each.strip().lower() for each in printed.split(",")) if word in known]
