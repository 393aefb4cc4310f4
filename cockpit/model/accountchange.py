"""The changes of accounts, users and QOS that can be requested. A field that is None stays as it is; -1 removes a
limit, as in sacctmgr."""

from __future__ import annotations

import msgspec

from cockpit.model.cluster import Tres

# Not None: in a change None leaves the limit as it is.
CLEAR = -1
PARENT = "parent"
"""Shares: the user takes part with the account's own."""


# omit_defaults, here and below: a change is sent, compared and shown by the few fields that it has.
class LimitsChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Fields of `accounts.ResourceLimits`. Of amounts, only the resources that are named change."""

    max_wall_seconds: int | None = None
    max_tres_per_job: Tres = {}
    max_tres_per_node: Tres = {}
    min_tres_per_job: Tres = {}
    max_jobs: int | None = None
    max_submit: int | None = None
    grp_jobs: int | None = None
    grp_submit: int | None = None
    grp_tres: Tres = {}
    grp_wall_seconds: int | None = None
    grp_tres_minutes: Tres = {}


class AssociationChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change of an account's or a user's association. In lists, `+name` adds and `-name` removes; other names replace
    the list."""

    parent: str | None = None
    shares: int | str | None = None
    """-1: the usual 1."""
    priority: int | None = None
    """-1: that of the account above."""
    qos: tuple[str, ...] | None = None
    """The permitted QOS; empty: those of the account above."""
    default_qos: str | None = None
    """The default QOS; empty: none."""
    default: bool | None = None
    limits: LimitsChange = LimitsChange()


class QosChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    priority: int | None = None
    limits: LimitsChange = LimitsChange()
    max_tres_per_user: Tres = {}
    max_tres_per_account: Tres = {}
    max_jobs_per_account: int | None = None
    max_submit_per_account: int | None = None
    usage_factor: float | None = None
    preempt: tuple[str, ...] | None = None
    preempt_mode: str | None = None
    grace_seconds: int | None = None
    exempt_seconds: int | None = None
    flags: tuple[str, ...] | None = None


class AddAccount(msgspec.Struct, frozen=True, tag="add_account"):
    name: str
    change: AssociationChange = AssociationChange()


class ModifyAccount(msgspec.Struct, frozen=True, tag="modify_account"):
    name: str
    change: AssociationChange


class RemoveAccount(msgspec.Struct, frozen=True, tag="remove_account"):
    """Remove an account and everything below it."""

    name: str


class AddUser(msgspec.Struct, frozen=True, tag="add_user"):
    """Add a user to an account, for all partitions or for one."""

    user: str
    account: str
    partition: str = ""
    change: AssociationChange = AssociationChange()


class ModifyUser(msgspec.Struct, frozen=True, tag="modify_user"):
    """Change a user in one account or, with an empty account, in all of them; likewise for the partition."""

    user: str
    change: AssociationChange
    account: str = ""
    partition: str = ""


class RemoveUser(msgspec.Struct, frozen=True, tag="remove_user"):
    """Remove a user from one account or, with an empty account, from all; likewise for the partition."""

    user: str
    account: str = ""
    partition: str = ""


class AddQos(msgspec.Struct, frozen=True, tag="add_qos"):
    name: str
    change: QosChange = QosChange()


class ModifyQos(msgspec.Struct, frozen=True, tag="modify_qos"):
    name: str
    change: QosChange


class RemoveQos(msgspec.Struct, frozen=True, tag="remove_qos"):
    name: str


class AddCoordinators(msgspec.Struct, frozen=True, tag="add_coordinators"):
    account: str
    users: tuple[str, ...]


class RemoveCoordinators(msgspec.Struct, frozen=True, tag="remove_coordinators"):
    account: str
    users: tuple[str, ...]


# A union of tagged structs: what carries a change out matches all of them, and mypy names one that was forgotten.
AccountChange = (
    AddAccount
    | ModifyAccount
    | RemoveAccount
    | AddUser
    | ModifyUser
    | RemoveUser
    | AddQos
    | ModifyQos
    | RemoveQos
    | AddCoordinators
    | RemoveCoordinators
)
