"""Controllers that change jobs and open shells in them.

They call the application's backend; a refusal is an exception that the application shows as a toast.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

from cockpit.config.boards import board_name, board_of, runs_of
from cockpit.formats.typed_values import WORKERS_EXPECTED, limit_text, read_limit, read_workers
from cockpit.model.asking import ShellRequest, WantedLimit
from cockpit.model.capabilities import Ability
from cockpit.model.ids import JobRef, NodeName
from cockpit.model.job import JobState
from cockpit.model.reasons import Held
from cockpit.model.spec import JobKind, PriorityWord
from cockpit.present.entering import KILLED, WAS_KILLED, container_words, entry_lines
from cockpit.present.folding import id_text, task_count
from cockpit.present.job.sessions import waiting_words
from cockpit.present.outlook import until
from cockpit.present.outlook import what_if as words
from cockpit.present.safe import safe
from cockpit.present.tables.block_list import lasting_blocks
from cockpit.present.units import counted, duration
from cockpit.tui import editing
from cockpit.tui.screens.dialog import Confirm
from cockpit.tui.screens.pick import Choice, pick

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from cockpit.model.asking import WantedPriority
    from cockpit.model.ids import JobId
    from cockpit.model.jobdetail import JobDetail
    from cockpit.model.jobrow import JobRow
    from cockpit.model.spec import JobSpec
    from cockpit.tui.cockpit import Cockpit


EXTEND_SECONDS = 2 * 3600
ADDRESS_SECONDS = 30.0
"""Seconds for which the toast with the address is shown: copying an address takes longer than reading a sentence."""
TIME_LIMIT: Final = "time-limit"
SCALE: Final = "scale"
_ANOTHER: Final = "another"
_USUAL: Final = {"+1h": "one hour longer", "+4h": "four hours longer", "+1d": "one day longer", "+7d": "a week longer"}
_URGENCY = {
    PriorityWord.NORMAL: "the default",
    PriorityWord.URGENT: "limited in number per user and project",
    PriorityWord.VERY_URGENT: "only administrators may set it",
}
LEAVING = "exit or Ctrl-D returns to the cockpit."
SESSION_CONTINUES = (
    "exit or Ctrl-D returns to the cockpit; "
    "the session continues, idle or not, until it is stopped or reaches its time limit."
)


async def clone_job(app: Cockpit) -> None:
    """Open the form with a copy of the job under the cursor, under a free name, and submit it."""
    await editing.write_clone(app, await _chosen_spec(app))


async def _chosen_spec(app: Cockpit) -> JobSpec:
    """Return the spec of the job under the cursor; for the folded row of an array, that of the whole array."""
    (row, *others) = app.selection.chosen_rows()
    one_array = row.array is not None and all(each.array and each.array.array == row.array.array for each in others)
    # One task alone keeps its index: a copy of it is a job by itself and not the array.
    whole = row.array is not None and others and one_array
    ref = JobRef(row.array.array) if row.array is not None and whole else JobRef(row.id, task=task_of(row))
    return (await app.backend.job(row.id)).named_by(ref)


async def edit_job(app: Cockpit) -> None:
    """Open the form with the queued job's spec and save the changes; the job keeps its id and its place."""
    (row, *_) = app.selection.chosen_rows()
    await editing.write_again(app, await app.backend.job(row.id))


async def what_if(app: Cockpit) -> None:
    """Let the user choose a request with which the job would start sooner; the job keeps its id and its place."""
    (row, *_) = app.selection.chosen_rows()
    outlook = await app.backend.explain(row.id)
    if not outlook.what_ifs:
        app.notify(f"no other request would start {named([row])} sooner")
        return
    context = app.state.context()
    choices = [
        Choice(str(number), words(each), until(each.forecast, context)) for number, each in enumerate(outlook.what_ifs)
    ]
    title = f"{named([row])}: what would start it sooner"
    picked = await pick(app, title, choices, verb="requests it")
    if picked is None:
        return
    chosen = outlook.what_ifs[int(picked.id)]
    question = f"Change {named([row])}?"
    starts = until(chosen.forecast, context)
    consequence = f"It runs {words(chosen)} and starts {starts}; it keeps its id and its place."
    if await app.push_screen_wait(Confirm(question, consequence)):
        await app.backend.edit(row.id, chosen.spec)
        app.notify(f"changed {named([row])}")


