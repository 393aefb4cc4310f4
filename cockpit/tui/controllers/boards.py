"""TensorBoard over a job's output folders. What this cockpit started ends with it."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from cockpit.config.boards import board_of
from cockpit.present.boards import board_name, runs_of
from cockpit.tui.controllers.jobs import named, task_of
from cockpit.tui.screens.confirm import Confirm

if TYPE_CHECKING:
    from cockpit.tui.cockpit_base import CockpitBase

ADDRESS_SECONDS = 30.0
"""An address takes longer to copy than a sentence to read."""


async def tensorboard(app: CockpitBase) -> None:
    """Start it and say where it is; of one that runs say so, and ask whether it is to end."""
    (row, *_) = app.chosen_rows()
    detail = await app.backend.job(row.id, task=task_of(row))
    board = board_of(board_name(detail), os.environ)
    if address := await asyncio.to_thread(lambda: board.address):
        if await app.push_screen_wait(Confirm(f"Stop the TensorBoard of {named([row])}?", f"It is at {address}")):
            await asyncio.to_thread(board.stop)
            app.notify("TensorBoard is stopped")
        return
    app.notify(f"TensorBoard of {named([row])} starts …")
    address = await asyncio.to_thread(board.start, runs_of(detail))
    app.boards.append(board)
    app.notify(f"TensorBoard of {named([row])} is at {address}\nIt ends with this cockpit.", timeout=ADDRESS_SECONDS)
