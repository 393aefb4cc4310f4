"""Every act of the cockpit, once: the key map, the bottom row, the help, the palette and the command line are made of
this table. What cannot be done says why.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from cockpit.errors import CockpitError
from cockpit.model.job import JobState
from cockpit.tui import deeds

if TYPE_CHECKING:
    from cockpit.model.view import JobRow
    from cockpit.tui.face import Face

JOBS, NODES, JOB = "jobs", "nodes", "job"
ANYWHERE = frozenset({JOBS, NODES, JOB})
ON_JOBS = frozenset({JOBS, JOB})


class Situation(NamedTuple):
    """What an action's fitness depends on."""

    view: str
    chosen: Sequence[JobRow]
    """The marked jobs, else the one under the cursor."""
    read_only: str
    """Why nothing may be changed; empty when it may."""
    demo: bool = False


class Action(NamedTuple):
    """One act. `why_not` gives a sentence when it cannot be done now; acting ones are refused in read-only mode."""

    id: str
    label: str
    keys: tuple[str, ...]
    help: str
    run: Callable[[Face], Awaitable[None] | None]
    views: frozenset[str] = ANYWHERE
    why_not: Callable[[Situation], str] = lambda _: ""
    acts: bool = False
    """Changes something."""
    danger: bool = False
    """Asks first, with No as the default."""
    in_row: bool = True
    """Shown in the bottom row."""

    def refusal(self, situation: Situation) -> str:
        """Why it cannot be done here and now; empty when it can."""
        if situation.view not in self.views:
            return f"{self.label} is not for this view."
        if self.acts and situation.read_only:
            return situation.read_only
        return self.why_not(situation)


def _needs_job(situation: Situation) -> str:
    return "" if situation.chosen else "There is no job under the cursor."


def _each(wanted: Callable[[JobRow], bool], sentence: str) -> Callable[[Situation], str]:
    def why_not(situation: Situation) -> str:
        if not situation.chosen:
            return _needs_job(situation)
        unfit = [row for row in situation.chosen if not wanted(row)]
        return sentence.format(id=unfit[0].id, state=unfit[0].state) if unfit else ""

    return why_not


_queued = _each(lambda row: row.state is JobState.QUEUED, "Job {id} is {state}; this is for queued jobs.")
_live = _each(lambda row: row.ended_at is None, "Job {id} has already ended ({state}).")
_kept = _each(lambda row: row.held_until is not None, "Job {id} has no kept container.")
_over = _each(lambda row: row.ended_at is not None, "Job {id} is {state}; cancel it first.")
_enterable = _each(
    lambda row: row.held_until is not None or row.state is JobState.RUNNING,
    "Job {id} is {state}: there is a container to enter only while it runs or is kept.",
)


def _only_in_demo(situation: Situation) -> str:
    return "" if situation.demo else "Only a demo's time can be changed."


