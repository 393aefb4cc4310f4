"""Settings of accounts, users and QOS as sacctmgr takes them: `MaxJobs=4 GrpTRES=cpu=16,mem=64G QOS+=high`.

Source of the names and of their short forms: sacctmgr(1). Its case does not matter.

Each word is read in these steps: split it into name, sign (`+=` adds, `-=` removes) and value; find the setting by any
of its names; read the value by the kind of the setting. All errors are collected and reported together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from cockpit.errors import SpecErrors
from cockpit.formats.kinds import Reading
from cockpit.formats.slurm.spec_fields import SlurmTime, slurm_time
from cockpit.formats.trestext import amounts_text, parse_tres, tres_text
from cockpit.model.accountchange import CLEAR, PARENT, AssociationChange, LimitsChange, QosChange
from cockpit.model.accounts import Association, Qos, ResourceLimits
from cockpit.model.text import visible

Read = Callable[[str], Any]
"""The value of a setting's text; raises ValueError with a clause."""

MOST_DIGITS = 16

_LIMITS = {
    "MaxWall": ("max_wall_seconds", "maxwalldurationperjob", "maxwallpj"),
    "MaxTRES": ("max_tres_per_job", "maxtresperjob", "maxtrespj"),
    "MaxTRESPerNode": ("max_tres_per_node", "maxtrespn"),
    "MinTRES": ("min_tres_per_job", "mintresperjob", "mintrespj"),
    "MaxJobs": ("max_jobs", "maxjobsperuser", "maxjobspu"),
    "MaxSubmitJobs": ("max_submit", "maxsubmit", "maxsubmitjobsperuser", "maxsubmitpu"),
    "GrpJobs": ("grp_jobs",),
    "GrpSubmitJobs": ("grp_submit", "grpsubmit"),
    "GrpTRES": ("grp_tres",),
    "GrpWall": ("grp_wall_seconds",),
    "GrpTRESMins": ("grp_tres_minutes",),
}
"""The limits by sacctmgr's name: the attribute of `ResourceLimits`, and other names."""
_OF_QOS = {
    "MaxTRESPerUser": ("max_tres_per_user", "maxtrespu"),
    "MaxTRESPerAccount": ("max_tres_per_account", "maxtrespa"),
    "MaxJobsPerAccount": ("max_jobs_per_account", "maxjobspa"),
    "MaxSubmitJobsPerAccount": ("max_submit_per_account", "maxsubmitpa"),
    "Priority": ("priority",),
    "UsageFactor": ("usage_factor",),
    "Preempt": ("preempt",),
    "PreemptMode": ("preempt_mode",),
    "GraceTime": ("grace_seconds",),
    "PreemptExemptTime": ("exempt_seconds",),
    "Flags": ("flags",),
}
_OF_ASSOCIATION = {
    "Parent": ("parent",),
    "Fairshare": ("shares", "shares"),
    "Priority": ("priority",),
    "QOS": ("qos", "qoslevel"),
    "DefaultQOS": ("default_qos", "defqos"),
    "Default": ("default",),
}
ASSOCIATION_SETTINGS = (*_OF_ASSOCIATION, *_LIMITS)
QOS_SETTINGS = (*_OF_QOS, *_LIMITS)
"""All names of settings."""


def association_change(words: Sequence[str]) -> AssociationChange:
    """Read a change of an account or a user. Raises `SpecErrors` with all errors."""
    own, limits = _read(words, _OF_ASSOCIATION)
    return AssociationChange(**own, limits=LimitsChange(**limits))


def qos_change(words: Sequence[str]) -> QosChange:
    """Read a change of a QOS. Raises `SpecErrors` with all errors."""
    own, limits = _read(words, _OF_QOS)
    return QosChange(**own, limits=LimitsChange(**limits))


def limit_words(limits: ResourceLimits) -> tuple[str, ...]:
    """Return the limits that are set: `MaxJobs=4`."""
    given = ((name, getattr(limits, attribute)) for name, (attribute, *_) in _LIMITS.items())
    return tuple(f"{name}={_text(name, value)}" for name, value in given if value not in (None, {}))


def qos_words(qos: Qos) -> tuple[str, ...]:
    """Return everything that a QOS has beside its name and priority."""
    usual = Qos(name=qos.name)
    given = ((name, attribute) for name, (attribute, *_) in _OF_QOS.items() if name != "Priority")
    own = (
        f"{name}={_text(name, getattr(qos, attribute))}"
        for name, attribute in given
        if getattr(qos, attribute) != getattr(usual, attribute)
    )
    return (*own, *limit_words(qos.limits))


def change_words(change: AssociationChange | QosChange) -> tuple[str, ...]:
    """Return a change as sacctmgr's settings; a default account needs another command."""
    table = _OF_ASSOCIATION if isinstance(change, AssociationChange) else _OF_QOS
    given = [(name, getattr(change, attribute)) for name, (attribute, *_) in table.items() if name != "Default"]
    given += [(name, getattr(change.limits, attribute)) for name, (attribute, *_) in _LIMITS.items()]
    return tuple(word for name, value in given if value not in (None, {}) for word in _settings(name, value))


