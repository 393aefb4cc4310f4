"""How long the demo takes to have lived its first hours."""

from __future__ import annotations

import asyncio
import time
from statistics import median
from typing import TYPE_CHECKING

from cockpit.backends.demo.backend import open_demo

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bench.figures import Figures

TIMES = 7


async def opening_ms(folder: Path) -> float:
    began = time.perf_counter()
    demo = await open_demo(folder=folder)
    took = time.perf_counter() - began
    await demo.close()
    return took * 1000


def test_the_demo_opens_at_once(figure: Figures, tmp_path: Path) -> None:
    taken = [asyncio.run(opening_ms(tmp_path / str(number))) for number in range(TIMES)]
    figure("PF-11", "of it, the demo's first hours lived, median", median(taken))
