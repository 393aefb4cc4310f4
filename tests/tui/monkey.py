"""A user who presses, clicks, pastes and resizes at random: the same seed does the same."""

from __future__ import annotations

import asyncio
from collections import deque
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from textual import events

from cockpit.tui.actions.all import ACTIONS, command_name
from cockpit.tui.opening import app_for
from cockpit.tui.play import Player
from cockpit.tui.screens.dialog import Confirm
from cockpit.tui.screens.form import FormScreen
from cockpit.tui.screens.main import MainScreen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cockpit.tui.app import CockpitApp
    from cockpit.tui.opening import Session

SIZES = [(80, 24), (120, 40), (200, 60), (40, 12), (20, 6), (160, 50)]
KEYS = sorted({key for action in ACTIONS for key in action.keys} - {"q", "ctrl+c"})
MOVES = ["j", "k", "g", "G", "up", "down", "left", "right", "home", "end", "pageup", "pagedown", "ctrl+d", "ctrl+u"]
OTHERS = [
    "enter",
    "escape",
    "tab",
    "shift+tab",
    "space",
    "backspace",
    "delete",
    "V",
    "ctrl+p",
    "y",
    "n",
    "f12",
    "é",
    "训",
]
WORDS = [
    "state:",
    "state:faild",
    "user:me",
    "cards>=1",
    "!name~x",
    '"',
    "train",
    "1",
    "99999999999999999999",
    "-1",
    "%50",
]
PASTES = [
    "one line",
    "two\nlines\n",
    "#!/bin/bash\n#SBATCH -n 2\nsleep 1\n",
    "\x1b]52;c;aGk=\x07",
    "{bad: yaml",
    "x" * 3000,
]
QUITS = {"q", "ctrl+c", "enter"}
"""Keys of which one may end the cockpit, if only by the action or the cluster that it chooses."""
LAST = 30
"""Number of events that a failure lists."""
SETTLE_SECONDS = 120.0


class Step(NamedTuple):
    kind: str
    detail: str


class Monkey:
    """Draws events from a seed, and does them at one cockpit after the other: some of them quit it."""

    def __init__(self, seed: int, count: int) -> None:
        self._random, self.seed, self._left = Random(seed), seed, count
        self.did: deque[Step] = deque(maxlen=LAST)
        self.opened = 0

    async def play(self, open_session: Callable[[], Awaitable[Session]]) -> None:
        """Do all events. Raises what ended a cockpit, with the seed and the last events in a note."""
        try:
            while self._left > 0:
                session = await open_session()
                self.opened += 1
                try:
                    await self._at(session)
                finally:
                    await session.close()
        except BaseException as error:
            error.add_note(f"seed {self.seed}, {self._left} events left; the last of them:\n{self._history()}")
            raise

    async def _at(self, session: Session) -> None:
        app = app_for(session, {})
        async with app.run_test(size=(120, 40), notifications=True) as pilot:
            player = Player(app, pilot, session)
            while self._left > 0 and not player.over:
                self._left -= 1
                await self._do(player)
                assert not app.failed
            if player.over:
                assert QUITS & {step.detail for step in self.did}, "it ended though nothing asked it to"
                assert app.return_code == 0
                return
            await self._ends_on_the_list(player)

    async def _ends_on_the_list(self, player: Player) -> None:
        """Escape leads back to the list from everywhere, and never further."""
        for _ in range(20):
            await self._settled(player.press("Esc"))
            # A form that was changed asks whether to leave it, and Escape means No there.
            if isinstance(player.app.screen, Confirm) and isinstance(player.app.screen_stack[-2], FormScreen):
                await self._settled(player.press("y"))
        assert not player.over, "Escape ended it"
        assert isinstance(player.app.screen, MainScreen), player.app.screen
        await self._settled(player.press("1"))
        assert player.app.main_screen.tables.view.id == "jobs"

    async def _do(self, player: Player) -> None:
        app, random = player.app, self._random
        draw = random.random()
        if draw < 0.55:
            self._press(app, random.choice(random.choice([KEYS, KEYS, MOVES, OTHERS])))
        elif draw < 0.60:
            self._press(
                app, "colon", *random.choice([command_name(random.choice(ACTIONS).id), *WORDS])[:6], "tab", "enter"
            )
        elif draw < 0.64:
            self._press(app, "ctrl+p", *random.choice([random.choice(ACTIONS).id[:4], *WORDS]), "down", "enter")
        elif draw < 0.68:
            self._press(app, "slash", *random.choice(WORDS), random.choice(["tab", "enter", "escape"]))
        elif draw < 0.86:
            self._click(app)
        elif draw < 0.90:
            self._paste(app)
        elif draw < 0.94:
            await self._resize(player)
        elif draw < 0.945:
            self._press(app, random.choice(sorted(QUITS)))
        else:
            await self._live(player)
        # Mostly at once, as keys that arrive over a slow line do; now and then all of it has had its effect.
        if random.random() < 0.2:
            await self._settled(player.press("f24"))
        else:
            await asyncio.sleep(0)

    async def _settled(self, work: Awaitable[None]) -> None:
        async with asyncio.timeout(SETTLE_SECONDS):
            await work

    def _press(self, app: CockpitApp, *keys: str) -> None:
        for key in keys:
            self.did.append(Step("key", key))
            app.post_message(events.Key(key, key if len(key) == 1 else CHARACTERS.get(key)))

    def _click(self, app: CockpitApp) -> None:
        # Mostly in the lines in which there is something to click: tabs, titles, rows, keys.
        columns, rows = app.size
        x, y = self._random.randrange(max(1, columns)), self._random.randrange(max(1, rows))
        button = self._random.choice([1, 1, 1, 3])
        for _ in range(self._random.choice([1, 1, 2, 3])):
            self.did.append(Step("click", f"{x},{y} button {button}"))
            for kind in (events.MouseMove, events.MouseDown, events.MouseUp):
                app.post_message(_mouse(kind, x, y, button))
        if self._random.random() < 0.2:
            self.did.append(Step("scroll", f"{x},{y}"))
            app.post_message(_mouse(self._random.choice([events.MouseScrollDown, events.MouseScrollUp]), x, y, 0))

    def _paste(self, app: CockpitApp) -> None:
        text = self._random.choice(PASTES)
        self.did.append(Step("paste", repr(text[:40])))
        app.post_message(events.Paste(text))

    async def _resize(self, player: Player) -> None:
        size = self._random.choice(SIZES)
        self.did.append(Step("resize", f"{size[0]}x{size[1]}"))
        await self._settled(player.resize(*size))

    async def _live(self, player: Player) -> None:
        """Let time pass in a demo: jobs end and start below open pages and questions."""
        seconds = self._random.choice([1, 5, 60])
        if player.app.options.pace is None:  # a real engine's time passes by itself
            return
        self.did.append(Step("time", f"{seconds} s"))
        await self._settled(player.elapse(seconds))

    def _history(self) -> str:
        return "\n".join(f"  {kind} {detail}" for kind, detail in self.did)


CHARACTERS = {"slash": "/", "colon": ":", "question_mark": "?", "space": " ", "plus": "+", "minus": "-", "enter": "\r"}


def _mouse(kind: type[events.MouseEvent], x: int, y: int, button: int) -> events.MouseEvent:
    return kind(None, x, y, 0, 0, button, shift=False, meta=False, ctrl=False, screen_x=x, screen_y=y)
