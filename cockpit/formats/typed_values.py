"""Reads and writes what a person types as a priority, a time limit or priority weights."""

from __future__ import annotations

from typing import Final

from cockpit.errors import SpecErrors
from cockpit.model.asking import SiteFactor, WantedLimit, WantedPriority, WantedWorkers
from cockpit.model.cluster import Weights
from cockpit.model.priority import WeightChanges
from cockpit.model.quantity import duration_text, parse_duration
from cockpit.model.spec import PriorityWord
from cockpit.model.text import visible

LIMIT_EXPECTED: Final = "a time such as 6h, or +2h and -30m beside the present one"


def read_limit(text: str) -> WantedLimit | None:
    """Return the time limit; None: the text is not what `LIMIT_EXPECTED` describes."""
    sign = text[:1] if text[:1] in {"+", "-"} else ""
    seconds = parse_duration(text.removeprefix(sign))
    if isinstance(seconds, str):
        return None
    return WantedLimit(-seconds if sign == "-" else seconds, beside=bool(sign))


def limit_text(wanted: WantedLimit) -> str:
    """Return the text that `read_limit` reads back."""
    sign = ("-" if wanted.seconds < 0 else "+") if wanted.beside else ""
    return sign + duration_text(abs(wanted.seconds))


WORKERS_EXPECTED: Final = "a number such as 6, or +2 and -1 beside the present one"
_MOST_WORKER_DIGITS: Final = 6


def read_workers(text: str) -> WantedWorkers | None:
    """Return the number of workers; None: the text is not what `WORKERS_EXPECTED` describes."""
    digits = text.removeprefix("+") if text.startswith("+") else text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_WORKER_DIGITS):
        return None
    return WantedWorkers(int(text), beside=digits != text)


MOST_DIGITS: Final = 12
PRIORITY_EXPECTED: Final = f"{', '.join(PriorityWord)}, a number, or +N and -N"


def read_priority(text: str) -> WantedPriority | None:
    """Return the priority; None: the text is not what `PRIORITY_EXPECTED` describes."""
    if text in set(PriorityWord):
        return PriorityWord(text)
    digits = text.removeprefix("+") if text.startswith("+") else text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS):
        return None
    # A sign changes the priority by that much, by way of the site factor; a plain number sets it.
    return int(text) if digits == text else SiteFactor(int(text))


def priority_text(wanted: WantedPriority) -> str:
    """Return the text that `read_priority` reads back."""
    return f"{wanted.factor:+}" if isinstance(wanted, SiteFactor) else str(wanted)


NAMES: Final = {
    "age": "age",
    "fairshare": "fairshare",
    "jobsize": "job_size",
    "partition": "partition",
    "qos": "qos",
    "assoc": "assoc",
}
"""The fields of the weights, by the name that users write."""
RESOURCE: Final = "tres/"
# Slurm stores weights in 32 bits.
MOST: Final = (1 << 32) - 1


def read_weights(text: str) -> WeightChanges:
    """Read weights; those that are left out stay as they are. Raises `SpecErrors`, one line per error."""
    named: dict[str, int] = {}
    resources: dict[str, float] = {}
    errors: list[str] = []
    # Slurm's names have capitals (`JobSize`); they are typed in either way.
    for pair in filter(None, map(str.strip, text.lower().split(","))):
        name, _, figure = (part.strip() for part in pair.partition("="))
        if name not in NAMES and (not name.startswith(RESOURCE) or name == RESOURCE):
            errors.append(
                f"{visible(name) or 'nothing'} is no factor; there are {', '.join([*NAMES, f'{RESOURCE}cpu'])}"
            )
        elif not _is_weight(figure):
            errors.append(f"{visible(name)} wants a whole number from 0 to {MOST}, such as {visible(name)}=1000")
        elif name in NAMES:
            named[NAMES[name]] = int(figure)
        else:
            resources[name.removeprefix(RESOURCE)] = int(figure)
    # Without this, an empty text would seem to have changed something.
    if not (named or resources or errors):
        errors.append("no weight is given; write them as age=1000,fairshare=2000")
    if errors:
        raise SpecErrors(errors)
    return WeightChanges(**named, tres=resources)


def weights_text(weights: Weights) -> str:
    """Return the text that `read_weights` reads back: the usual factors always, others where they count."""
    usual = {name: getattr(weights, field) for name, field in NAMES.items()}
    # `assoc` is rare, and is shown only where a site uses it.
    shown = {name: weight for name, weight in usual.items() if weight or name != "assoc"}
    resources = {f"{RESOURCE}{name}": weight for name, weight in weights.tres.items()}
    return ",".join(f"{name}={weight:.0f}" for name, weight in (shown | resources).items())


def _is_weight(figure: str) -> bool:
    return figure.isascii() and figure.isdigit() and len(figure) <= len(str(MOST)) and int(figure) <= MOST