ACTIONS = (
    Action("help", "help", ("question_mark", "f1"), "What every key does here", deeds.show_help),
    Action("new", "submit", ("n",), "Write a job file in $EDITOR and submit it", deeds.new_job, acts=True),
    Action("edit", "edit", ("e",), "Change a queued job in $EDITOR", deeds.edit_job, ON_JOBS, _queued, acts=True),
    Action("clone", "clone", ("N",), "Submit a copy, edited first", deeds.clone_job, ON_JOBS, _needs_job, acts=True),
    Action(
        "cancel", "cancel", ("x",), "Stop jobs: ask, then kill", deeds.cancel, ON_JOBS, _live, acts=True, danger=True
    ),
    Action(
        "hold",
        "hold ⇄ release",
        ("H",),
        "Hold queued jobs back, or let them go",
        deeds.hold_or_release,
        ON_JOBS,
        _queued,
        acts=True,
    ),
    Action("shell", "shell", ("s",), "Enter the container", deeds.shell, ON_JOBS, _enterable, acts=True),
    Action("logs", "logs", ("l",), "What the job printed", deeds.show_logs, ON_JOBS, _needs_job),
    Action("open", "open", ("enter",), "The job's page", deeds.open_job, frozenset({JOBS}), _needs_job),
    Action("filter", "filter", ("slash",), "Show only what matches", deeds.ask_filter, frozenset({JOBS})),
    Action("mine", "mine ⇄ all", ("m",), "Only your own jobs, or everybody's", deeds.toggle_mine, frozenset({JOBS})),
    Action("command", "command", ("colon",), "Type an action's name", deeds.ask_command),
    Action(
        "extend_hold",
        "extend hold",
        ("plus",),
        "Keep a failed container two hours longer",
        deeds.extend_hold,
        ON_JOBS,
        _kept,
        acts=True,
        in_row=False,
    ),
    Action(
        "end_hold",
        "end hold",
        ("minus",),
        "Remove a kept container now",
        deeds.end_hold,
        ON_JOBS,
        _kept,
        acts=True,
        danger=True,
        in_row=False,
    ),
    Action(
        "delete",
        "delete",
        ("X",),
        "Take ended jobs off the list",
        deeds.delete,
        ON_JOBS,
        _over,
        acts=True,
        danger=True,
        in_row=False,
    ),
    Action(
        "sort_next",
        "sort right",
        ("greater_than_sign",),
        "Sort by the next column",
        deeds.sort_next,
        frozenset({JOBS}),
        in_row=False,
    ),
    Action(
        "sort_previous",
        "sort left",
        ("less_than_sign",),
        "Sort by the previous column",
        deeds.sort_previous,
        frozenset({JOBS}),
        in_row=False,
    ),
    Action(
        "sort_reverse",
        "reverse",
        ("equals_sign",),
        "Turn the order round",
        deeds.sort_reverse,
        frozenset({JOBS}),
        in_row=False,
    ),
    Action("copy", "copy", ("c",), "Copy the job's id", deeds.copy, ON_JOBS, _needs_job, in_row=False),
    Action("jobs", "jobs", ("1",), "The list of jobs", deeds.show_jobs, in_row=False),
    Action("nodes", "nodes", ("2",), "The nodes and what is used of them", deeds.show_nodes, in_row=False),
    Action(
        "pause",
        "pause",
        ("f6",),
        "Let a demo's time stand still, or go on",
        deeds.pause,
        why_not=_only_in_demo,
        in_row=False,
    ),
    Action(
        "faster",
        "faster",
        ("right_parenthesis",),
        "Let a demo's time pass faster",
        deeds.faster,
        why_not=_only_in_demo,
        in_row=False,
    ),
    Action(
        "slower",
        "slower",
        ("left_parenthesis",),
        "Let a demo's time pass slower",
        deeds.slower,
        why_not=_only_in_demo,
        in_row=False,
    ),
    Action("theme", "theme", (), "The next colour theme", deeds.next_theme, in_row=False),
    Action("back", "back", ("escape",), "Back; never quits", deeds.back, in_row=False),
    Action("quit", "quit", ("q", "ctrl+c"), "Leave the cockpit; jobs go on", deeds.leave, in_row=False),
)

BY_ID = {action.id: action for action in ACTIONS}


def with_keys(remapped: Mapping[str, Sequence[str]]) -> tuple[Action, ...]:
    """The actions with the keys that a person chose for some of them. Raises `CockpitError` for an unknown action or a
    key that two actions of one view want.
    """
    unknown = set(remapped) - set(BY_ID)
    if unknown:
        raise CockpitError(f"keys: there is no action {min(unknown)!r}; there are {', '.join(sorted(BY_ID))}.")
    chosen = tuple(action._replace(keys=tuple(remapped.get(action.id, action.keys))) for action in ACTIONS)
    taken: dict[tuple[str, str], str] = {}
    for action in chosen:
        for key in action.keys:
            for view in action.views:
                other = taken.setdefault((view, key), action.id)
                if other != action.id:
                    raise CockpitError(f"keys: {other} and {action.id} both want the key {key!r}.")
    return chosen
