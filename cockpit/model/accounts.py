"""Accounts, users, QOS and their limits: what `sacctmgr` keeps, as frozen values."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from typing import NewType

import msgspec

from cockpit.model.cluster import Tres

AssocKey = NewType("AssocKey", str)
"""`account/user`, `account/user/partition`, or `account/` for the account itself."""

ROOT = "root"
"""The account above all others; it always exists."""
NORMAL = "normal"
"""The QOS that always exists."""


def assoc_key(account: str, user: str = "", partition: str = "") -> AssocKey:
    return AssocKey(f"{account}/{user}/{partition}" if partition else f"{account}/{user}")


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds by sacctmgr's names; None or an absent resource: no bound.

    On an account, `max_*` bound each of its users by themselves unless the user's association says otherwise, and
    `grp_*` all that runs below it. On a QOS, `max_jobs` and `max_submit` are per user, `grp_*` over all its jobs.
    """

    max_wall_seconds: int | None = None
    max_tres_per_job: Tres = {}
    max_tres_per_node: Tres = {}
    min_tres_per_job: Tres = {}
    max_jobs: int | None = None
    """Running at once."""
    max_submit: int | None = None
    """Queued and running."""
    grp_jobs: int | None = None
    grp_submit: int | None = None
    grp_tres: Tres = {}
    """Held at once."""
    grp_wall_seconds: int | None = None
    """Decayed wall clock of all its jobs."""
    grp_tres_minutes: Tres = {}
    """Decayed usage."""


class QosFlag(StrEnum):
    """sacctmgr's flags of a QOS that mean something here. Of the others `NoReserve`, `Relative` and
    `EnforceUsageThreshold` have no rule."""

    DENY_ON_LIMIT = "DenyOnLimit"
    """A job that breaks a limit by itself is refused at submission; without it, it waits."""
    NO_DECAY = "NoDecay"
    """What is used up stays so."""
    OVER_PART_QOS = "OverPartQOS"
    """Its limits go before those of the partition's QOS."""
    PARTITION_MAX_NODES = "PartitionMaxNodes"
    """The next three lift the partition's bounds."""
    PARTITION_MIN_NODES = "PartitionMinNodes"
    PARTITION_TIME_LIMIT = "PartitionTimeLimit"
    REQUIRES_RESERVATION = "RequiresReservation"
    """Only jobs that name a reservation."""
    USAGE_FACTOR_SAFE = "UsageFactorSafe"
    """Under `safe` a minute of its jobs counts as often as its usage factor says."""


def qos_flag(text: str) -> QosFlag | None:
    """Slurm does not mind the case. None: no such flag."""
    return next((flag for flag in QosFlag if flag.lower() == text.lower()), None)


class Qos(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    priority: int = 0
    limits: Limits = Limits()
    max_tres_per_user: Tres = {}
    max_tres_per_account: Tres = {}
    max_jobs_per_account: int | None = None
    max_submit_per_account: int | None = None
    usage_factor: float = 1.0
    preempt: tuple[str, ...] = ()
    """QOS whose jobs this one's may preempt."""
    preempt_mode: str = ""
    grace_seconds: int = 0
    exempt_seconds: int | None = None
    """PreemptExemptTime of its jobs; None: the cluster's."""
    flags: tuple[str, ...] = ()
    """See `QosFlag`."""

    def has(self, flag: QosFlag) -> bool:
        return any(each.lower() == flag.lower() for each in self.flags)


class Association(msgspec.Struct, frozen=True, kw_only=True):
    """An account (no user), or a user in an account, possibly bound to a partition."""

    account: str
    user: str = ""
    partition: str = ""
    parent: str = ""
    """Of an account: the account above it; empty only for root. Of a user: unused."""
    shares: int | None = 1
    """None: sacctmgr's `parent`, the shares of the account are used as if the user were it."""
    priority: int | None = None
    """None: that of the account above, at the top 0."""
    limits: Limits = Limits()
    qos: tuple[str, ...] = ()
    """QOS that may be used; empty: those of the account above, at the top `normal`."""
    default_qos: str = ""
    default: bool = False
    """The user's default account."""
    coordinators: tuple[str, ...] = ()
    """Of an account: users who administer what is below it."""

    @property
    def key(self) -> AssocKey:
        return assoc_key(self.account, self.user, self.partition)


class Accounts(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The tree. Dicts keep the order in which things were added. As in Slurm it begins with root's own share."""

    associations: dict[AssocKey, Association] = msgspec.field(
        default_factory=lambda: {
            each.key: each for each in (Association(account=ROOT), Association(account=ROOT, user=ROOT))
        }
    )
    qos: dict[str, Qos] = msgspec.field(default_factory=lambda: {NORMAL: Qos(name=NORMAL)})

    @cached_property
    def children(self) -> dict[str, tuple[Association, ...]]:
        """By account: its users and sub-accounts, in the order in which they were added."""
        found: dict[str, list[Association]] = {}
        for each in self.associations.values():
            above = each.account if each.user else each.parent
            if above:
                found.setdefault(above, []).append(each)
        return {account: tuple(below) for account, below in found.items()}

    @cached_property
    def names(self) -> frozenset[str]:
        """Of the accounts that have an association."""
        return frozenset([each.account for each in self.associations.values()])

    def of(self, account: str, user: str, partition: str = "") -> Association | None:
        """The user's association: that of the partition where there is one, else the one bound to none."""
        bound = self.associations.get(assoc_key(account, user, partition)) if partition else None
        return bound or self.associations.get(assoc_key(account, user))

    def is_bound(self, account: str, user: str) -> bool:
        """Whether the user may be served in some partitions (of an account; empty: any) and not in all."""
        own = (each for each in self.associations.values() if each.user == user and account in {"", each.account})
        return any(each.partition for each in own)

    def priority_of(self, each: Association) -> int:
        """Its own, else that of the nearest account above that has one; as slurmdbd fills in what is unset."""
        chain = (each, *self.above(each))
        return next((found.priority for found in chain if found.priority is not None), 0)

    def above(self, each: Association) -> tuple[Association, ...]:
        """The accounts above an association, nearest first, root last."""
        found = []
        account = each.account if each.user else each.parent
        while account and (parent := self.associations.get(assoc_key(account))) is not None:
            found.append(parent)
            account = parent.parent
        return tuple(found)


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one association or QOS has used, decayed to the moment of the last pass."""

    raw: float = 0.0
    """Billing-seconds times usage factor: sshare's RawUsage."""
    wall_seconds: float = 0.0
    tres_seconds: Tres = {}
    fair_share: float | None = None
    """The factor that another scheduler, whose cluster this is, made of usage that is told rounded and of another
    moment. None: it is counted from `raw`."""
