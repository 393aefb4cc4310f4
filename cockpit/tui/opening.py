"""Opening the TUI: it opens a session in the app's event loop, runs the app, and closes the session."""

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
from cockpit.runtime.exit_signals import exit_on_signals, leave_when_asked
from cockpit.tui import theme as themes
from cockpit.tui.app import CockpitApp
from cockpit.tui.app_options import AppOptions, NoOthers, Pace, WatchedClusters
from cockpit.tui.driver import restore_terminals
from cockpit.tui.palette import ColourDepth, terminal_depth

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from cockpit.backends.base import Backend, TypedLogin
    from cockpit.config.settings import Settings
    from cockpit.model.ids import Millis
    from cockpit.model.spec import JobSpec

READ_ONLY = "This cockpit is read-only: it was opened with --read-only, or so by config.toml or COCKPIT_READ_ONLY."
GC_THRESHOLDS = (50_000, 20, 50)
"""Thresholds of the garbage collector, larger than Python's: a full collection stops the screen for over a frame."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """An open cluster: its backend, its clock, and what the application needs besides."""

    backend: Backend
    now: Callable[[], Millis]
    user: str
    read_jobs: Callable[[str, str, str], list[JobSpec]]
    close: Callable[[], Awaitable[None]]
    filters: SavedFilters = field(default_factory=SavedFilters)
    clusters: Mapping[str, str] = field(default_factory=dict)
    """A description of each cluster that can be opened, by name."""
    cluster: str = ""
    """The name of this cluster among them."""
    every: WatchedClusters = field(default_factory=NoOthers)
    """All clusters that the user uses, for the Clusters view."""
    pace: Pace | None = None
    """The speed control of a demo's clock; None on a real cluster."""
    login: TypedLogin | None = None
    """The prompt with which the user logs in to the cluster again; None: the cluster needs no login."""
    elapse: Callable[[float], Awaitable[None]] = asyncio.sleep
    """A function that lets this many seconds of screen time pass; a demo that a script plays passes them at once."""


@dataclass(frozen=True, kw_only=True)
class AppSettings:
    """The user's settings from flags, environment and config.toml."""

    settings: Settings
    folder: Path | None = None
    """The folder of the user's configuration, whose folder `themes` holds the user's own themes; None: none."""


def run_cockpit(
    open_session: Callable[[], Awaitable[Session]],
    env: Mapping[str, str],
    chosen: AppSettings | None = None,
    open_next: Callable[[str], int] | None = None,
) -> int:
    """Run the application until the user quits; return the exit code.

    `open_next` opens the cluster that the user chose to see next, and returns its exit code.
    """
    # Before anything is opened, so that a signal during a slow connection ends the program in order.
    exit_on_signals()
    gc.freeze()  # modules stay loaded: collections need not visit their objects
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()
    try:
        code, next_cluster = asyncio.run(_run(open_session, env, chosen))
    finally:
        # Outside of the event loop: whatever ended it, the user's terminal works again.
        restore_terminals()
    return open_next(next_cluster) if next_cluster and open_next is not None else code


async def _run(
    open_session: Callable[[], Awaitable[Session]], env: Mapping[str, str], chosen: AppSettings | None
) -> tuple[int, str]:
    """Run the application on a session, and close the session; return the exit code and the cluster to open next."""
    session = await open_session()
    try:
        app = app_for(session, env, chosen, terminal_depth(env))
        # The loop is asked to end, instead of an exit being raised in the middle of a drawing.
        loop = asyncio.get_running_loop()
        leave_when_asked(lambda code: loop.call_soon_threadsafe(app.exit, code))
        try:
            code = await app.run_async()
            if app.failed:
                code = ExitCode.INTERNAL
        finally:
            # TensorBoards are processes of their own, which nothing else ends.
            for board in app.boards:
                board.stop()
    finally:
        await session.close()
    return code or 0, app.next_cluster


def app_for(
    session: Session,
    env: Mapping[str, str],
    chosen: AppSettings | None = None,
    colours: ColourDepth = ColourDepth.ALL,
) -> CockpitApp:
    """Build the application of a session; without `chosen` settings, with those of the environment alone.

    `colours`: how many the terminal shows.

    Raises `SpecErrors` where a theme, a key or a setting is wrong.
    """
    settings = chosen.settings if chosen is not None else load_settings(env=env)
    known = themes.load_themes(chosen.folder / "themes" if chosen is not None and chosen.folder is not None else None)
    options = AppOptions(
        now=session.now,
        user=session.user,
        read_jobs=session.read_jobs,
        theme=_theme(settings.theme, env, known),
        themes=known,
        colours=colours,
        keys=settings.keys,
        filters=session.filters,
        clusters=session.clusters,
        cluster=session.cluster,
        every=session.every,
        read_only=READ_ONLY if settings.read_only else "",
        badge=lambda: _badge(session.pace),
        pace=session.pace,
        login=session.login,
        ascii_only=settings.ascii or not _shows_unicode(env),
    )
    return CockpitApp(session.backend, options)


def _theme(chosen: str, env: Mapping[str, str], known: Mapping[str, themes.RoleTheme]) -> str:
    """Return the name of the theme to use.

    With `NO_COLOR` the default is the theme of the terminal's own colours, of which Textual then draws none.
    """
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


def _shows_unicode(env: Mapping[str, str]) -> bool:
    # In the order of precedence of POSIX. Without any of them the terminal decides, and nearly all show Unicode.
    locale = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or ""
    return not locale or "utf" in locale.lower()
