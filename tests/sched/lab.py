"""One big node, an account tree `lab` > `nlp` > ann and bob, and limits wherever a test puts them."""

from __future__ import annotations

from msgspec.structs import replace

from cockpit.model.accounts import NORMAL, ROOT, Accounts, Association, Qos, ResourceLimits, assoc_key
from cockpit.model.cluster import Cluster, Enforce, Partition
from cockpit.model.ids import JobId
from cockpit.model.reasons import LimitReached
from tests.sched.world import World, cards, node, spec_of, wants

NODE = node("n1", cards(8, "A100"), cpus=64, memory_mib=65536)


def tree(*, user=None, nlp=None, lab=None, root=None, normal=None, **qos) -> Accounts:
    """Limits by whose they are; `normal` and others: fields of QOS."""
    lines = [
        Association(account=ROOT, limits=ResourceLimits(**(root or {}))),
        Association(account="lab", parent=ROOT, limits=ResourceLimits(**(lab or {}))),
        Association(account="nlp", parent="lab", limits=ResourceLimits(**(nlp or {}))),
        Association(account="nlp", user="ann", limits=ResourceLimits(**(user or {}))),
        Association(account="nlp", user="bob"),
        Association(account="other", parent=ROOT),
        Association(account="other", user="ann"),
    ]
    named = {NORMAL: normal or {}, **qos}
    return Accounts(
        associations={each.key: each for each in lines},
        qos={name: Qos(name=name, **fields) for name, fields in named.items()},
    )


def world(accounts: Accounts, *enforce: Enforce, partitions: tuple[Partition, ...] = (), **rules) -> World:
    cluster = Cluster(enforce=enforce or (Enforce.LIMITS,), partitions=partitions)
    return World(NODE, cluster=cluster, accounts=accounts, **rules)


def submit(world: World, *, cpus: int = 1, card: float = 0, user: str = "ann", account: str = "nlp", **fields) -> JobId:
    """`qos`, `partitions` and `array` go into the record, everything else into the spec."""
    record = {"qos": NORMAL} | {name: fields.pop(name) for name in ("qos", "partitions", "array") if name in fields}
    spec = spec_of(wants(round(1000 * card), cpus=cpus), **fields)
    return world.submit_spec(spec, user=user, account=account, **record)


def starts(world: World, job: JobId) -> bool:
    return job in [start.job for start in world.cycle().starts]


_FIELDS = {
    "MaxWall": "max_wall_seconds",
    "MaxTRESPerJob": "max_tres_per_job",
    "MaxTRESPerNode": "max_tres_per_node",
    "MinTRESPerJob": "min_tres_per_job",
    "MaxJobs": "max_jobs",
    "MaxJobsPerUser": "max_jobs",
    "GrpJobs": "grp_jobs",
    "GrpTRES": "grp_tres",
    "GrpWall": "grp_wall_seconds",
    "GrpTRESMins": "grp_tres_minutes",
}
_OF_QOS = {
    "MaxTRESPerUser": "max_tres_per_user",
    "MaxTRESPerAccount": "max_tres_per_account",
    "MaxJobsPerAccount": "max_jobs_per_account",
}


def moved(accounts: Accounts, reason: LimitReached, allowed: float) -> Accounts:
    """The same accounts with exactly the limit that the reason names at another value."""

    def at(value):
        if isinstance(value, dict):
            return {**value, reason.resource: allowed}
        return allowed

    kind, name, *_ = reason.holder.split()
    if kind == "qos":
        qos = accounts.qos[name]
        if reason.limit in _OF_QOS:
            field = _OF_QOS[reason.limit]
            qos = replace(qos, **{field: at(getattr(qos, field))})
        else:
            field = _FIELDS[reason.limit]
            qos = replace(qos, limits=replace(qos.limits, **{field: at(getattr(qos.limits, field))}))
        return Accounts(associations=accounts.associations, qos={**accounts.qos, name: qos})
    key = assoc_key(name) if kind == "account" else assoc_key(reason.holder.split()[-1], name)
    line, field = accounts.associations[key], _FIELDS[reason.limit]
    line = replace(line, limits=replace(line.limits, **{field: at(getattr(line.limits, field))}))
    return Accounts(associations={**accounts.associations, key: line}, qos=accounts.qos)
