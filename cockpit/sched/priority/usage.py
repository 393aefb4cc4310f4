"""Accounts usage of associations and QOS: it decays with every update, and grows by running and ending jobs.

Source: Slurm's `priority_multifactor.c` (_apply_decay, _apply_new_usage, _next_reset).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from sys import float_info

import msgspec

from cockpit.model.accounts import Accounts, Association, AssocKey, Qos, QosFlag, Usage
from cockpit.model.cluster import Cluster, Tres, UsageReset
from cockpit.model.ids import Millis, NodeName
from cockpit.model.job import OCCUPYING, Job, JobState
from cockpit.model.node import Node
from cockpit.sched.rules.tres import allocated

_LN_2 = 0.693
"""The natural logarithm of 2, as Slurm rounds it."""


class Ledger(msgspec.Struct, frozen=True):
    """Usage at one moment. Accounts include the usage of their children."""

    associations: dict[AssocKey, Usage]
    qos: dict[str, Usage]
    at: Millis
    """The last update: running jobs are counted up to here."""


class Rules(msgspec.Struct, frozen=True):
    """The rules by which usage is counted."""

    cluster: Cluster
    accounts: Accounts
    nodes: Mapping[NodeName, Node]
    """The nodes, which tell the models of the cards that a job holds."""

    def line(self, job: Job) -> tuple[Association, ...]:
        """Return the association that the job is charged to, and all accounts above it."""
        where = job.attempt.partition if job.attempt is not None else ""
        own = self.accounts.of(job.account, job.submitter.name, where) if job.account else None
        return (own, *self.accounts.above(own)) if own is not None else ()

    def qos(self, job: Job) -> list[str]:
        """Return the job's QOS and that of its partition, each once, if they exist."""
        where = job.attempt.partition if job.attempt is not None else ""
        partition = self.cluster.partition(where) if where else None
        names = (job.qos,) if partition is None or partition.qos == job.qos else (job.qos, partition.qos)
        return [name for name in names if name in self.accounts.qos]

    def charge(self, job: Job) -> bool:
        """Return whether the job's usage is counted: it runs, is not suspended, and is charged to an account or QOS."""
        accounts = self.accounts
        if not (job.account in accounts.names or job.qos in accounts.qos or self.cluster.partitions):
            return False
        if job.attempt is None:
            return False
        runs = job.state in OCCUPYING and job.state is not JobState.SUSPENDED
        return runs and bool(self.line(job) or self.qos(job))


def updated(ledger: Ledger, rules: Rules, jobs: Iterable[Job], now: Millis, *, reset: bool = False) -> Ledger:
    """Return the ledger updated at `now`: all usage decayed (on a reset: dropped), then the running jobs added."""
    decayed_ledger = Ledger({}, {}, ledger.at) if reset else _decayed(ledger, rules, now)
    changed_ledger = _LedgerUpdate(decayed_ledger, rules)
    for job in jobs:
        if job.state in OCCUPYING and job.state is not JobState.SUSPENDED:
            changed_ledger.add(job, now)
    return Ledger(changed_ledger.associations, changed_ledger.qos, max(now, ledger.at))


def with_usage_of(ledger: Ledger, rules: Rules, job: Job, now: Millis) -> Ledger:
    """Return the ledger with what a job that ends at `now` has used since the last update. Nothing decays until the
    next one.

    Returns the same ledger where the job used nothing: it never started, or is not charged.
    """
    if not rules.charge(job):
        return ledger
    changed_ledger = _LedgerUpdate(ledger, rules)
    changed_ledger.add(job, now)
    return Ledger(changed_ledger.associations, changed_ledger.qos, ledger.at)


def after_account_change(used: dict[AssocKey, Usage], before: Accounts, after: Accounts) -> dict[AssocKey, Usage]:
    """Return usage by association after a change of the account tree: an association that moved takes its usage along,
    one that is gone leaves it to the account above. The same mapping if neither happened."""
    if all(key in after.associations and _parent(before, key) == _parent(after, key) for key in used):
        return used
    own = dict(used)  # becomes each association's own usage, without that of its children
    # an account's usage contains its children's: subtracted here, and added again along the new line below
    for key, each in used.items():
        if (above := _parent(before, key)) != key:
            own[above] = _plus(own[above], _times(each, -1.0))
    moved_usage: dict[AssocKey, Usage] = {}
    for key, each in own.items():
        line = (before.associations[key], *before.above(before.associations[key]))
        heir = next(after.associations[member.key] for member in line if member.key in after.associations)
        for member in (heir, *after.above(heir)):
            moved_usage[member.key] = _plus(moved_usage.get(member.key, Usage()), each)
    return moved_usage


def _parent(accounts: Accounts, key: AssocKey) -> AssocKey:
    above = accounts.above(accounts.associations[key])
    return above[0].key if above else key


def decay_per_second(half_life_seconds: int) -> float:
    """Return Slurm's linear approximation of the decay, not 2^(-1/half life). It composes: two half steps are one
    step."""
    return 1 - _LN_2 / half_life_seconds if half_life_seconds > 0 else 1.0


