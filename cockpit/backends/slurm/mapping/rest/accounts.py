"""Converts accounts, users, QOS and shares of slurmrestd to the rows of sacctmgr and sshare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from cockpit.backends.slurm.mapping.records import Record
from cockpit.backends.slurm.mapping.rest.figures import Json, at, figure, minutes, tres, word

Table = Mapping[str, tuple[Callable[[Any], str], tuple[str, ...]]]
"""The columns of a table: how each is read, and its place in the JSON."""
# SLURMDB_FS_USE_PARENT (slurmdb.h) is 0x7FFFFFFF.
ENDLESS_SHARES = 2**31 - 1
"""The shares of a user who has those of the account (`parent`)."""


def _number(value: object) -> str:
    number = figure(value)
    # sacctmgr leaves out a limit that is not set.
    return "" if number == "UNLIMITED" else number


def _members(value: object) -> str:
    return word(value if isinstance(value, list) else [value] if value else [])


def _shares(value: object) -> str:
    shares = figure(value)
    return "parent" if shares == str(ENDLESS_SHARES) else shares


_TRES: Final[dict[str, tuple[Callable[[Any], str], tuple[str, ...]]]] = {
    "GrpTRES": (tres, ("max", "tres", "total")),
    "MaxTRES": (tres, ("max", "tres", "per", "job")),
    "MaxTRESPerNode": (tres, ("max", "tres", "per", "node")),
}
_ASSOCIATION: Final[Table] = {
    "Cluster": (word, ("cluster",)),
    "Account": (word, ("account",)),
    "User": (word, ("user",)),
    "Partition": (word, ("partition",)),
    "Share": (_shares, ("shares_raw",)),
    "Priority": (_number, ("priority",)),
    "GrpJobs": (_number, ("max", "jobs", "per", "count")),
    "GrpSubmit": (_number, ("max", "jobs", "per", "submitted")),
    "GrpWall": (minutes, ("max", "per", "account", "wall_clock")),
    "GrpTRESMins": (tres, ("max", "tres", "group", "minutes")),
    "MaxJobs": (_number, ("max", "jobs", "active")),
    "MaxSubmit": (_number, ("max", "jobs", "total")),
    "MaxWall": (minutes, ("max", "jobs", "per", "wall_clock")),
    "QOS": (word, ("qos",)),
    "Def QOS": (word, ("default", "qos")),
    **_TRES,
}
_MAX: Final = ("limits", "max")
_QOS: Final[Table] = {
    "Name": (word, ("name",)),
    "Priority": (_number, ("priority",)),
    "GraceTime": (_number, ("limits", "grace_time")),
    "Preempt": (word, ("preempt", "list")),
    "PreemptExemptTime": (_number, ("preempt", "exempt_time")),
    "PreemptMode": (_members, ("preempt", "mode")),
    "Flags": (word, ("flags",)),
    "UsageFactor": (_number, ("usage_factor",)),
    "GrpTRESMins": (tres, (*_MAX, "tres", "minutes", "per", "qos")),
    "GrpJobs": (_number, (*_MAX, "active_jobs", "count")),
    "GrpSubmit": (_number, (*_MAX, "jobs", "count")),
    "GrpWall": (minutes, (*_MAX, "wall_clock", "per", "qos")),
    "MaxWall": (minutes, (*_MAX, "wall_clock", "per", "job")),
    "MaxTRESPU": (tres, (*_MAX, "tres", "per", "user")),
    "MaxJobsPU": (_number, (*_MAX, "jobs", "active_jobs", "per", "user")),
    "MaxSubmitPU": (_number, (*_MAX, "jobs", "per", "user")),
    "MaxTRESPA": (tres, (*_MAX, "tres", "per", "account")),
    "MaxJobsPA": (_number, (*_MAX, "jobs", "active_jobs", "per", "account")),
    "MaxSubmitPA": (_number, (*_MAX, "jobs", "per", "account")),
    "MinTRES": (tres, ("limits", "min", "tres", "per", "job")),
    **{name: (read, ("limits", *place)) for name, (read, place) in _TRES.items()},
}
# sacctmgr's word for a QOS without a mode of its own.
_MODES: Final = {"DISABLED": "cluster", "": "cluster"}
_FLAGS: Final = {
    "DENY_LIMIT": "DenyOnLimit",
    "ENFORCE_USAGE_THRESHOLD": "EnforceUsageThreshold",
    "NO_DECAY": "NoDecay",
    "NO_RESERVE": "NoReserve",
    "OVERRIDE_PARTITION_QOS": "OverPartQOS",
    "PARTITION_QOS": "PartitionQOS",
}
"""QOS flags as sacctmgr writes them; others survive as they are."""


def associations(answers: Iterable[Json]) -> tuple[Record, ...]:
    return _table(_ASSOCIATION, answers)


def qos(answers: Iterable[Json]) -> tuple[Record, ...]:
    """Return QOS with sacctmgr's words for modes and flags."""
    return _table(_QOS, map(_in_words, answers))


