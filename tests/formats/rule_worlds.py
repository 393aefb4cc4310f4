"""Files of rules as hypothesis makes them: whatever cluster.toml can say."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from cockpit.formats.cluster.fields import ClusterFile
from cockpit.formats.cluster.rule_fields import Accounting
from cockpit.model.accounts import Association, Qos, ResourceLimits
from cockpit.model.cluster import (
    Backfill,
    BackfillKind,
    Enforce,
    Partition,
    PartitionState,
    Preemption,
    Priority,
    PriorityFlag,
    PriorityKind,
    UsageReset,
    Weights,
)

names = st.text("abcdefgh0123_-.", min_size=1, max_size=8).map(lambda text: f"n{text}")
few_names = st.lists(names, max_size=3, unique=True).map(tuple)
seconds = st.integers(0, 10**7)
counts = st.integers(0, 10**6)
amounts = st.one_of(st.integers(0, 10**6).map(float), st.floats(0, 1e6, allow_nan=False))
tres = st.dictionaries(st.sampled_from(["cpu", "mem", "node", "billing", "gres/gpu", "gres/gpu:a100"]), amounts)
scripts = st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1), max_size=2)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), strategy)


weights = st.builds(Weights, age=counts, assoc=counts, fairshare=counts, job_size=counts, qos=counts, tres=tres)
priorities = st.builds(
    Priority,
    kind=st.sampled_from(PriorityKind),
    weights=weights,
    flags=st.lists(st.sampled_from(PriorityFlag), unique=True, max_size=4).map(tuple),
    favor_small=st.booleans(),
    max_age_seconds=seconds,
    calc_period_seconds=st.integers(1, 86_400),
    decay_half_life_seconds=seconds,
    usage_reset=st.sampled_from(UsageReset),
    dampening_factor=st.integers(1, 100),
)
backfills = st.builds(
    Backfill,
    kind=st.sampled_from(BackfillKind),
    window_seconds=seconds,
    resolution_seconds=st.integers(0, 86_400),
    depth=counts,
)
preemptions = st.sampled_from(
    [
        Preemption(),
        Preemption(mode=("GANG",)),
        Preemption(kind="preempt/qos", mode=("REQUEUE", "WITHIN"), exempt_seconds=5),
        Preemption(kind="preempt/partition_prio", mode=("SUSPEND", "GANG"), slice_seconds=10),
    ]
)
limits = st.builds(
    ResourceLimits,
    max_wall_seconds=maybe(seconds),
    max_tres_per_job=tres,
    max_tres_per_node=tres,
    min_tres_per_job=tres,
    max_jobs=maybe(counts),
    max_submit=maybe(counts),
    grp_jobs=maybe(counts),
    grp_submit=maybe(counts),
    grp_tres=tres,
    grp_wall_seconds=maybe(seconds),
    grp_tres_minutes=tres,
)


@st.composite
def partitions(draw: st.DrawFn) -> tuple[Partition, ...]:
    found = draw(st.lists(names, max_size=3, unique=True))
    default = draw(st.sampled_from([*found, ""]))
    return tuple(draw(partition(name, default=name == default)) for name in found)


@st.composite
def partition(draw: st.DrawFn, name: str, *, default: bool) -> Partition:
    usual, longest = sorted((draw(seconds), draw(seconds)))
    allow = draw(st.booleans())
    return Partition(
        name=name,
        pools=draw(few_names),
        default=default,
        state=draw(st.sampled_from(PartitionState)),
        max_time_seconds=draw(maybe(st.just(longest))),
        default_time_seconds=draw(maybe(st.just(usual))),
        min_nodes=draw(st.integers(0, 4)),
        max_nodes=draw(maybe(st.integers(4, 9))),
        allow_accounts=draw(few_names) if allow else (),
        deny_accounts=() if allow else draw(few_names),
        allow_qos=() if allow else draw(few_names),
        deny_qos=draw(few_names) if allow else (),
        allow_users=draw(few_names),
        qos=draw(st.sampled_from(["", "normal"])),
        priority_job_factor=draw(st.integers(0, 60_000)),
        priority_tier=draw(st.integers(0, 60_000)),
        grace_seconds=draw(st.sampled_from((0, 90))),
        preempt_mode=draw(st.sampled_from(["", "OFF", "REQUEUE"])),
        billing_weights=draw(tres),
    )


@st.composite
def cluster_files(draw: st.DrawFn) -> ClusterFile:
    """Files that a machine named `box` accepts."""
    parts = draw(partitions())
    login = draw(st.sampled_from(["", "login"]))
    pools = {pool: () for each in parts for pool in each.pools} | {"login": ()}
    qos = draw(st.lists(st.builds(Qos, name=names, priority=counts, limits=limits, usage_factor=amounts), max_size=2))
    accounts = draw(st.lists(names, max_size=3, unique=True))
    return ClusterFile(
        mutable=draw(st.booleans()),
        urgent_jobs=draw(maybe(counts)),
        login_node_pool=login,
        home_directory_storage=draw(st.sampled_from(["", "/srv/home"])),
        prolog_bash_scripts=tuple(draw(scripts)),
        epilog_bash_scripts=tuple(draw(scripts)),
        node_pools=pools,
        accounting=Accounting(tuple(draw(st.sets(st.sampled_from(Enforce))))),
        priority=draw(priorities),
        backfill=draw(backfills),
        preemption=draw(preemptions),
        partitions=parts,
        qos=tuple({each.name: each for each in qos}.values()),
        accounts=tuple(Association(account=name, parent="root", shares=draw(maybe(counts))) for name in accounts),
        users=tuple(Association(account=name, user="alice", limits=draw(limits)) for name in accounts),
    )