def _settings(name: str, value: object) -> Iterator[str]:
    """Return the words of one setting: one, or for lists one for additions and one for removals."""
    if not isinstance(value, tuple):
        yield f"{name}={_text(name, value)}"
        return
    # One word for each sign: sacctmgr takes `QOS+=a` and `QOS-=b` beside each other, but no mixture in one.
    for sign in ("+", "-", ""):
        names = [each.removeprefix(sign) for each in value if (each[:1] if each[:1] in {"+", "-"} else "") == sign]
        # An empty list is written as `QOS=`, which removes all.
        if names or (sign == "" and not value):
            yield f"{name}{sign}={','.join(names)}"


def shares_text(association: Association) -> str:
    return PARENT if association.shares is None else str(association.shares)


def _read(words: Sequence[str], own: Mapping[str, tuple[str, ...]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return own settings and limits by attribute. Raises `SpecErrors` with all errors."""
    settings: tuple[dict[str, Any], dict[str, Any]] = {}, {}
    errors = []
    for word in words:
        name, equals, text = word.partition("=")
        sign = name[-1:] if name[-1:] in {"+", "-"} and equals else ""
        place, attribute = _place(name.removesuffix(sign), own)
        if not equals or not attribute:
            errors.append(f"{visible(word)}: {_advice(equals, own)}")
            continue
        try:
            # Most limits are counts; those of resources are recognised by their attribute.
            value = _READERS.get(attribute, _tres if "tres" in attribute else _number)(text)
            value = tuple(f"{sign}{each}" for each in value) if sign else value
        except ValueError as error:
            errors.append(f"{visible(name)}: {error}")
            continue
        # One of the two is mostly a mistake, and which of them cannot be known.
        if attribute in settings[place]:
            errors.append(f"{visible(name)}: is there twice; keep one")
        settings[place][attribute] = value
    if errors:
        raise SpecErrors(errors)
    return settings


def _place(name: str, own: Mapping[str, tuple[str, ...]]) -> tuple[int, str]:
    """Return 0 for a setting of its own or 1 for a limit, with the attribute's name; empty: unknown."""
    # Hyphens and underscores are accepted too: `max-jobs` is MaxJobs.
    wanted = name.lower().replace("-", "").replace("_", "")
    for place, table in enumerate((own, _LIMITS)):
        for known, (attribute, *others) in table.items():
            if wanted in {known.lower(), *others}:
                return place, attribute
    return 0, ""


def _advice(equals: str, own: Mapping[str, tuple[str, ...]]) -> str:
    known = ", ".join([*own, *_LIMITS])
    return f"is no setting here; known are {known}" if equals else "has no value; write NAME=VALUE, such as MaxJobs=4"


def _number(text: str) -> int:
    """Read a number; the engine checks its bounds."""
    if text != str(CLEAR) and not (text.isascii() and text.isdigit()):
        raise ValueError(f'"{visible(text)}" is not a whole number from 0 on; -1 removes the limit')
    if len(text) > MOST_DIGITS:
        raise ValueError(f"has {len(text)} digits; no bound has more than {MOST_DIGITS}")
    return int(text)


def _tres(text: str) -> dict[str, float]:
    tres = parse_tres(text)
    if isinstance(tres, str) or not tres:
        raise ValueError(tres or "is empty; write cpu=16,mem=64G; an amount of -1 removes the limit")
    return tres


def _time(text: str) -> int:
    if text == str(CLEAR):
        return CLEAR
    reading = Reading("/", "")
    seconds = SlurmTime().read(text, "", reading)
    if reading.errors:
        raise ValueError(reading.errors[0])
    return seconds


def _seconds(text: str) -> int:
    """Read a duration; without colons it counts seconds."""
    # GraceTime is in seconds, while a plain number for a wall clock is minutes.
    return _number(text) if text == str(CLEAR) or (text.isascii() and text.isdigit()) else _time(text)


def _names(text: str) -> tuple[str, ...]:
    return () if text in {"", str(CLEAR)} else tuple(filter(None, (name.strip() for name in text.split(","))))


def _name(text: str) -> str:
    return "" if text == str(CLEAR) else text


def _factor(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f'"{visible(text)}" is no number') from None


def _truth(text: str) -> bool:
    # There is no way to have no default account, so only the other direction can be asked for.
    if text.lower() in {"yes", "true", "1"}:
        return True
    raise ValueError(f'"{visible(text)}" is not yes; make another account the default instead')


_READERS: dict[str, Read] = {
    "parent": str,
    "shares": lambda text: PARENT if text.lower() == PARENT else _number(text),
    "qos": _names,
    "default_qos": _name,
    "default": _truth,
    "preempt": _names,
    "preempt_mode": _name,
    "flags": _names,
    "grace_seconds": _seconds,
    "exempt_seconds": _time,
    "usage_factor": _factor,
    "max_wall_seconds": _time,
    "grp_wall_seconds": _time,
}


def _text(name: str, value: object) -> str:
    if isinstance(value, dict):
        # Minutes of memory have no unit: `mem=64G` would be read as an amount.
        return tres_text(value) if name.endswith("Mins") else amounts_text(value)
    if isinstance(value, tuple):
        return ",".join(value)
    return slurm_time(value) if isinstance(value, int) and ("Wall" in name or "Exempt" in name) else str(value)
