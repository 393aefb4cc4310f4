"""Runs play scripts: drives the real application with keys, without a terminal, and checks what it shows."""

from __future__ import annotations

import asyncio
import time
from itertools import repeat
from math import ceil
from typing import TYPE_CHECKING

from textual.events import Key

from cockpit.errors import CockpitError
from cockpit.headless.play_script import (
    Act,
    Expect,
    ExpectationFailed,
    Pause,
    Press,
    Screenshot,
    Size,
    Speed,
    Theme,
    Type,
    Wait,
)
from cockpit.tui.keymap import key_of
from cockpit.tui.opening import app_for
from cockpit.tui.picture import screen_svg, screen_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from textual.pilot import Pilot

    from cockpit.headless.play_script import Script
    from cockpit.tui.app import CockpitApp
    from cockpit.tui.opening import Session

FIRST_SIZE = Size(120, 40)
LOOK_SECONDS = 0.1
"""Seconds of screen time between two looks at the screen; a demo passes them at once."""
GLANCE_SECONDS = 0.02
"""Seconds of real time between two looks, as an editor or a shell may be at work."""
PREDICTING_SECONDS = 60.0
"""Most seconds of real time that a wait lasts longer while the cluster computes starts."""
REST_SECONDS = 300.0
"""Most seconds of real time until everything that has happened is shown; a script must not hang."""
QUIET_TURNS = 3
"""The number of times that messages are let through: widgets send each other messages by way of the screen."""
MOST_TURNS = 10_000
"""Most iterations of the event loop that are waited for: some tasks never come to rest."""


class Player:
    """Presses keys and looks at the screen.

    A demo's time passes only while it waits, so that a script sees the same history every time.
    """

    def __init__(self, app: CockpitApp, pilot: Pilot[int], session: Session) -> None:
        self.app = app
        self._pilot = pilot
        self._session = session
        self._passed = 0.0
        """Seconds of the screen's time that have passed."""
        if session.pace is not None:
            app.poller.predict_by(lambda: self._passed)

    async def press(self, *keys: str) -> None:
        """Press keys, written as users write them. Raises `CockpitError` for an unknown one."""
        # A list: an unknown key is reported before the first one is pressed.
        for key in [Key(_known_key(written), _character(written)) for written in keys]:
            self.app.post_message(key)
            await self._settle()

    async def type(self, text: str) -> None:
        """Type the text letter by letter, as fast as a paste."""
        for letter in text:
            self.app.post_message(Key(_known_key(letter), letter))
        await self._settle()

    async def resize(self, columns: int, rows: int) -> None:
        await self._pilot.resize_terminal(columns, rows)

    async def screen(self) -> str:
        """Return the text of the screen once everything that has happened is shown. Raises `CockpitError` if that does
        not come to an end."""
        try:
            async with asyncio.timeout(REST_SECONDS):
                await self._catch_up()
        except TimeoutError:
            raise CockpitError(
                f"After {REST_SECONDS:.0f} seconds the screen still changes; it is\n\n{screen_text(self.app)}"
            ) from None
        return screen_text(self.app)

    async def _catch_up(self) -> None:
        await self._settle()
        if self._session.pace is not None:
            # No time of the demo passes until there is something to see.
            while not (self.app.state.loaded or self.over):
                await self._pilot.pause(GLANCE_SECONDS)
            await self._session.elapse(0)
            await self.app.poller.catch_up()
            await self._settle()

    async def predicted_screen(self) -> str:
        """Return the text of the screen with all the starts that the cluster is computing."""
        text, end = await self.screen(), time.monotonic() + PREDICTING_SECONDS
        while self.app.poller.is_predicting and time.monotonic() < end:
            await asyncio.sleep(GLANCE_SECONDS)
            text = await self.screen()
        return text

    async def elapse(self, seconds: float) -> None:
        """Let so many seconds of the screen's time pass. Scripts do it in small steps, and not while starts are
        computed, so that these are asked for at the same moments of a demo each time."""
        self._passed += seconds
        await self._session.elapse(seconds)

    async def until(self, holds: Callable[[str], bool], seconds: float, *, real_seconds: float = 0.0) -> bool:
        """Look at the screen until `holds` is true of it; return whether it became true.

        `seconds` of the screen's time pass at most. The wait lasts at least as many seconds of real time, and at least
        `real_seconds`: programs that the cockpit starts run in real time, slowly on a busy machine. So do predictions:
        it does not end before the cluster has answered those that the screen awaits, up to `PREDICTING_SECONDS` more.
        """
        loop = asyncio.get_running_loop()
        # Two budgets: looks, each of which lets the demo go on by LOOK_SECONDS, and real time, within which looks go on
        # when the first is used up.
        end = loop.time() + max(seconds, real_seconds)
        looks = self._looks(seconds)
        while True:
            awaited = self.app.poller.is_predicting  # before the look, which then has the answer if it came meanwhile
            if holds(await self.screen()):
                return True
            if not awaited and next(looks, False):
                await self.elapse(LOOK_SECONDS)
            elif loop.time() > end + (PREDICTING_SECONDS if awaited else 0):
                return False
            await asyncio.sleep(GLANCE_SECONDS)

    async def wait(self, seconds: float) -> None:
        """Let this much screen time pass, and everything that happens in it be shown."""
        for _ in self._looks(seconds):
            await self.predicted_screen()
            await self.elapse(LOOK_SECONDS)
        await self.predicted_screen()

    @staticmethod
    def _looks(seconds: float) -> Iterator[bool]:
        return repeat(True, max(1, ceil(seconds / LOOK_SECONDS)))

    async def _settle(self) -> None:
        """Wait until every key and the messages that follow from it have had their effect; no time passes."""
        for _ in range(QUIET_TURNS):
            await _rest()
            while not (self.app.key_queue.is_idle or self.over):
                await self._pilot.pause(0)
            await self._pilot.wait_for_animation()  # there is none: the screen is brought up to date

    @property
    def over(self) -> bool:
        """Whether the user has quit the cockpit."""
        return self.app.return_code is not None


