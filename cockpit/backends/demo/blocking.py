"""Opens a demo for one-shot commands, which ends with the command."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cockpit.backends.blocking import Blocking
from cockpit.backends.demo.backend import DEFAULT_FIXTURE, DEFAULT_SEED, DemoBackend, open_demo
from cockpit.backends.demo.pace import DEFAULT_SPEED
from cockpit.runtime.exit_signals import exit_on_signals

if TYPE_CHECKING:
    from cockpit.backends.demo.backend import DemoCluster


class BlockingDemo(Blocking[DemoBackend]):
    """Implements `Backend`; its time is the demo's own."""

    def __init__(self, runner: asyncio.Runner, demo: DemoCluster) -> None:
        super().__init__(runner, demo.backend)
        self._demo = demo
        self.now = demo.now

    @classmethod
    def open(
        cls, fixture: str = DEFAULT_FIXTURE, seed: int = DEFAULT_SEED, speed: float = DEFAULT_SPEED
    ) -> BlockingDemo:
        """Open a demo; the arguments are those of `open_demo`."""
        exit_on_signals()
        runner = asyncio.Runner()
        return cls(runner, runner.run(open_demo(fixture, seed, speed=speed)))

    async def close(self) -> None:
        self._run(self._demo.close())
        self._runner.close()