def _in_words(json: Json) -> Json:
    mode = _members(at(json, "preempt", "mode")).split(",")[0]
    flags = [_FLAGS.get(each, each) for each in json.get("flags") or [] if isinstance(each, str)]
    preempt = {**(json.get("preempt") or {}), "mode": _MODES.get(mode, mode.lower())}
    return {**json, "preempt": preempt, "flags": flags}


def admin_level(answers: Iterable[Json]) -> tuple[Record, ...]:
    """Return the admin level of the one requested user."""
    return tuple({"AdminLevel": _members(each.get("administrator_level"))} for each in answers)


_SHARES: Final[Sequence[tuple[str, tuple[str, ...]]]] = (
    ("Partition", ("partition",)),
    ("RawUsage", ("usage",)),
    ("NormShares", ("shares_normalized",)),
    ("NormUsage", ("usage_normalized",)),
    ("EffectvUsage", ("effective_usage",)),
    ("FairShare", ("fairshare", "factor")),
    ("LevelFS", ("fairshare", "level")),
)


def shares(answers: Sequence[Json]) -> tuple[Record, ...]:
    """Return the shares in the order of the tree; an account is indented by one blank for each level."""
    # Answers have parents before their children, as sshare prints them.
    depths: dict[str, int] = {"": -1}
    rows = []
    for each in answers:
        is_user = "USER" in _members(each.get("type")).upper().split(",")
        name, parent = word(each.get("name")), word(each.get("parent"))
        depth = depths.get(parent, 0) + 1
        if not is_user:
            depths[name] = depth
        # sshare's form, which `mapping.accounts` reads: a user's row has the account's name and one blank more.
        own = {"Account": " " * depth + (parent if is_user else name), "User": name if is_user else ""}
        figures = {column: _share(at(each, *place)) for column, place in _SHARES}
        rows.append({**own, "RawShares": _shares(each.get("shares")), **figures})
    return tuple(rows)


def _share(value: object) -> str:
    share = figure(value)
    return "inf" if share == "UNLIMITED" else share


def tree_of(answers: Sequence[Json]) -> tuple[Record, ...]:
    """Return the tree from associations alone, without usage, where slurmrestd has no shares (before v0.0.40)."""
    below: dict[str, list[Json]] = {}
    for each in answers:
        is_user = bool(word(each.get("user")))
        below.setdefault(word(each.get("account" if is_user else "parent_account")), []).append(each)
    return tuple(_branch(below, "", 0, frozenset()))


def _branch(below: Mapping[str, list[Json]], above: str, depth: int, seen: frozenset[str]) -> Iterator[Record]:
    """Yield the shares below an account, indented by their depth as sshare prints them."""
    for each in below.get(above, ()):
        account, user = word(each.get("account")), word(each.get("user"))
        yield {
            "Account": " " * depth + account,
            "User": user,
            "RawShares": _shares(each.get("shares_raw")),
            "Partition": word(each.get("partition")),
        }
        # A parent that is its own child, in a damaged answer, would recurse for ever.
        if not user and account not in seen:
            yield from _branch(below, account, depth + 1, seen | {account})


def _table(table: Table, answers: Iterable[Json]) -> tuple[Record, ...]:
    return tuple({name: read(at(each, *place)) for name, (read, place) in table.items()} for each in answers)
