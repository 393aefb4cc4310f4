"""Controllers that give the terminal to a shell in a job's container, or to a session that has just been made."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from cockpit.model.asking import ShellRequest
from cockpit.model.job import JobState
from cockpit.model.spec import JobKind
from cockpit.present.entering import KILLED, WAS_KILLED, container_words, entry_lines
from cockpit.present.job.sessions import waiting_words
from cockpit.tui.controllers.chosen import named, task_of
from cockpit.tui.screens.pick import Choice, pick

if TYPE_CHECKING:
    from cockpit.model.ids import JobId
    from cockpit.model.jobdetail import JobDetail
    from cockpit.tui.cockpit import Cockpit

LEAVING = "exit or Ctrl-D returns to the cockpit."
SESSION_CONTINUES = (
    "exit or Ctrl-D returns to the cockpit; "
    "the session continues, idle or not, until it is stopped or reaches its time limit."
)
LOOKS, LOOK_SECONDS = 25, 0.2
"""The number of checks of a new session, and the seconds between two; one that starts later is opened with a key
instead."""


async def shell(app: Cockpit) -> None:
    """Open a shell in a container of the job; if the job has several, the user chooses one first."""
    app.check_terminal()
    (row, *_) = app.selection.chosen_rows()
    await enter(app, await app.backend.job(row.id))


async def enter(app: Cockpit, detail: JobDetail, *, image: str = "") -> None:
    """Give the terminal to a shell in a container of this job until the shell ends. `image`: in a container of this
    image beside that one; empty: in the container itself.

    Raises `CockpitError` where the application has no terminal.
    """
    from cockpit.headless.terminal import relay_terminal

    app.check_terminal()
    row = detail.row
    rank = await which_replica(app, detail)
    if rank is None:
        return
    size, term = app.size, os.environ.get("TERM", "xterm-256color")
    request = ShellRequest(
        job=row.id, rank=rank, terminal=True, rows=size.height, columns=size.width, term=term, image=image
    )
    session = await app.backend.open_shell(request)
    notice = "\n".join(entry_lines(detail, rank, session.notice, app.state.context()))
    # The event loop waits while the shell has the terminal: nothing may be drawn, and no key be read by both.
    with app.suspend():
        print(f"{notice}\n{SESSION_CONTINUES if row.kind is JobKind.INTERACTIVE else LEAVING}")  # noqa: T201 - the screen is the shell's now
        code = relay_terminal(session, 0, 1)
        if code == KILLED:
            print(f"\n{WAS_KILLED}")  # noqa: T201 - as above
    app.refresh()
    # Once more as a toast: what was printed is overwritten by the screen in the same moment.
    if code == KILLED:
        app.notify(WAS_KILLED, severity="warning")


async def which_replica(app: Cockpit, detail: JobDetail) -> int | None:
    """Return the rank of the only replica, or of the one that the user chooses; None: the user chose none.

    Failed replicas come first in the list.
    """
    attempt = detail.job.attempt
    if attempt is None or len(attempt.replicas) < 2:
        return 0
    context = app.state.context()
    failed_first = sorted(attempt.replicas, key=lambda each: (each.exit is None or each.exit.ok, each.rank))
    choices = []
    for each in failed_first:
        _, which, *how = container_words(detail, each.rank, context)
        choices.append(Choice(str(each.rank), which, " · ".join(how)))
    title = f"{named([detail.row])}: which container"
    picked = await pick(app, title, choices, verb="opens a shell in it")
    return None if picked is None else int(picked.id)


async def develop(app: Cockpit) -> None:
    """Open the form of a session like the job, and its terminal once it runs; for a session, the form of a training."""
    from cockpit.tui.controllers.editing import write_session, write_training

    (row, *_) = app.selection.chosen_rows()
    spec = (await app.backend.job(row.id, task=task_of(row))).job.spec
    if spec.kind is JobKind.INTERACTIVE:
        await write_training(app, spec)
    elif (job := await write_session(app, spec)) is not None:
        await _enter_once_it_runs(app, job)


async def _enter_once_it_runs(app: Cockpit, job: JobId) -> None:
    detail = await _begun(app, job)
    if detail.row.state is JobState.RUNNING and not detail.job.spec.command:
        await enter(app, detail)
    else:
        app.notify(waiting_words(detail, app.state.context(), app.state.panel_context(0).keys.get("attach", "")))


async def _begun(app: Cockpit, job: JobId) -> JobDetail:
    """Return the job once it runs or has ended, else after the last check."""
    detail = await app.backend.job(job)
    for _ in range(LOOKS):
        if detail.row.state is JobState.RUNNING or detail.row.ended_at is not None:
            break
        await asyncio.sleep(LOOK_SECONDS)
        detail = await app.backend.job(job)
    return detail
