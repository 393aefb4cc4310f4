"""Accounts, users, QOS and their limits, as `sacctmgr` has them, and the checks of every tree of accounts."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple, NewType

import msgspec

from cockpit.model.cluster import Tres
from cockpit.model.text import visible

AssocKey = NewType("AssocKey", str)
"""The key of an association: `account/user`, `account/user/partition`, or `account/` for the account itself."""

ROOT = "root"
"""The account above all others; it always exists."""
NORMAL = "normal"
"""The QOS that always exists."""


def assoc_key(account: str, user: str = "", partition: str = "") -> AssocKey:
    """Return the key of an association."""
    return AssocKey(f"{account}/{user}/{partition}" if partition else f"{account}/{user}")


class ResourceLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of an association or QOS, by sacctmgr's names. None or an absent resource: no limit.

    On an account, `max_*` limit each of its users separately unless the user's association has its own, and `grp_*`
    limit all jobs below it together. On a QOS, `max_jobs` and `max_submit` are for each user, and `grp_*` for all its
    jobs together.
    """

    max_wall_seconds: int | None = None
    max_tres_per_job: Tres = {}
    max_tres_per_node: Tres = {}
    min_tres_per_job: Tres = {}
    max_jobs: int | None = None
    """The most running jobs."""
    max_submit: int | None = None
    """The most queued and running jobs together."""
    grp_jobs: int | None = None
    grp_submit: int | None = None
    grp_tres: Tres = {}
    """The most resources that running jobs occupy together."""
    grp_wall_seconds: int | None = None
    """The most decayed run time of all jobs together."""
    grp_tres_minutes: Tres = {}
    """The most decayed usage of all jobs together."""


class QosFlag(StrEnum):
    """sacctmgr's flags of a QOS that cockpit follows. It does not follow `NoReserve`, `Relative` and
    `EnforceUsageThreshold`."""

    DENY_ON_LIMIT = "DenyOnLimit"
    """A job that alone exceeds a limit is refused at submission; without the flag it waits."""
    NO_DECAY = "NoDecay"
    """The usage of the QOS does not decay."""
    OVER_PART_QOS = "OverPartQOS"
    """Its limits take precedence over those of the partition's QOS."""
    PARTITION_MAX_NODES = "PartitionMaxNodes"
    """Its jobs may exceed the partition's most nodes; the next two flags lift its least nodes and time limit."""
    PARTITION_MIN_NODES = "PartitionMinNodes"
    PARTITION_TIME_LIMIT = "PartitionTimeLimit"
    REQUIRES_RESERVATION = "RequiresReservation"
    """Only jobs that name a reservation may use it."""
    USAGE_FACTOR_SAFE = "UsageFactorSafe"
    """With AccountingStorageEnforce=safe, the expected usage of its jobs is multiplied by its usage factor."""


def qos_flag(text: str) -> QosFlag | None:
    """Return the flag of this name in any case, as Slurm reads it; None: there is none."""
    return next((flag for flag in QosFlag if flag.lower() == text.lower()), None)


class Qos(msgspec.Struct, frozen=True, kw_only=True):
    """A quality of service: a priority, limits, and which other QOS it may preempt."""

    name: str
    priority: int = 0
    limits: ResourceLimits = ResourceLimits()
    max_tres_per_user: Tres = {}
    max_tres_per_account: Tres = {}
    max_jobs_per_account: int | None = None
    max_submit_per_account: int | None = None
    usage_factor: float = 1.0
    preempt: tuple[str, ...] = ()
    """The QOS whose jobs its jobs may preempt."""
    # Empty: the cluster's own mode applies, as in Slurm.
    preempt_mode: str = ""
    grace_seconds: int = 0
    exempt_seconds: int | None = None
    """PreemptExemptTime of its jobs; None: the cluster's."""
    flags: tuple[str, ...] = ()
    """The flags, by the names in `QosFlag`."""

    def has(self, flag: QosFlag) -> bool:
        """Tell whether the QOS has the flag, in any case."""
        return any(each.lower() == flag.lower() for each in self.flags)


class Association(msgspec.Struct, frozen=True, kw_only=True):
    """An account (with an empty `user`), or a user in an account, possibly only for one partition."""

    account: str
    user: str = ""
    partition: str = ""
    parent: str = ""
    """The account above an account, empty only for root. Unused for users."""
    # 1 is sacctmgr's default for an association without a Fairshare.
    shares: int | None = 1
    """The fair-share shares; None: sacctmgr's `parent`, which gives the user the account's own share."""
    priority: int | None = None
    """The priority factor; None: that of the account above, or 0 at the top."""
    limits: ResourceLimits = ResourceLimits()
    qos: tuple[str, ...] = ()
    """The QOS that may be used; empty: those of the account above, or `normal` at the top."""
    default_qos: str = ""
    """The QOS of jobs that name none; empty: that of the account above."""
    default: bool = False
    """Whether this is the user's default account."""
    coordinators: tuple[str, ...] = ()
    """The users who administer what is below an account."""

    @property
    def key(self) -> AssocKey:
        """The key of the association."""
        return assoc_key(self.account, self.user, self.partition)


