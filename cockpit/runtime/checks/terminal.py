"""Check what the user's terminal can show."""

from __future__ import annotations

import os
import sys

from cockpit.runtime.checks.surroundings import Surroundings
from cockpit.runtime.findings import Finding, note, ok

SMALLEST = os.terminal_size((80, 24))


def terminal(around: Surroundings) -> list[Finding]:
    name = around.env.get("TERM", "")
    if name in ("", "dumb"):
        advice = "The screens need a terminal; commands work without one. Set TERM, for example to xterm-256color."
        return [note("terminal", f"TERM is {name or 'not set'}", advice)]
    within = " in tmux" if around.env.get("TMUX") else " in screen" if around.env.get("STY") else ""
    return [ok("terminal", f"{name}{within}"), _colours(around, name), *_size()]


def _colours(around: Surroundings, name: str) -> Finding:
    if around.env.get("COLORTERM", "") in ("truecolor", "24bit"):
        return ok("colours", "16 million")
    if "256" in name or "direct" in name:
        return ok("colours", "256 (set COLORTERM=truecolor if this terminal can do more)")
    return note("colours", f"few, as far as TERM={name} tells", "Set TERM=xterm-256color or COLORTERM=truecolor.")


def _size() -> list[Finding]:
    try:
        size = os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else 1)
    except (OSError, ValueError):
        return []
    shown = f"{size.columns} × {size.lines}"
    if size.columns < SMALLEST.columns or size.lines < SMALLEST.lines:
        return [note("size", shown, "The screens need at least 80 × 24: make the window larger.")]
    return [ok("size", shown)]


def locale(around: Surroundings) -> list[Finding]:
    """Check that the locale is UTF-8. The first of three variables that is set decides, locale(7)."""
    names = ("LC_ALL", "LC_CTYPE", "LANG")
    value = next((around.env[name] for name in names if around.env.get(name)), "")
    if "UTF-8" in value.upper() or "UTF8" in value.upper():
        return [ok("characters", value)]
    return [
        note(
            "characters",
            f"{value or 'no locale'} is not UTF-8",
            "Bars and symbols become ASCII: `export LANG=C.UTF-8`.",
        )
    ]


def tmux(around: Surroundings) -> list[Finding]:
    answer = around.probe(("tmux", "-V"))
    if answer.ok:
        return [ok("tmux", answer.first_line.removeprefix("tmux "))]
    return [note("tmux", "not installed", "Shells cannot open beside the cockpit: `apt-get install tmux`.")]
