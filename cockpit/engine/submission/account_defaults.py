"""Chooses what a submission leaves open: account, QOS, partitions, and the partition's default time limit.

Refuses what Slurm refuses at submission. What may become possible later, by waiting or through an administrator, is
accepted, and the scheduler keeps the job in the queue with a reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from cockpit.model.accounts import NORMAL, Accounts, Association, QosFlag
from cockpit.model.cluster import Enforce, Partition, PartitionState
from cockpit.model.fleet import OVER_CLUSTERS
from cockpit.model.reasons import NoAssociation, PartitionRefuses, PartitionRule, QosRefused, Reason
from cockpit.model.spec import JobSpec, PriorityWord
from cockpit.model.text import visible
from cockpit.sched.rules.partitions import about_owner
from cockpit.sched.rules.rulebook import allowed_qos, enforced

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cockpit.engine.state import ClusterState
    from cockpit.model.job import Submitter

_TAKES_NOTHING = (PartitionState.DRAIN, PartitionState.INACTIVE)


class Charge(NamedTuple):
    """Where a job may run and what it is charged to, or why it is refused."""

    spec: JobSpec
    """The job's specification, with its final time limit."""
    account: str = ""
    qos: str = ""
    partitions: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    """Sentences, each behind the path of the field that it is about."""
    reasons: tuple[tuple[str, Reason], ...] = ()
    """Reasons of the rules, each with the path of a field."""


def charge(state: ClusterState, spec: JobSpec, who: Submitter) -> Charge:
    """Choose partitions, time limit, account and QOS of a job that the user `who` submits, in this order.

    The order matters: the partitions decide the default time limit and which association counts, and that decides
    which QOS are allowed.
    """
    partitions, unknown = _partitions(state, spec)
    spec = _with_limit(spec, partitions)
    account = spec.account or default_account(state.accounts, who.name)
    parts = enforced(state.cluster.enforce)
    association = _association(state.accounts, account, who.name, partitions)
    # Without an association neither QOS nor limits can be chosen, so nothing else is checked.
    if association is None and Enforce.ASSOCIATIONS in parts:
        bound = state.accounts.is_bound(spec.account or "", who.name)
        where = next((each.name for each in partitions), "") if bound else ""
        reason = NoAssociation(who.name, spec.account or "", where)
        return Charge(spec, errors=tuple(unknown), reasons=(("account", reason),))
    # Also where nothing is enforced: the QOS still has a priority, and counts what its jobs use.
    qos = spec.qos or usual_qos(state.accounts, association, spec.priority)
    errors = [*unknown, *_qos_errors(state.accounts, spec)]
    reasons: list[tuple[str, Reason]] = []
    if Enforce.QOS in parts and association is not None:
        if qos not in (allowed := allowed_qos(state.accounts, association)):
            reasons.append(("qos", QosRefused(qos, allowed)))
        errors += _without_reservation(state.accounts, qos, spec)
    # The default partition is in no field of the spec, so that the error points at what the partition refuses.
    path = "partitions" if spec.partitions else "account"
    reasons += [(path, refused) for refused in _refused(partitions, account, qos, who.name)]
    return Charge(spec, account, qos, tuple(each.name for each in partitions), tuple(errors), tuple(reasons))


def default_account(accounts: Accounts, user: str) -> str:
    """Return the account of a user's jobs that name none: the one marked as default, else the first; empty: none."""
    own = [each for each in accounts.associations.values() if each.user == user]
    return next((each.account for each in own if each.default), own[0].account if own else "")


def _partitions(state: ClusterState, spec: JobSpec) -> tuple[list[Partition], list[str]]:
    """Return the job's partitions, and an error for each that does not exist.

    These are the partitions that the spec names, else the default one; on a fleet, where each member is a partition,
    all members.
    """
    if state.cluster.members and not spec.partitions:
        # In the members' order; the partition over all clusters only for jobs that may be divided.
        names = [each.name for each in state.cluster.members] + [OVER_CLUSTERS] * spec.divide_over_clusters
        return [each for each in state.cluster.partitions if each.name in names], []
    if state.cluster.members and OVER_CLUSTERS in spec.partitions and not spec.divide_over_clusters:
        return [], [f"partitions: {OVER_CLUSTERS} is of all clusters; say divide_over_clusters: true with it"]
    default = state.cluster.default_partition
    partitions = [state.cluster.partition(name) for name in spec.partitions] or [default]
    names_listed = ", ".join(each.name for each in state.cluster.partitions[:10]) or "none"
    # Without names in the spec `zip` yields nothing: a cluster without a default partition is no error of the job.
    unknown = [
        f'partitions: there is no partition "{visible(name)}"; there are: {names_listed}'
        for name, partition in zip(spec.partitions, partitions, strict=False)
        if partition is None
    ]
    return [each for each in partitions if each is not None], unknown


def _with_limit(spec: JobSpec, partitions: Iterable[Partition]) -> JobSpec:
    """Return the spec with its final time limit.

    Without a limit of its own the job gets the least default of its partitions; a partition without a default counts
    with its maximum.
    """
    if not spec.limit_by_default:
        return spec
    limits = (each.default_time_seconds or each.max_time_seconds for each in partitions)
    # The job may start in any of them, and must keep the limits of each.
    least = min((limit for limit in limits if limit is not None), default=spec.time_limit_seconds)
    return replace(spec, time_limit_seconds=least, limit_by_default=False)


def _association(accounts: Accounts, account: str, user: str, partitions: Iterable[Partition]) -> Association | None:
    """Return the user's association with the account: of the first partition that has one, else the general one."""
    if not account:
        return None
    own = (accounts.of(account, user, each.name) for each in partitions)
    return next((each for each in own if each is not None), None) or accounts.of(account, user)


def usual_qos(accounts: Accounts, association: Association | None, word: PriorityWord) -> str:
    """Return the QOS of a job that names none; the first of these that applies:

    1. the QOS with the name of the job's priority word, if the association may use it,
    2. the default of the association, or of the nearest account above it that has one,
    3. `normal`, if the association may use it,
    4. the first QOS that the association may use.
    """
    allowed = allowed_qos(accounts, association) if association is not None else tuple(accounts.qos)
    if word is not PriorityWord.NORMAL and word.value in accounts.qos and word.value in allowed:
        return word.value
    ancestry = (association, *accounts.above(association)) if association is not None else ()
    default = next((each.default_qos for each in ancestry if each.default_qos), "")
    return default or (NORMAL if NORMAL in allowed else next(iter(allowed), NORMAL))


def _qos_errors(accounts: Accounts, spec: JobSpec) -> list[str]:
    if spec.qos is None or spec.qos in accounts.qos:
        return []
    return [f'qos: there is no QOS "{visible(spec.qos)}"; there are: {", ".join(list(accounts.qos)[:10])}']


def _without_reservation(accounts: Accounts, qos: str, spec: JobSpec) -> list[str]:
    if spec.reservation or qos not in accounts.qos or not accounts.qos[qos].has(QosFlag.REQUIRES_RESERVATION):
        return []
    return [f"reservation: QOS {qos} serves only jobs in a reservation; name one, or another qos"]


def _refused(partitions: Iterable[Partition], account: str, qos: str, user: str) -> Iterator[PartitionRefuses]:
    """Yield each partition that refuses the job. One is enough to refuse the submission, as in Slurm."""
    for each in partitions:
        if each.state in _TAKES_NOTHING:
            yield PartitionRefuses(each.name, PartitionRule.STATE, each.state)
        if (excluded := about_owner(each, user, account, qos)) is not None:
            yield excluded