async def cancel(app: Cockpit) -> None:
    """Ask, then cancel the chosen jobs."""
    await _confirmed(app, "Stop", "The processes get SIGTERM, and SIGKILL after the grace period.", app.backend.cancel)


async def delete(app: Cockpit) -> None:
    """Ask, then delete the chosen jobs, which have ended, from the lists."""
    await _confirmed(
        app, "Delete", "Its logs and held containers are removed; its accounting stays.", app.backend.delete
    )


async def end_hold(app: Cockpit) -> None:
    """Ask, then end the holds of the chosen jobs, which removes their containers."""
    await _confirmed(
        app,
        "End the hold of",
        "The container is removed; output and logs stay.",
        lambda job, task: app.backend.end_hold(job),  # noqa: ARG005 - the id is the task's own
    )


async def extend_hold(app: Cockpit) -> None:
    """Extend the holds of the chosen jobs by two hours."""
    for row in app.selection.chosen_rows():
        await app.backend.extend_hold(row.id, seconds=EXTEND_SECONDS)
    app.notify("hold extended by two hours")


async def unblock(app: Cockpit) -> None:
    """Let the user choose a node on the job's block list, and take it off."""
    row = app.selection.chosen_rows()[0]
    blocked = {each.node: each for each in lasting_blocks((await app.backend.job(row.id)).job)}
    if not blocked:
        app.notify(f"No node is on the block list of {named([row])}.")
        return
    choices = [Choice(name, safe(name), safe(each.because)) for name, each in blocked.items()]
    picked = await pick(app, f"Block list of {named([row])}", choices, verb="takes it off")
    if picked is not None:
        await app.backend.unblock(row.id, NodeName(picked.id))
        app.notify(f"{named([row])} may have workers on {safe(picked.id)} again")


async def hold_or_release(app: Cockpit) -> None:
    """Hold those of the chosen jobs that are not held, and release the others."""
    for row in app.selection.chosen_rows():
        held = isinstance(row.reason, Held)
        act = app.backend.release if held else app.backend.hold
        await act(row.id, task=task_of(row))


async def suspend_or_resume(app: Cockpit) -> None:
    """Suspend those of the chosen jobs that run, and resume the others."""
    for row in app.selection.chosen_rows():
        act = app.backend.resume if row.state is JobState.SUSPENDED else app.backend.suspend
        await act(row.id, task=task_of(row))


async def requeue(app: Cockpit) -> None:
    """Ask, then requeue the chosen jobs."""
    await _confirmed(app, "Requeue", "What it did so far is lost, unless it saved it.", app.backend.requeue)


async def set_priority(app: Cockpit) -> None:
    """Let the user choose a priority word for the chosen jobs."""
    choices = [Choice(str(word), str(word), about) for word, about in _URGENCY.items()]
    rows = app.selection.chosen_rows()
    picked = await pick(app, f"Priority of {named(rows)}", choices, verb="sets it")
    if picked is not None:
        await prioritise(app, rows, PriorityWord(picked.id))


async def prioritise(app: Cockpit, rows: Sequence[JobRow], wanted: WantedPriority) -> None:
    """Set the priority of all these jobs."""
    for row in rows:
        await app.backend.set_priority(row.id, wanted, task=task_of(row))
    app.notify(f"priority {wanted} for {named(rows)}")


async def choose_limit(app: Cockpit) -> None:
    """Let the user choose one of a few usual changes of the time limit, or type another one."""
    rows = app.selection.chosen_rows()
    choices = [Choice(text, about, _resulting_limit(rows, text)) for text, about in _USUAL.items()]
    # No limit has this text, so that `read_limit` below returns None for it.
    choices.append(Choice(_ANOTHER, "another", "6h, or -30m beside the present one"))
    picked = await pick(app, f"Time limit of {named(rows)}", choices, verb="sets it")
    if picked is None:
        return
    wanted = read_limit(picked.id)
    if wanted is None:
        app.main_screen.entry_line.ask_command(f"{TIME_LIMIT} ")
    else:
        await set_limit(app, rows, wanted)


