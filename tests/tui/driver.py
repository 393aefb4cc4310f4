"""A person in front of the cockpit: `await cockpit.press("x").sees("Stop job 3").press("y").sees("stopped")`."""

from __future__ import annotations

from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from textual.events import Paste

from cockpit.tui.app import CockpitApp
from cockpit.tui.opening import app_for
from cockpit.tui.play import Player
from cockpit.tui.widgets.table import CURSOR_SIGN

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Generator

    from cockpit.tui.opening import Session

PATIENCE_SECONDS = 10
"""Of a demo's time."""
LIVE_PATIENCE_SECONDS = 100
"""Of real time: for what programs and threads do beside the screen, also on a busy machine."""


class Cockpit:
    """Collects steps, and takes them when it is awaited."""

    def __init__(self, player: Player, session: Session) -> None:
        self.player = player
        self.session = session
        self._steps: list[Callable[[], Awaitable[None]]] = []

    @property
    def app(self) -> CockpitApp:
        return self.player.app

    def press(self, *keys: str) -> Cockpit:
        return self._then(lambda: self.player.press(*keys))

    def type(self, text: str) -> Cockpit:
        return self._then(lambda: self.player.type(text))

    def goes_to(self, job: int, name: str) -> Cockpit:
        """Types the job's number, and waits for the cursor to be on it."""
        return self.press(":").type(str(job)).press("Enter").stands_on(name)

    def paste(self, text: str) -> Cockpit:
        """As a terminal does."""

        async def send() -> None:
            self.app.post_message(Paste(text))

        return self._then(send)

    def resize(self, columns: int, rows: int) -> Cockpit:
        return self._then(lambda: self.player.resize(columns, rows))

    def lives(self, seconds: float) -> Cockpit:
        """So many seconds pass on the screen."""
        return self._then(lambda: self.player.elapse(seconds))

    def sees(self, *texts: str) -> Cockpit:
        """Sooner or later each is on the screen."""
        return self._holds(lambda screen: all(text in screen for text in texts), f"sees {texts}")

    def misses(self, *texts: str) -> Cockpit:
        """Sooner or later none of them is."""
        return self._holds(lambda screen: not any(text in screen for text in texts), f"misses {texts}")

    def stands_on(self, text: str) -> Cockpit:
        """The row under the cursor contains it."""
        return self._holds(lambda screen: text in under_cursor(screen), f"stands on {text!r}")

    def finds(self, holds: Callable[[str], bool], what: str) -> Cockpit:
        return self._holds(holds, what)

    def __await__(self) -> Generator[Any, None, str]:
        return self._take().__await__()

    async def _take(self) -> str:
        """The screen after the last step."""
        steps, self._steps = self._steps, []
        for step in steps:
            await step()
        return await self.player.screen()

    def _then(self, step: Callable[[], Awaitable[None]]) -> Cockpit:
        self._steps.append(step)
        return self

    def _holds(self, holds: Callable[[str], bool], what: str) -> Cockpit:
        patience = LIVE_PATIENCE_SECONDS if self.session.pace is None else PATIENCE_SECONDS

        async def look() -> None:
            if not await self.player.until(holds, patience, real_seconds=LIVE_PATIENCE_SECONDS):
                raise AssertionError(f"{what}: never, on\n{await self.player.screen()}")

        return self._then(look)


def under_cursor(screen: str) -> str:
    return next((line for line in screen.splitlines() if line.startswith(CURSOR_SIGN)), "")


def column(screen: str, title: str) -> list[str]:
    """The words that begin where the title begins, down to the first line without any."""
    lines = screen.splitlines()
    at, start = next((number, line.index(title)) for number, line in enumerate(lines) if title in line)
    return [line[start:].split("  ")[0].strip() for line in lines[at + 1 :] if line[start:].strip()]


@asynccontextmanager
async def at_the_cockpit(
    session: Session, size: tuple[int, int] = (120, 40), *, usual_order: bool = False, **outside: Any
) -> AsyncIterator[Cockpit]:
    """Stories count down a list in order of submission, unless they are about its `usual_order`.

    `outside`: what the app is given besides the session, such as `read_only` or `keys`.
    """
    try:
        app = story_app(session, **outside)
        if not usual_order:
            app.state.job_rows.sort_by("id")
        async with app.run_test(size=size, notifications=True) as pilot:
            yield Cockpit(Player(app, pilot, session), session)
    finally:
        await session.close()


def story_app(session: Session, **outside: Any) -> CockpitApp:
    """It hands over a terminal that is not there: its editors are scripts."""
    app = CockpitApp(session.backend, replace(app_for(session, {}).options, **outside))
    app.check_terminal = lambda: None  # type: ignore[method-assign]  # no terminal here
    app.suspend = nullcontext  # type: ignore[method-assign,assignment]  # likewise
    return app
