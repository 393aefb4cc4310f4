"""A program with the cockpit in it, told apart from outside when it has done what its keys mean and has shown it:
`python -m tests.doubles.fence cockpit.cli demo`. Whoever waits for that waits no longer than needed, and long enough on
a machine that is busy.
"""

from __future__ import annotations

import os
import re
import runpy
import sys
from typing import TYPE_CHECKING, Any

from textual.events import Event, Key

from cockpit.tui.app import CockpitApp
from tests.doubles.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DESCRIPTOR = "COCKPIT_TEST_FENCE"
"""Where the number of keys is written that are done with."""
LOOK_SECONDS = 0.01
KEYS = re.compile(r"(\x1b\[200~.*?\x1b\[201~)|\x1b\[[0-9;]*[A-Za-z~]|.", re.DOTALL)
"""The first group is a paste, which is no key."""


class FencedTerminal(Terminal):
    """Around a Python module that runs a cockpit."""

    def __init__(self, module: Sequence[str], env: Mapping[str, str], **options: Any) -> None:
        self._answers, theirs = os.pipe()
        self._asked = self._done = 0
        command = [sys.executable, "-m", "tests.doubles.fence", *module]
        super().__init__(command, {**env, DESCRIPTOR: str(theirs)}, pass_fds=(theirs,), **options)
        os.close(theirs)

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        os.close(self._answers)

    def do(self, keys: str) -> None:
        """Press them; returns when all that they mean is on the screen."""
        self._asked += sum(not found[1] for found in KEYS.finditer(keys))
        self.press(keys)
        while self._done < self._asked:
            answer = self.read_in_time(self._answers)
            if not answer:
                last = b"".join(chunk.data for chunk in self.chunks)[-3000:]
                raise EOFError(f"the program ended at {keys!r}; the last that it wrote: {last!r}")
            self._done = int(answer.split()[-1])


def tell(fd: int) -> None:
    """Every cockpit of this process tells from now on."""
    come = told = 0
    take = CockpitApp.on_event

    async def on_event(self: CockpitApp, event: Event) -> None:
        nonlocal come
        if isinstance(event, Key) and not event.is_forwarded:
            if not come:
                self.set_interval(LOOK_SECONDS, lambda: look(self))
            come += 1
        await take(self, event)

    def look(app: CockpitApp) -> None:
        nonlocal told
        if told < come and app.key_queue.is_idle:
            told = come
            app.screen.call_after_refresh(os.write, fd, b"%d\n" % told)

    CockpitApp.on_event = on_event  # type: ignore[method-assign]  # the real one, and a look at it


if __name__ == "__main__":
    tell(int(os.environ[DESCRIPTOR]))
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
