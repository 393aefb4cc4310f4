"""The columns of the tree of accounts, and of the QOS; limits by sacctmgr's names."""

from __future__ import annotations

from math import isinf
from typing import Final

from cockpit.formats.slurm.sacctmgr import limit_words, qos_words, shares_text
from cockpit.model.accounts import Qos
from cockpit.model.view import AccountRow
from cockpit.present.columns import NOTHING, Column, Context, TableView, ValueKind
from cockpit.present.safe import safe

INDENT: Final = "  "


def shares(row: AccountRow, _: Context) -> str:
    return shares_text(row.association)


def limits(row: AccountRow, _: Context) -> tuple[str, ...]:
    return limit_words(row.association.limits)


def used(row: AccountRow, _: Context) -> int:
    """sshare's RawUsage is whole too."""
    return round(row.used)


def norm_shares(row: AccountRow, _: Context) -> float:
    return round(row.norm_shares, 6)


def norm_usage(row: AccountRow, _: Context) -> float:
    return round(row.norm_usage, 6)


def effective_usage(row: AccountRow, _: Context) -> float:
    return round(row.effective_usage, 6)


def level_fs(row: AccountRow, _: Context) -> float | None:
    """JSON has no infinity: what used nothing has none there."""
    return None if row.level_fs is None or isinf(row.level_fs) else round(row.level_fs, 6)


def level_words(row: AccountRow, _: Context) -> str:
    """As sshare writes it, shorter."""
    return NOTHING if row.level_fs is None else f"{row.level_fs:.4g}"


def fair_share(row: AccountRow, _: Context) -> float | None:
    return None if row.fair_share is None else round(row.fair_share, 6)


def tree_name(row: AccountRow, _: Context) -> str:
    """The account, set in as deep as it stands; a user's one deeper than the account, as in sshare."""
    return f"{INDENT * row.depth}{safe(row.association.account)}"


def qos_settings(row: Qos, _: Context) -> tuple[str, ...]:
    return qos_words(row)


ACCOUNTS: Final = TableView(
    name="accounts",
    identity=("account", "user", "partition"),
    help="Accounts and their users as a tree, with shares, limits and what they use",
    empty="No accounts. One is added by: cockpit accounts add vision --shares 60",
    columns=(
        Column("account", "ACCOUNT", ValueKind.TEXT, "The account", field="association.account", words=tree_name),
        Column("user", "USER", ValueKind.TEXT, "The user; empty: the account itself", field="association.user"),
        Column(
            "partition",
            "PARTITION",
            ValueKind.TEXT,
            "Only there; empty: everywhere",
            field="association.partition",
            spare=True,
        ),
        Column(
            "shares", "SHARES", ValueKind.TEXT, "Fairshare beside its siblings'; parent: the account's", derive=shares
        ),
        Column("used", "USED", ValueKind.INTEGER, "Decayed billing-seconds, sshare's RawUsage", derive=used),
        Column(
            "fair_share",
            "FAIR SHARE",
            ValueKind.NUMBER,
            "The factor of its users' jobs; none where priorities are not counted",
            derive=fair_share,
            nullable=True,
        ),
        Column("running", "RUNNING", ValueKind.INTEGER, "Jobs that run", field="running"),
        Column("queued", "QUEUED", ValueKind.INTEGER, "Jobs that wait", field="queued"),
        Column(
            "qos",
            "QOS",
            ValueKind.WORDS,
            "QOS that may be used; none: those of the account above",
            field="association.qos",
        ),
        Column("limits", "LIMITS", ValueKind.WORDS, "Bounds by sacctmgr's names", derive=limits),
        Column(
            "default_qos",
            "DEFAULT QOS",
            ValueKind.TEXT,
            "Of a job that names none",
            field="association.default_qos",
            wide=True,
        ),
        Column(
            "default",
            "DEFAULT",
            ValueKind.TEXT,
            "Whether it is the user's default account",
            derive=lambda row, _: row.association.default,
            words=lambda row, _: "yes" if row.association.default else "–",
            schema={"type": "boolean"},
            wide=True,
        ),
        Column(
            "norm_shares",
            "NORM SHARES",
            ValueKind.NUMBER,
            "Its part of its siblings' shares; without Fair Tree: of all",
            derive=norm_shares,
            wide=True,
        ),
        Column("norm_usage", "NORM USAGE", ValueKind.NUMBER, "Its part of all usage", derive=norm_usage, wide=True),
        Column(
            "effective_usage",
            "EFFECTIVE",
            ValueKind.NUMBER,
            "What fair share goes by; with Fair Tree its part of the account's usage",
            derive=effective_usage,
            wide=True,
        ),
        Column(
            "level_fs",
            "LEVEL FS",
            ValueKind.NUMBER,
            "Norm shares by effective usage: below 1 it used more than its share; none: nothing used, or no Fair Tree",
            derive=level_fs,
            words=level_words,
            nullable=True,
            wide=True,
        ),
        Column("parent", "PARENT", ValueKind.TEXT, "The account above", field="association.parent", wide=True),
        Column(
            "priority",
            "PRIORITY",
            ValueKind.INTEGER,
            "Its own, for the factor assoc; none: that of the account above",
            field="association.priority",
            nullable=True,
            wide=True,
        ),
        Column(
            "coordinators",
            "COORDINATORS",
            ValueKind.WORDS,
            "Coordinators: users who administer the accounts below it",
            field="association.coordinators",
            wide=True,
        ),
    ),
)

QOS: Final = TableView(
    name="accounts-qos",
    identity=("name",),
    help="QOS with their priorities and limits",
    empty="No QOS.",
    columns=(
        Column("name", "NAME", ValueKind.TEXT, "The QOS", field="name"),
        Column("priority", "PRIORITY", ValueKind.INTEGER, "For the factor qos", field="priority"),
        Column("settings", "SETTINGS", ValueKind.WORDS, "By sacctmgr's names", derive=qos_settings),
    ),
)
