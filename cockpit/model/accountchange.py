"""What can be asked of the accounts. A field that is None stays as it is; -1 takes a limit away, as in sacctmgr."""

from __future__ import annotations

import msgspec

from cockpit.model.cluster import Tres

CLEAR = -1
PARENT = "parent"
"""Shares: the user takes part with the account's own."""


class LimitsChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Fields of `accounts.Limits`. Of amounts, only the resources that are named change."""

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
    """Of an account or a user. Of lists, `+name` adds and `-name` takes away; other names replace them."""

    parent: str | None = None
    shares: int | str | None = None
    """-1: the usual 1."""
    priority: int | None = None
    """-1: that of the account above."""
    qos: tuple[str, ...] | None = None
    """Empty: those of the account above."""
    default_qos: str | None = None
    """Empty: none."""
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
    """With everything below it."""

    name: str


class AddUser(msgspec.Struct, frozen=True, tag="add_user"):
    """To an account, everywhere or in one partition."""

    user: str
    account: str
    partition: str = ""
    change: AssociationChange = AssociationChange()


class ModifyUser(msgspec.Struct, frozen=True, tag="modify_user"):
    """In one account, or (empty) wherever the user is; likewise the partition."""

    user: str
    change: AssociationChange
    account: str = ""
    partition: str = ""


class RemoveUser(msgspec.Struct, frozen=True, tag="remove_user"):
    """From one account, or (empty) from everywhere; likewise the partition."""

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