class Accounts(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The tree of accounts, and all QOS, in the order in which they were added.

    As in Slurm, it begins with the account root and the user root in it.
    """

    associations: dict[AssocKey, Association] = msgspec.field(
        default_factory=lambda: {
            each.key: each for each in (Association(account=ROOT), Association(account=ROOT, user=ROOT))
        }
    )
    qos: dict[str, Qos] = msgspec.field(default_factory=lambda: {NORMAL: Qos(name=NORMAL)})

    @cached_property
    def children(self) -> dict[str, tuple[Association, ...]]:
        """The users and subaccounts of each account, in the order in which they were added."""
        # Cached, since a tree is frozen: each change of accounts makes another tree.
        by_account: dict[str, list[Association]] = {}
        for each in self.associations.values():
            above = each.account if each.user else each.parent
            # Root is the only association without one above.
            if above:
                by_account.setdefault(above, []).append(each)
        return {account: tuple(below) for account, below in by_account.items()}

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all accounts."""
        return frozenset([each.account for each in self.associations.values()])

    def of(self, account: str, user: str, partition: str = "") -> Association | None:
        """Return the user's association with the account: of the partition, else the general one; None: neither."""
        bound = self.associations.get(assoc_key(account, user, partition)) if partition else None
        # As slurmdbd does: the association of the partition wins, else the one without a partition serves.
        return bound or self.associations.get(assoc_key(account, user))

    def is_bound(self, account: str, user: str) -> bool:
        """Tell whether the user has associations for single partitions with the account (empty: with any)."""
        own = (each for each in self.associations.values() if each.user == user and account in {"", each.account})
        return any(each.partition for each in own)

    def priority_of(self, each: Association) -> int:
        """Return the association's priority, else that of the nearest account above that has one (as in slurmdbd)."""
        chain = (each, *self.above(each))
        return next((link.priority for link in chain if link.priority is not None), 0)

    def above(self, each: Association) -> tuple[Association, ...]:
        """Return the accounts above an association, nearest first, root last."""
        parents = []
        account = each.account if each.user else each.parent
        # Ends at root, whose parent is empty. Loops are refused before a tree is accepted (`account_troubles`).
        while account and (parent := self.associations.get(assoc_key(account))) is not None:
            parents.append(parent)
            account = parent.parent
        return tuple(parents)


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """The usage of an association or QOS, decayed up to the last decay of all usage."""

    raw: float = 0.0
    """The usage in billing-seconds times usage factor: sshare's RawUsage."""
    wall_seconds: float = 0.0
    """The run time of all jobs together."""
    tres_seconds: Tres = {}
    """The usage of each TRES, in its unit times seconds."""
    fair_share: float | None = None
    """The fair-share factor that the cluster's own scheduler reports, where it cannot be computed exactly from the
    rounded usage that it prints; None: it is computed from `raw`."""


class TreeError(NamedTuple):
    """An error in one association, or in a QOS (then `key` is its name)."""

    key: AssocKey | str
    field: str
    sentence: str


def account_troubles(accounts: Accounts) -> Iterator[TreeError]:
    """Yield everything that is wrong with the tree."""
    for key, each in accounts.associations.items():
        yield from (TreeError(key, field, sentence) for field, sentence in _place(accounts, each))
        yield from (TreeError(key, field, sentence) for field, sentence in _qos(accounts, each))
    for name, qos in accounts.qos.items():
        for other in qos.preempt:
            if other not in accounts.qos:
                yield TreeError(name, "preempt", unknown_qos(accounts, other))


def unknown_qos(accounts: Accounts, name: str) -> str:
    """Return the error for a name that is no QOS."""
    return f"there is no QOS {visible(name)}; there are {', '.join(list(accounts.qos)[:10])}"


def _place(accounts: Accounts, each: Association) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the position of an association in the tree, by its field."""
    above = each.account if each.user else each.parent
    if each.account == ROOT and not each.user:
        if each.parent:
            yield "parent", "root is above all accounts; leave it out"
    elif assoc_key(above) not in accounts.associations:
        yield "account" if each.user else "parent", f"there is no account {visible(above)}"
    elif not each.user and not _reaches_root(accounts, each):
        yield "parent", f"{visible(each.account)} would be above itself"
    if each.user and each.coordinators:
        yield "coordinators", "are an account's, not a user's"


def _reaches_root(accounts: Accounts, each: Association) -> bool:
    """Return whether the chain of parents ends at root or at a missing account, which has an error of its own."""
    seen = {each.account}
    # Each account is visited once, so that a loop ends.
    while each.parent:
        if each.parent in seen:
            return False
        seen.add(each.parent)
        above = accounts.associations.get(assoc_key(each.parent))
        if above is None:
            return True
        each = above
    return True


def _qos(accounts: Accounts, each: Association) -> Iterator[tuple[str, str]]:
    for name in each.qos:
        if name not in accounts.qos:
            yield "qos", unknown_qos(accounts, name)
    if each.default_qos and each.default_qos not in accounts.qos:
        yield "default_qos", unknown_qos(accounts, each.default_qos)
