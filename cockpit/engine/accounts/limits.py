"""Merges a change into limits, lists and figures, and checks the change, since a request may be forged."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from msgspec.structs import asdict, replace

from cockpit.model.accountchange import CLEAR, PARENT, AssociationChange, LimitsChange, QosChange
from cockpit.model.accounts import Association, Qos, QosFlag, ResourceLimits, qos_flag
from cockpit.model.cluster import Tres
from cockpit.model.rules.bounds import Bounds
from cockpit.model.rules.text import LARGEST_AMOUNT, rule_name_error, tres_name_error
from cockpit.model.text import visible

FIGURE = Bounds(0, 2**31 - 1)
"""The bounds of limits, shares and times."""
PRIORITY = Bounds(0, 2**32 - 2)
"""The bounds of a priority; the largest number of 32 bits is Slurm's INFINITE."""
LARGEST_FACTOR = 1e9
MOST_NAMES = 4096
"""The most names or resources in one list of a request: each of them is checked, and a request may be forged."""
PREEMPT_MODES = ("", "OFF", "CANCEL", "GANG", "REQUEUE", "SUSPEND")
"""The values of a QOS's PreemptMode; the empty one means that of the cluster."""


def changed_association(before: Association, change: AssociationChange) -> Association:
    """Return the association with the change applied. The caller sets `default`, which concerns the user's other
    accounts too."""
    return replace(
        before,
        shares=_shares(before.shares, change.shares),
        priority=_figure(before.priority, change.priority),
        qos=changed_names(before.qos, change.qos),
        default_qos=before.default_qos if change.default_qos is None else change.default_qos.lower(),
        limits=changed_limits(before.limits, change.limits),
    )


def changed_qos(before: Qos, change: QosChange) -> Qos:
    """Return the QOS with the change applied; what the change leaves open stays as it is."""
    return replace(
        before,
        priority=_figure(before.priority, change.priority) or 0,
        limits=changed_limits(before.limits, change.limits),
        max_tres_per_user=_amounts(before.max_tres_per_user, change.max_tres_per_user),
        max_tres_per_account=_amounts(before.max_tres_per_account, change.max_tres_per_account),
        max_jobs_per_account=_figure(before.max_jobs_per_account, change.max_jobs_per_account),
        max_submit_per_account=_figure(before.max_submit_per_account, change.max_submit_per_account),
        usage_factor=before.usage_factor if change.usage_factor is None else _factor(change.usage_factor),
        preempt=changed_names(before.preempt, change.preempt),
        preempt_mode=before.preempt_mode if change.preempt_mode is None else change.preempt_mode.upper(),
        grace_seconds=_figure(before.grace_seconds, change.grace_seconds) or 0,
        exempt_seconds=_figure(before.exempt_seconds, change.exempt_seconds),
        flags=changed_names(before.flags, change.flags and tuple(map(_canonical, change.flags)), lower=False),
    )


def changed_limits(before: ResourceLimits, change: LimitsChange) -> ResourceLimits:
    # Both structures have the same fields, so that a new limit needs no line here.
    values = asdict(change)
    return replace(before, **{name: _limit(getattr(before, name), value) for name, value in values.items()})


def changed_names(before: tuple[str, ...], change: tuple[str, ...] | None, *, lower: bool = True) -> tuple[str, ...]:
    """Return the names after the change: `+name` adds one, `-name` removes one, names without a sign replace all."""
    if change is None:
        return before
    # QOS are stored in lower case; flags are spelled as sacctmgr prints them.
    names = [name.lower() for name in change] if lower else list(change)
    # One name without a sign is enough: the list then replaces all, and an empty list removes all.
    if not all(name.startswith(("+", "-")) for name in names) or not names:
        return tuple(dict.fromkeys(names))
    gone = {name[1:] for name in names if name.startswith("-")}
    added = [name[1:] for name in names if name.startswith("+")]
    return tuple(dict.fromkeys(name for name in (*before, *added) if name not in gone))


def _canonical(flag: str) -> str:
    # An unknown flag becomes empty here; `qos_errors` has refused it by then.
    sign = flag[:1] if flag.startswith(("+", "-")) else ""
    return f"{sign}{qos_flag(flag.removeprefix(sign)) or ''}"