async def set_limit(app: Cockpit, rows: Sequence[JobRow], wanted: WantedLimit) -> None:
    """Set or change the time limit of all these jobs."""
    for row in rows:
        await app.backend.set_time_limit(row.id, wanted, task=task_of(row))
    app.notify(f"time limit {limit_text(wanted)} for {named(rows)}")


def _resulting_limit(rows: Sequence[JobRow], text: str) -> str:
    """Return the time limit after this change in words; empty where several jobs may end up with different ones."""
    wanted = read_limit(text)
    if wanted is None or len(rows) != 1:
        return ""
    return duration(rows[0].time_limit_seconds + wanted.seconds)


async def scale(app: Cockpit, text: str) -> None:
    """Change the number of workers of the chosen elastic job."""
    if (wanted := read_workers(text)) is None:
        app.notify(f"{safe(text)} is no number of workers; write {WORKERS_EXPECTED}.", severity="warning")
        return
    (row, *_) = app.selection.chosen_rows()
    spec = (await app.backend.job(row.id, task=task_of(row))).job.spec
    if spec.elastic is not None:
        await app.backend.edit(row.id, wanted.of(spec))
        app.notify(f"{counted(wanted.count_of(spec.elastic), 'worker')} for {named([row])}")


async def tensorboard(app: Cockpit) -> None:
    """Start TensorBoard on the job's output and show its address; if it runs already, ask whether to stop it."""
    (row, *_) = app.selection.chosen_rows()
    detail = await app.backend.job(row.id, task=task_of(row))
    board = board_of(board_name(detail), os.environ)
    # All tasks of a batch share one board, so it is the batch that the messages name.
    batch = row.array.array if detail.batch is not None and row.array is not None else None
    whose = f"job {batch} {row.name}" if batch is not None else named([row])
    # In threads: to look takes a lock of the file system, and to start takes seconds.
    if address := await asyncio.to_thread(lambda: board.address):
        if await app.push_screen_wait(Confirm(f"Stop the TensorBoard of {whose}?", f"It is at {address}")):
            await asyncio.to_thread(board.stop)
            app.notify("TensorBoard is stopped")
        return
    app.notify(f"TensorBoard of {whose} starts …")
    address = await asyncio.to_thread(board.start, runs_of(detail))
    app.boards.append(board)
    app.notify(f"TensorBoard of {whose} is at {address}\nIt ends with this cockpit.", timeout=ADDRESS_SECONDS)


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
    rank = await _which_replica(app, detail)
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


async def _which_replica(app: Cockpit, detail: JobDetail) -> int | None:
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


async def _confirmed(app: Cockpit, verb: str, consequence: str, act: Callable[..., Awaitable[None]]) -> None:
    """Ask, then call `act` for each chosen job, with its id and, by keyword, its task in an array.

    The id alone would not do: the id of an array's first task is that of the array, too. Where the cluster runs
    commands, each is shown before it runs with a question of its own, so that this does not ask a second time.
    """
    rows = app.selection.chosen_rows()
    shows_commands = app.backend.capabilities_for(row.id for row in rows).has(Ability.COMMANDS)
    if shows_commands or await app.push_screen_wait(Confirm(f"{verb} {named(rows)}?", consequence)):
        for row in rows:
            await act(row.id, task=task_of(row))


def named(rows: Sequence[JobRow]) -> str:
    """Return the jobs in words: `job 7 bert`, or `3 jobs`."""
    count = sum(map(task_count, rows))
    return f"job {id_text(rows[0])} {rows[0].name}" if count == 1 else counted(count, "job")


def task_of(row: JobRow) -> int | None:
    """Return the row's index in its array, without which the id of the first task would mean the whole array.

    None: the job is no task, or the row stands for several waiting tasks, whose id means just those.
    """
    return None if row.array is None or row.tasks else row.array.index


LOOKS, LOOK_SECONDS = 25, 0.2
"""The number of checks of a new session, and the seconds between two; one that starts later is opened with a key
instead."""


async def develop(app: Cockpit) -> None:
    """Open the form of a session like the job, and its terminal once it runs; for a session, the form of a training."""
    from cockpit.tui.editing import write_session, write_training

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