def next_reset(period: UsageReset, last: Millis, utc_offset_seconds: int = 0) -> Millis | None:
    """Return when usage is next reset after the reset at `last`: a midnight at the given offset; None: never."""
    zone = timezone(timedelta(seconds=utc_offset_seconds))
    midnight = datetime.fromtimestamp(last / 1000, zone).replace(hour=0, minute=0, second=0, microsecond=0)
    match period:
        case UsageReset.NONE | UsageReset.NOW:
            return None
        case UsageReset.DAILY:
            following = midnight + timedelta(days=1)
        case UsageReset.WEEKLY:
            # weeks begin on Sunday, whose `isoweekday` is 7: after a reset on a Sunday the next one is a week later
            following = midnight + timedelta(days=7 - midnight.isoweekday() % 7)
        case UsageReset.MONTHLY:
            following = _first_of(midnight, midnight.month + 1)
        case UsageReset.QUARTERLY:
            following = _first_of(midnight, midnight.month + 3 - (midnight.month - 1) % 3)
        case UsageReset.YEARLY:
            following = _first_of(midnight, 13)
    return Millis(int(following.astimezone(UTC).timestamp() * 1000))


def reset_due(period: UsageReset, last: Millis, now: Millis, utc_offset_seconds: int = 0) -> bool:
    """Return whether the update at `now` resets usage. `last` is 0 before the first update: `NOW` resets then, a period
    only begins."""
    if period is UsageReset.NOW:
        return last == 0
    following = next_reset(period, last, utc_offset_seconds) if last else None
    return following is not None and following <= now


def _first_of(day: datetime, month: int) -> datetime:
    return day.replace(year=day.year + (month - 1) // 12, month=(month - 1) % 12 + 1, day=1)


def _decayed(ledger: Ledger, rules: Rules, now: Millis) -> Ledger:
    """Return the ledger with all usage decayed to `now`; the moment of its last update stays."""
    seconds = (now - ledger.at) / 1000
    if seconds <= 0:
        return ledger
    # Slurm raises its linear factor to the seconds passed, and keeps it above 0 for very long gaps
    factor = max(decay_per_second(rules.cluster.priority.decay_half_life_seconds) ** seconds, float_info.min)
    associations = {key: _times(each, factor) for key, each in ledger.associations.items()}
    qos = {
        name: each if _keeps(rules.accounts.qos.get(name)) else _times(each, factor)
        for name, each in ledger.qos.items()
    }
    return Ledger(associations, qos, ledger.at)


def _keeps(qos: Qos | None) -> bool:
    return qos is not None and qos.has(QosFlag.NO_DECAY)


def _times(usage: Usage, factor: float) -> Usage:
    tres = {name: amount * factor for name, amount in usage.tres_seconds.items()}
    return Usage(usage.raw * factor, usage.wall_seconds * factor, tres)


def _plus(usage: Usage, more: Usage) -> Usage:
    names = usage.tres_seconds.keys() | more.tres_seconds.keys()
    tres = {name: usage.tres_seconds.get(name, 0.0) + more.tres_seconds.get(name, 0.0) for name in sorted(names)}
    return Usage(usage.raw + more.raw, usage.wall_seconds + more.wall_seconds, tres)


class _LedgerUpdate:
    """A ledger that is being updated."""

    def __init__(self, ledger: Ledger, rules: Rules) -> None:
        self.associations = dict(ledger.associations)
        self.qos = dict(ledger.qos)
        self._since = ledger.at
        self._rules = rules

    def add(self, job: Job, now: Millis) -> None:
        """Add what the job has used since the last update to its association, all accounts above, its QOS and its
        partition's QOS.

        The amount is decayed as if all of it lay at its beginning, as in Slurm: dt x df^dt.
        """
        if job.attempt is None:
            return
        seconds = max(0, now - max(self._since, job.attempt.counts_from)) / 1000
        decayed = seconds * decay_per_second(self._rules.cluster.priority.decay_half_life_seconds) ** seconds
        qos = self._rules.accounts.qos.get(job.qos)
        factor = qos.usage_factor if qos is not None and qos.usage_factor >= 0 else 1.0
        amounts = allocated(job.attempt.placement, self._rules.nodes)
        used = _usage_of(decayed * factor, job.attempt.billing, amounts)
        for each in self._rules.line(job):
            self.associations[each.key] = _plus(self.associations.get(each.key, Usage()), used)
        for name in self._rules.qos(job):
            # a QOS with NoDecay counts full seconds, also of what is added now
            lasting = _keeps(self._rules.accounts.qos[name])
            self._add_to_qos(name, _usage_of(seconds * factor, job.attempt.billing, amounts) if lasting else used)

    def _add_to_qos(self, name: str, used: Usage) -> None:
        self.qos[name] = _plus(self.qos.get(name, Usage()), used)


def _usage_of(seconds: float, billing: float, amounts: Tres) -> Usage:
    return Usage(billing * seconds, seconds, {name: amount * seconds for name, amount in amounts.items()})
