"""Opening the cockpit: a session is opened in the app's own event loop, and closed with it."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cockpit.config.filters import SavedFilters
from cockpit.config.loading import load_settings
from cockpit.errors import SpecErrors
from cockpit.headless.exitcodes import ExitCode
from cockpit.present.nearest import nearest
from cockpit.runtime.leaving import leave_politely
from cockpit.tui import theme as themes
from cockpit.tui.app import CockpitApp
from cockpit.tui.driver import give_back
from cockpit.tui.outside import NoOthers, Outside, Several

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from cockpit.backends.base import Backend, TypedLogin
    from cockpit.config.settings import Settings
    from cockpit.model.ids import Millis
    from cockpit.model.spec import JobSpec
    from cockpit.tui.face import Pace

READ_ONLY = "This cockpit is read-only: it was opened with --read-only, or so by config.toml or COCKPIT_READ_ONLY."
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
    filters: SavedFilters = field(default_factory=SavedFilters)
    clusters: Mapping[str, str] = field(default_factory=dict)
    """What can be opened instead, by name, with a word about each."""
    cluster: str = ""
    """Its name among them."""
    every: Several = field(default_factory=NoOthers)
    """All clusters that this person uses."""
    pace: Pace | None = None
    """Of a demo."""
    login: TypedLogin | None = None
    """How a login to the cluster is typed again; None: it has none."""
    elapse: Callable[[float], Awaitable[None]] = asyncio.sleep
    """So many seconds pass for who looks at the screen. A demo's that nothing else moves pass at once."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """How the cockpit looks and what it obeys, as flags, environment and config.toml say."""

    settings: Settings
    folder: Path | None = None
    """Of the person's configuration: their own themes are in its `themes`."""


def run_cockpit(
    open_session: Callable[[], Awaitable[Session]],
    env: Mapping[str, str],
    look: Look | None = None,
    go_on: Callable[[str], int] | None = None,
) -> int:
    """Until the person leaves; the exit code. `go_on` opens the cluster that the person wants to see next."""
    leave_politely()
    gc.freeze()  # what is loaded stays
    gc.set_threshold(*SELDOM)
    gc.enable()
    try:
        code, next_cluster = asyncio.run(_run(open_session, env, look))
    finally:
        give_back()
    return go_on(next_cluster) if next_cluster and go_on is not None else code


async def _run(
    open_session: Callable[[], Awaitable[Session]], env: Mapping[str, str], look: Look | None
) -> tuple[int, str]:
    session = await open_session()
    try:
        app = app_for(session, env, look)
        try:
            code = await app.run_async()
            if app.failed:
                code = ExitCode.INTERNAL
        finally:
            for board in app.boards:
                board.stop()
    finally:
        await session.close()
    return code or 0, app.next_cluster


def app_for(session: Session, env: Mapping[str, str], look: Look | None = None) -> CockpitApp:
    """The application over a session; without `look` as the environment alone says.

    Raises `SpecErrors` where a theme, a key or a setting is wrong.
    """
    settings = look.settings if look is not None else load_settings(env=env)
    known = themes.load_themes(look.folder / "themes" if look is not None and look.folder is not None else None)
    outside = Outside(
        now=session.now,
        user=session.user,
        read_jobs=session.read_jobs,
        theme=_theme(settings.theme, env, known),
        themes=known,
        keys=settings.keys,
        filters=session.filters,
        clusters=session.clusters,
        cluster=session.cluster,
        every=session.every,
        read_only=READ_ONLY if settings.read_only else "",
        badge=lambda: _badge(session.pace),
        pace=session.pace,
        login=session.login,
        ascii_only=settings.ascii or not _speaks_unicode(env),
    )
    return CockpitApp(session.backend, outside)


def _theme(chosen: str, env: Mapping[str, str], known: Mapping[str, themes.RoleTheme]) -> str:
    """`NO_COLOR` means the terminal's own colours, of which Textual then draws none."""
    if not chosen:
        return themes.ANSI if env.get("NO_COLOR") else themes.DEFAULT
    if chosen not in known:
        hint = nearest(chosen, known)
        raise SpecErrors(
            [f"theme: there is no theme {chosen}; {f'did you mean {hint}?' if hint else ', '.join(known)}"]
        )
    return chosen


def _badge(pace: Pace | None) -> str:
    if pace is None:
        return ""
    return "DEMO paused" if pace.paused else f"DEMO {pace.speed:g}×"


def _speaks_unicode(env: Mapping[str, str]) -> bool:
    locale = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or ""
    return not locale or "utf" in locale.lower()
