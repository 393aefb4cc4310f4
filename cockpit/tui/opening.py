"""Opening the cockpit: a session is opened in the app's own event loop, and closed with it."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cockpit.tui import theme as themes
from cockpit.tui.app import CockpitApp, Outside

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from cockpit.backends.base import Backend
    from cockpit.model.ids import Millis
    from cockpit.model.spec import JobSpec
    from cockpit.tui.face import Pace

THEME_VARIABLE = "COCKPIT_THEME"
ASCII_VARIABLE = "COCKPIT_ASCII"
SELDOM = (50_000, 20, 50)
"""Garbage collection: a look at everything stops the screen for longer than a frame."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """A cluster to look at, in whatever time it lives."""

    backend: Backend
    now: Callable[[], Millis]
    user: str
    read_jobs: Callable[[str, str, str], list[JobSpec]]
    close: Callable[[], Awaitable[None]]
    pace: Pace | None = None
    """Of a demo."""


def run_cockpit(open_session: Callable[[], Awaitable[Session]], env: Mapping[str, str]) -> int:
    """Until the person leaves; the exit code."""
    gc.set_threshold(*SELDOM)
    return asyncio.run(_run(open_session, env))


async def _run(open_session: Callable[[], Awaitable[Session]], env: Mapping[str, str]) -> int:
    session = await open_session()
    try:
        code = await app_for(session, env).run_async()
    finally:
        await session.close()
    return code or 0


def app_for(session: Session, env: Mapping[str, str]) -> CockpitApp:
    """The application over a session. `NO_COLOR` means the terminal's own colours, which may be none."""
    theme = env.get(THEME_VARIABLE) or ("ansi" if env.get("NO_COLOR") else themes.DEFAULT)
    outside = Outside(
        now=session.now,
        user=session.user,
        read_jobs=session.read_jobs,
        theme=theme,
        badge=lambda: _badge(session.pace),
        pace=session.pace,
        ascii_only=bool(env.get(ASCII_VARIABLE)) or not _speaks_unicode(env),
    )
    return CockpitApp(session.backend, outside)


def _badge(pace: Pace | None) -> str:
    if pace is None:
        return ""
    return "DEMO paused" if pace.paused else f"DEMO {pace.speed:g}×"


def _speaks_unicode(env: Mapping[str, str]) -> bool:
    locale = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or ""
    return not locale or "utf" in locale.lower()