def association_errors(change: AssociationChange) -> Iterator[str]:
    """Return what is wrong with single fields of the change."""
    if isinstance(change.shares, str) and change.shares != PARENT:
        yield f"shares: {visible(change.shares)} is no number; write one, or parent"
    if isinstance(change.shares, int):
        yield from _figure_errors("shares", change.shares)
    yield from _figure_errors("priority", change.priority, PRIORITY)
    yield from _name_errors("qos", change.qos or ())
    yield from _limit_errors(change.limits)


def qos_errors(change: QosChange) -> Iterator[str]:
    """Return what is wrong with single fields of the change."""
    yield from _figure_errors("priority", change.priority, PRIORITY)
    for name in ("max_jobs_per_account", "max_submit_per_account", "grace_seconds", "exempt_seconds"):
        yield from _figure_errors(name, getattr(change, name))
    for name in ("max_tres_per_user", "max_tres_per_account"):
        yield from _amount_errors(name, getattr(change, name))
    factor = change.usage_factor
    if factor is not None and not (math.isfinite(factor) and (0 <= factor <= LARGEST_FACTOR or factor == CLEAR)):
        yield f"usage_factor: is not between 0 and {LARGEST_FACTOR:g}"
    if change.preempt_mode is not None and change.preempt_mode.upper() not in PREEMPT_MODES:
        yield f"preempt_mode: {visible(change.preempt_mode)} is none of {', '.join(filter(None, PREEMPT_MODES))}"
    yield from _name_errors("preempt", change.preempt or ())
    for flag in change.flags or ():
        if qos_flag(flag.removeprefix("+").removeprefix("-")) is None:
            yield f"flags: {visible(flag)} means nothing here; there are {', '.join(QosFlag)}"
    yield from _limit_errors(change.limits)


def _limit_errors(change: LimitsChange) -> Iterator[str]:
    for name, value in asdict(change).items():
        yield from _amount_errors(name, value) if isinstance(value, dict) else _figure_errors(name, value)


def _figure_errors(name: str, value: int | None, bounds: Bounds = FIGURE) -> Iterator[str]:
    if value is not None and value != CLEAR and (error := bounds.error(value)):
        yield f"{name}: {error}, and not -1, which removes it"


def _amount_errors(name: str, tres: Tres) -> Iterator[str]:
    if len(tres) > MOST_NAMES:
        yield f"{name}: has {len(tres)} resources; give at most {MOST_NAMES}"
        return
    for resource, amount in tres.items():
        if error := tres_name_error(resource):
            yield f"{name}: {error}"
        elif not math.isfinite(amount) or not (0 <= amount <= LARGEST_AMOUNT or amount == CLEAR):
            yield f"{name}: {resource} is not between 0 and {LARGEST_AMOUNT:g}, and not -1"


def _name_errors(field: str, names: Sequence[str]) -> Iterator[str]:
    if len(names) > MOST_NAMES:
        yield f"{field}: has {len(names)} names; give at most {MOST_NAMES}"
        return
    for name in names:
        if error := rule_name_error(name.removeprefix("+").removeprefix("-")):
            yield f"{field}: {error}"


def _shares(before: int | None, change: int | str | None) -> int | None:
    if change is None:
        return before
    # `parent`, the only word that `association_errors` lets pass: shares with its siblings through the account.
    if isinstance(change, str):
        return None
    # Slurm's default of `fairshare`.
    return 1 if change == CLEAR else change


def _figure(before: int | None, change: int | None) -> int | None:
    if change is None:
        return before
    return None if change == CLEAR else change


def _factor(change: float) -> float:
    return 1.0 if change == CLEAR else change


def _amounts(before: Tres, change: Tres) -> Tres:
    return {name: amount for name, amount in (before | change).items() if amount != CLEAR}


def _limit(before: object, change: object) -> object:
    if isinstance(change, dict):
        assert isinstance(before, dict)
        return _amounts(before, change)
    assert change is None or isinstance(change, int)
    assert before is None or isinstance(before, int)
    return _figure(before, change)
