"""Controllers that change jobs and open shells in them.

They call the application's backend; a refusal is an exception that the application shows as a toast.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cockpit.config.boards import board_name, board_of, runs_of
from cockpit.formats.typed_values import WORKERS_EXPECTED, limit_text, priority_text, read_limit, read_workers
from cockpit.model.asking import WantedLimit
from cockpit.model.capabilities import Ability
from cockpit.model.ids import JobRef, NodeName
from cockpit.model.job import JobState
from cockpit.model.reasons import Held
from cockpit.model.spec import PriorityWord
from cockpit.present.outlook import until
from cockpit.present.outlook import what_if as words
from cockpit.present.safe import safe
from cockpit.present.tables.block_list import lasting_blocks
from cockpit.present.units import counted, duration
from cockpit.tui.controllers import changing, editing, ways_back
from cockpit.tui.controllers.chosen import named, task_of
from cockpit.tui.screens.dialog import Confirm
from cockpit.tui.screens.pick import Choice, pick
from cockpit.tui.undo import WayBack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.model.asking import WantedPriority
    from cockpit.model.jobrow import JobRow
    from cockpit.model.spec import JobSpec
    from cockpit.tui.cockpit import Cockpit


Act = Callable[["JobRow"], Awaitable[None]]
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


class Turn(NamedTuple):
    """One of the two directions of an act that its own reverse undoes."""

    act: Callable[..., Awaitable[Any]]
    past: str
    """What it has done, as in `held job 7`."""
    verb: str
    """What it does, as in `holds it`."""
    may: Callable[[Sequence[JobRow]], Awaitable[bool]] | None = None
    """Asks whether the user wants to do it with these jobs, where that ends something; None: it ends nothing."""


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
    """Open the form with the queued job's spec and save the changes; the job keeps its id and its place.

    Of a job that has started, show what can still be changed.
    """
    (row, *_) = app.selection.chosen_rows()
    if row.queued:
        await editing.write_again(app, await app.backend.job(row.id))
    else:
        await changing.change_running(app, row)


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
        before = (await app.backend.job(row.id)).job.spec
        await app.backend.edit(row.id, chosen.spec)
        app.last_act.done(f"changed {named([row])}", ways_back.of_edit(app, row.id, named([row]), before))


async def cancel(app: Cockpit) -> None:
    """Ask, then cancel the chosen jobs."""
    rows = app.selection.chosen_rows()
    if await _confirmed(app, rows, "Stop", "The processes get SIGTERM, and SIGKILL after the grace period."):
        way = await ways_back.of_cancel(app, rows)
        await _each(app, rows, _by_task(app.backend.cancel), lambda done: (f"stopped {named(done)}", way))


async def delete(app: Cockpit) -> None:
    """Ask, then delete the chosen jobs, which have ended, from the lists."""
    rows = app.selection.chosen_rows()
    if await _confirmed(app, rows, "Delete", "Its logs and held containers are removed; its accounting stays."):
        act = _by_task(app.backend.delete)
        await _each(app, rows, act, lambda done: (f"deleted {named(done)}", ways_back.NO_DELETED))


async def end_hold(app: Cockpit) -> None:
    """Ask, then end the holds of the chosen jobs, which removes their containers."""

    async def end(row: JobRow) -> None:
        await app.backend.end_hold(row.id)  # the id is the task's own

    rows = app.selection.chosen_rows()
    if await _confirmed(app, rows, "End the hold of", "The container is removed; output and logs stay."):
        await _each(app, rows, end, lambda done: (f"ended the hold of {named(done)}", ways_back.NO_CONTAINER))


async def extend_hold(app: Cockpit) -> None:
    """Extend the holds of the chosen jobs by two hours."""

    async def extend(row: JobRow) -> None:
        await app.backend.extend_hold(row.id, seconds=EXTEND_SECONDS)

    rows = app.selection.chosen_rows()
    await _each(app, rows, extend, lambda _: ("hold extended by two hours", ways_back.NO_SHORTER_HOLD))


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
        done = f"{named([row])} may have workers on {safe(picked.id)} again"
        app.last_act.done(done, ways_back.NO_UNBLOCK)


async def hold_or_release(app: Cockpit) -> None:
    """Hold those of the chosen jobs that are not held, and release the others."""
    await _switch(
        app,
        lambda row: isinstance(row.reason, Held),
        on=Turn(app.backend.hold, "held", "holds"),
        off=Turn(app.backend.release, "released", "releases"),
    )


async def suspend_or_resume(app: Cockpit) -> None:
    """Suspend those of the chosen jobs that run, and resume the others. Ask first where their processes end with it."""

    async def may_suspend(rows: Sequence[JobRow]) -> bool:
        lost = app.backend.capabilities_for(row.id for row in rows).why_not(Ability.PAUSE)
        return not lost or await app.push_screen_wait(Confirm(f"Suspend {named(rows)}?", lost))

    await _switch(
        app,
        lambda row: row.state is JobState.SUSPENDED,
        on=Turn(app.backend.suspend, "suspended", "suspends", may_suspend),
        off=Turn(app.backend.resume, "resumed", "resumes"),
    )


async def _switch(app: Cockpit, is_on: Callable[[JobRow], bool], on: Turn, off: Turn) -> None:
    """Turn each of the chosen jobs off that is on, and each other one on; the way back is the reverse."""
    rows = app.selection.chosen_rows()
    turns = {row.id: (off, on) if is_on(row) else (on, off) for row in rows}

    def turned(jobs: Sequence[JobRow], turn: Turn, place: int) -> list[JobRow]:
        return [row for row in jobs if turns[row.id][place] is turn]

    async def is_wanted(jobs: Sequence[JobRow], place: int) -> bool:
        asked = turned(jobs, on, place)
        return not asked or on.may is None or await on.may(asked)

    async def act(row: JobRow) -> None:
        await turns[row.id][0].act(row.id, task=task_of(row))

    def words(done: Sequence[JobRow], place: int) -> str:
        by_turn = {turn: turned(done, turn, place) for turn in (on, off)}
        return " and ".join(f"{turn.past} {named(jobs)}" for turn, jobs in by_turn.items() if jobs)

    def way(done: Sequence[JobRow]) -> WayBack:
        async def go_back() -> str:
            if not await is_wanted(done, 1):
                return ""
            for row in done:
                await turns[row.id][1].act(row.id, task=task_of(row))
            return words(done, 1)

        reverses = {turns[row.id][1] for row in done}
        them = "it" if len(done) == 1 else "them"
        return WayBack(f"{reverses.pop().verb} {them}" if len(reverses) == 1 else "undoes that", go_back)

    if await is_wanted(rows, 0):
        await _each(app, rows, act, lambda done: (words(done, 0), way(done)))


async def requeue(app: Cockpit) -> None:
    """Ask, then requeue the chosen jobs."""
    rows = app.selection.chosen_rows()
    if await _confirmed(app, rows, "Requeue", "What it did so far is lost, unless it saved it."):
        act = _by_task(app.backend.requeue)
        await _each(app, rows, act, lambda done: (f"requeued {named(done)}", ways_back.NO_UNREQUEUE))


async def set_priority(app: Cockpit) -> None:
    """Let the user choose a priority word for the chosen jobs."""
    choices = [Choice(str(word), str(word), about) for word, about in _URGENCY.items()]
    rows = app.selection.chosen_rows()
    picked = await pick(app, f"Priority of {named(rows)}", choices, verb="sets it")
    if picked is not None:
        await prioritise(app, rows, PriorityWord(picked.id))


async def prioritise(app: Cockpit, rows: Sequence[JobRow], wanted: WantedPriority) -> None:
    """Set the priority of all these jobs."""
    before = await ways_back.details_of(app, rows)

    async def act(row: JobRow) -> None:
        await app.backend.set_priority(row.id, wanted, task=task_of(row))

    text = priority_text(wanted)
    await _each(
        app,
        rows,
        act,
        lambda done: (f"priority {text} for {named(done)}", ways_back.of_priority(app, done, before, wanted)),
    )


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

    async def act(row: JobRow) -> None:
        await app.backend.set_time_limit(row.id, wanted, task=task_of(row))

    text = limit_text(wanted)
    await _each(app, rows, act, lambda done: (f"time limit {text} for {named(done)}", ways_back.of_limit(app, done)))


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
        count = counted(wanted.count_of(spec.elastic), "worker")
        app.last_act.done(f"{count} for {named([row])}", ways_back.of_edit(app, row.id, named([row]), spec))


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


async def _confirmed(app: Cockpit, rows: Sequence[JobRow], verb: str, consequence: str) -> bool:
    """Ask whether to do this with these jobs.

    Where the cluster runs commands, each is shown before it runs with a question of its own, so that this does not ask
    a second time.
    """
    shows_commands = app.backend.capabilities_for(row.id for row in rows).has(Ability.COMMANDS)
    return shows_commands or await app.push_screen_wait(Confirm(f"{verb} {named(rows)}?", consequence))


def _by_task(operation: Callable[..., Awaitable[None]]) -> Act:
    """Return the act that calls this operation with a job's id and, by keyword, its task in an array.

    The id alone would not do: the id of an array's first task is that of the array, too.
    """
    return lambda row: operation(row.id, task=task_of(row))


async def _each(
    app: Cockpit,
    rows: Sequence[JobRow],
    act: Act,
    words: Callable[[Sequence[JobRow]], tuple[str, WayBack | str]],
) -> None:
    """Do this with each job in turn. `words` returns the sentence about those that it was done with, and the way back.

    A refusal skips the rest; what was done before it can be undone.
    """
    done: list[JobRow] = []
    try:
        for row in rows:
            await act(row)
            done.append(row)
    finally:
        if done:
            app.last_act.done(*words(done))
