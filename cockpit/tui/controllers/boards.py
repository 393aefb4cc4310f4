"""Controllers that start and stop TensorBoard on a job's output folders. TensorBoard ends with the application."""

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
"""How long the toast with the address is shown: copying an address takes longer than reading a sentence."""


async def tensorboard(app: CockpitBase) -> None:
    """Start TensorBoard on the job's output and show its address; if it runs already, ask whether to stop it."""
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
