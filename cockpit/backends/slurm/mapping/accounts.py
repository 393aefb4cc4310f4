"""Builds accounts, limits, shares and usage from the rows of `sacctmgr list qos`, `list assoc` and `sshare`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from cockpit.backends.slurm.mapping import values
from cockpit.backends.slurm.mapping.records import Record
from cockpit.model.accounts import Accounts, Association, AssocKey, Qos, ResourceLimits, Usage, assoc_key

QOS = ("sacctmgr", "-P", "--readonly", "list", "qos")
QOS_NAMES = ("sacctmgr", "-n", "-P", "--readonly", "list", "qos", "format=name")
ASSOCIATIONS = ("sacctmgr", "-P", "--readonly", "list", "assoc")
# sshare(1): -a shows all users and not only oneself, -l adds NormUsage and LevelFS.
SHARES = ("sshare", "-a", "-l", "-P")


class ShareLine(NamedTuple):
    """A line of sshare: what the cluster itself says of an association, and does not want recomputed."""

    key: AssocKey
    depth: int
    parent: str
    raw_usage: float
    norm_shares: float
    norm_usage: float
    effective_usage: float
    fair_share: float | None
    level_fs: float | None
    shares: int | None


def accounts(associations: Iterable[Record], qos: Iterable[Record], shares: Iterable[Record], cluster: str) -> Accounts:
    """Return the tree. Parents come from sshare, which alone prints them by its indents."""
    parents = {row.key: row.parent for row in share_lines(shares)}
    rows = [row for row in associations if row.get("Cluster", cluster) == cluster]
    by_key = {each.key: each for each in (_association(row, parents) for row in rows)}
    return Accounts(associations=by_key, qos={each.name: each for each in map(_qos, qos)})


def of_shares(shares: Iterable[Record]) -> Accounts:
    """Return the accounts from sshare alone, where sacctmgr is not available."""
    associations = (
        Association(
            account=row.key.split("/")[0],
            user=_user(row.key),
            parent="" if _user(row.key) else row.parent,
            shares=row.shares,
        )
        for row in share_lines(shares)
    )
    return Accounts(associations={each.key: each for each in associations})


def _user(key: AssocKey) -> str:
    return key.split("/")[1]


def usage(rows: Iterable[ShareLine]) -> dict[AssocKey, Usage]:
    return {row.key: Usage(row.raw_usage, fair_share=row.fair_share) for row in rows}


def share_lines(rows: Iterable[Record]) -> Iterator[ShareLine]:
    """Yield sshare's rows in the order of the tree, parents first; the indent of an account is its depth."""
    above: list[str] = []
    for row in rows:
        name = row["Account"].strip()
        depth = len(row["Account"]) - len(row["Account"].lstrip())
        user = row.get("User", "")
        # The path of accounts down to this one; what was below an earlier account of this depth is cut off.
        if not user:
            above[depth:] = [name]
        yield ShareLine(
            key=assoc_key(name, user, values.text(row.get("Partition", ""))),
            depth=depth,
            # The line of a user is indented as a child of the account that it names, so its parent is its account.
            parent=above[depth - 1] if 0 < depth <= len(above) else "",
            raw_usage=values.decimal(row.get("RawUsage", "")) or 0.0,
            norm_shares=values.decimal(row.get("NormShares", "")) or 0.0,
            norm_usage=values.decimal(row.get("NormUsage", "")) or 0.0,
            effective_usage=values.decimal(row.get("EffectvUsage", "")) or 0.0,
            fair_share=values.decimal(row.get("FairShare", "")),
            level_fs=values.decimal(row.get("LevelFS", "")),
            shares=_shares(row.get("RawShares", "")),
        )


def _shares(printed: str) -> int | None:
    # `parent`: the user has the shares of the account and no own ones (Fairshare=parent).
    return None if printed == "parent" else (values.number(printed) if printed else 1)


def _association(row: Record, parents: dict[AssocKey, str]) -> Association:
    """Return the association of a row of sacctmgr. `parents`: by account, from sshare."""
    account, user, partition = row["Account"], row.get("User", ""), row.get("Partition", "")
    priority = values.number(row.get("Priority", ""))
    return Association(
        account=account,
        user=user,
        partition=partition,
        # An account that sshare leaves out counts as one below root.
        parent="" if user else parents.get(assoc_key(account), "" if account == "root" else "root"),
        shares=_shares(row.get("Share", "")),
        priority=priority,
        limits=_limits(row),
        # sacctmgr prints a list that was changed relative to the account's with signs.
        qos=tuple(each.lstrip("+-") for each in values.names(row.get("QOS", ""))),
        default_qos=row.get("Def QOS", ""),
    )


def _limits(row: Record) -> ResourceLimits:
    """Return the limits of a row of sacctmgr, of an association or a QOS."""

    def count(*names: str) -> int | None:
        return next((values.number(row[name]) for name in names if row.get(name)), None)

    return ResourceLimits(
        max_wall_seconds=values.seconds(row.get("MaxWall", "")),
        max_tres_per_job=values.tres(row.get("MaxTRES", "")),
        max_tres_per_node=values.tres(row.get("MaxTRESPerNode", "")),
        min_tres_per_job=values.tres(row.get("MinTRES", "")),
        # sacctmgr calls a QOS's limits per user MaxJobsPU, and an association's, which is of one user anyway, MaxJobs.
        max_jobs=count("MaxJobsPU", "MaxJobs"),
        max_submit=count("MaxSubmitPU", "MaxSubmit"),
        grp_jobs=count("GrpJobs"),
        grp_submit=count("GrpSubmit"),
        grp_tres=values.tres(row.get("GrpTRES", "")),
        grp_wall_seconds=values.seconds(row.get("GrpWall", "")),
        grp_tres_minutes=values.tres(row.get("GrpTRESMins", "")),
    )


def _qos(row: Record) -> Qos:
    """Return the QOS of a row of sacctmgr."""
    mode = row.get("PreemptMode", "")
    return Qos(
        name=row["Name"],
        priority=values.number(row.get("Priority", "")) or 0,
        limits=_limits(row),
        max_tres_per_user=values.tres(row.get("MaxTRESPU", "")),
        max_tres_per_account=values.tres(row.get("MaxTRESPA", "")),
        max_jobs_per_account=values.number(row.get("MaxJobsPA", "")),
        max_submit_per_account=values.number(row.get("MaxSubmitPA", "")),
        # Not `or`: 0 is the factor of a QOS that costs nothing.
        usage_factor=_or(values.decimal(row.get("UsageFactor", "")), 1.0),
        preempt=values.names(row.get("Preempt", "")),
        # `cluster`: the QOS has none of its own, and PreemptMode of slurm.conf counts.
        preempt_mode="" if mode == "cluster" else mode,
        grace_seconds=values.seconds(row.get("GraceTime", "")) or 0,
        exempt_seconds=values.seconds(row.get("PreemptExemptTime", "")),
        flags=values.names(row.get("Flags", "")),
    )


def _or(figure: float | None, otherwise: float) -> float:
    return otherwise if figure is None else figure
