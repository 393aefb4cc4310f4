"""A time limit as a person types it: `6h`, or `+2h` and `-30m` beside the present one."""

from __future__ import annotations

from typing import Final

from cockpit.model.asking import WantedLimit
from cockpit.model.quantity import duration_text, parse_duration

EXPECTED: Final = "a time such as 6h, or +2h and -30m beside the present one"


def read_limit(text: str) -> WantedLimit | None:
    """None: it is none of these (`EXPECTED`)."""
    sign = text[:1] if text[:1] in {"+", "-"} else ""
    seconds = parse_duration(text.removeprefix(sign))
    if isinstance(seconds, str):
        return None
    return WantedLimit(-seconds if sign == "-" else seconds, beside=bool(sign))


def limit_text(wanted: WantedLimit) -> str:
    """As `read_limit` reads it back."""
    sign = ("-" if wanted.seconds < 0 else "+") if wanted.beside else ""
    return sign + duration_text(abs(wanted.seconds))