async def _rest() -> None:
    """Wait until the event loop has nothing to do but to wait for time or input."""
    loop = asyncio.get_running_loop()
    for _ in range(MOST_TURNS):
        await asyncio.sleep(0)
        # The callbacks that are due: where a loop has no such attribute, one turn has to do.
        if not getattr(loop, "_ready", ()):  # asyncio has no other word for it
            return


def play(open_session: Callable[[], Awaitable[Session]], script: Script, folder: Path) -> None:
    """Run every step; write screenshots into `folder`. Raises `ExpectationFailed` at the first step that fails."""
    asyncio.run(_play(open_session, script, folder))


async def _play(open_session: Callable[[], Awaitable[Session]], script: Script, folder: Path) -> None:
    """Run the steps on the real application, without a terminal."""
    session = await open_session()
    try:
        app = app_for(session, {})
        # Textual's driver for tests: no terminal is needed, and sizes are exact.
        async with app.run_test(size=FIRST_SIZE, notifications=True) as pilot:
            player = Player(app, pilot, session)
            for step in script.steps:
                await _take(step.act, step.origin, player, session, folder)
    finally:
        await session.close()


async def _take(act: Act, origin: str, player: Player, session: Session, folder: Path) -> None:
    if player.over:
        raise ExpectationFailed(f"{origin}: the cockpit was left before this")
    try:
        met = await _done(act, player, session, folder)
    except CockpitError as error:
        raise CockpitError(f"{origin}: {error}") from error
    if not met:
        raise ExpectationFailed(f"{origin}: the screen is\n\n{await player.screen()}")


async def _done(act: Act, player: Player, session: Session, folder: Path) -> bool:
    """Do one step; return whether it held."""
    match act:
        case Size(columns, rows):
            await player.resize(columns, rows)
        case Theme(name):
            _use_theme(player.app, name)
        case Press(keys):
            await player.press(*keys)
        case Type(text):
            await player.type(text)
        case Wait("", seconds):
            await player.wait(seconds)
        case Wait(text, seconds):
            return await player.until(lambda screen: text in screen, seconds)
        case Expect(text, absent):
            return (text in await player.screen()) is not absent
        case Pause() | Speed():
            _pace(session, act)
        case Screenshot(name):
            await _photograph(player, folder / name)
    return True


def _use_theme(app: CockpitApp, name: str) -> None:
    if name not in app.options.themes:
        raise CockpitError(f"There is no theme {name!r}; there are {', '.join(sorted(app.options.themes))}.")
    app.use_theme(name)


def _pace(session: Session, act: Pause | Speed) -> None:
    if session.pace is None:
        raise CockpitError("This cluster is not a demo: its time cannot be changed.")
    if isinstance(act, Speed):
        session.pace.speed = act.times
    else:
        session.pace.pause()


async def _photograph(player: Player, path: Path) -> None:
    text = await player.predicted_screen()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".txt").write_text(text + "\n", encoding="utf-8")
        path.with_suffix(".svg").write_text(screen_svg(player.app), encoding="utf-8")
    except OSError as error:
        raise CockpitError(f"{path} cannot be written: {error.strerror}.") from error


def _character(written: str) -> str | None:
    """Return the character that the key types; None where it types none."""
    return written if len(written) == 1 else " " if written.lower() == "space" else None


def _known_key(written: str) -> str:
    name = key_of(written)
    if name is None:
        raise CockpitError(f"There is no key {written!r}; it goes like j, Enter, Esc, Space, F1, Ctrl-d, PageDown.")
    return name
