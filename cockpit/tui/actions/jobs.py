"""Actions that change jobs: submit, edit, cancel, open a shell, extend or end a hold."""

from __future__ import annotations

from functools import partial
from typing import Final

from cockpit.model.capabilities import Ability
from cockpit.protocol.operations import SHELL
from cockpit.tui.action import (
    ANYWHERE,
    ON_ACCOUNTS,
    ON_JOBS,
    ON_QUEUED,
    ON_TABLES,
    Action,
    Group,
    has_output,
    needs_changeable,
    needs_container,
    needs_container_or_terminal,
    needs_ended,
    needs_held_container,
    needs_job,
    needs_one_elastic,
    needs_queued,
    needs_running,
    needs_session,
    needs_started,
    needs_terminal,
    needs_time,
    needs_undoable,
    needs_unfinished,
    of_one_cluster,
    on,
)
from cockpit.tui.controllers import directives, editing, jobs, panes, shells
from cockpit.tui.views.all import CATALOGUE
from cockpit.tui.views.clusters import CLUSTERS
from cockpit.tui.views.jobs import JOBS

_change = partial(Action, group=Group.JOBS, views=ON_JOBS, acts=True)

_pane = partial(Action, group=Group.JOBS, views=ANYWHERE, why_not=needs_terminal)

# Operations of Slurm have no key: few clusters have them, and the command line completes their names.
JOB_CHANGES: Final = (
    _change(
        "new",
        ("n",),
        "Submit a new job",
        editing.write_new,
        views=ANYWHERE - ON_ACCOUNTS - on(CATALOGUE, CLUSTERS),  # there `n` adds a user, a QOS or an entry
        why_not=of_one_cluster,
        in_row=True,
        title="submit",
    ),
    _change(
        "edit",
        ("e",),
        "Change a queued or running job",
        jobs.edit_job,
        why_not=needs_changeable,
        in_row=True,
        needs="edit",
    ),
    _change(
        "what_if",
        ("w",),
        "Try requests that would start sooner",
        jobs.what_if,
        views=on(JOBS),
        why_not=needs_queued,
        needs="explain",
    ),
    _change(
        "clone", ("N",), "Edit a copy, then submit it", jobs.clone_job, why_not=needs_job, in_row=True, needs="submit"
    ),
    _change(
        "cancel",
        ("x",),
        "Stop jobs; kill after a grace period",
        jobs.cancel,
        views=ON_QUEUED,
        why_not=needs_unfinished,
        danger=True,
        in_row=True,
        needs="cancel",
    ),
    _change(
        "hold",
        ("H",),
        "Hold queued jobs, or release them",
        jobs.hold_or_release,
        views=ON_QUEUED,
        why_not=needs_queued,
        in_row=True,
        needs="hold",
    ),
    _change(
        "suspend",
        ("U",),
        "Suspend running jobs, or resume them",
        jobs.suspend_or_resume,
        why_not=needs_running,
        needs="suspend",
    ),
    _change(
        "requeue",
        ("R",),
        "Requeue jobs under their ids",
        jobs.requeue,
        why_not=needs_started,
        danger=True,
        needs="requeue",
    ),
    _change(
        "priority",
        ("P",),
        "Change the priority of queued jobs",
        jobs.set_priority,
        views=ON_QUEUED,
        why_not=needs_queued,
        needs="set_priority",
    ),
    _change(
        "time_limit",
        ("L",),
        "Change the time limit of jobs",
        jobs.choose_limit,
        why_not=needs_time,
        needs="set_time_limit",
    ),
    _change(
        "signal",
        (),
        "Send jobs a signal (Slurm)",
        directives.choose_signal,
        why_not=needs_running,
        needs=Ability.SIGNALS,
    ),
    _change(
        "top",
        (),
        "Put before your other jobs (Slurm)",
        directives.move_to_top,
        views=ON_QUEUED,
        why_not=needs_queued,
        needs=Ability.TOP,
    ),
    _change(
        "update",
        (),
        "Change fields by their Slurm names",
        lambda app: app.main_screen.entry_line.ask_command(f"{directives.UPDATE} "),
        views=ON_QUEUED,
        why_not=needs_unfinished,
        needs=Ability.UPDATE,
    ),
    _change(
        "shell",
        ("s",),
        "Open a shell in the container",
        shells.shell,
        why_not=needs_container,
        in_row=True,
        needs=SHELL,
    ),
    _change(
        "terminal",
        ("t",),
        "Open a shell in a pane, or go to it",
        panes.open_terminal,
        views=ON_TABLES,
        why_not=needs_container_or_terminal,
        needs=SHELL,
    ),
    # Keys of the pane's own menu start these: all other keys are the shell's.
    _pane("terminal_full_screen", (), "Show the terminal on the whole screen", panes.full_screen, title="full screen"),
    _pane("record_terminal", (), "Record the terminal, or end that", panes.record, title="recording"),
    _pane("close_terminal", (), "Hang up the shell and close its pane", panes.close_terminal, title="hang up"),
    _change(
        "debug",
        (),
        "Shell from another image (Kubernetes)",
        lambda app: app.main_screen.entry_line.ask_command(f"{directives.DEBUG} "),
        why_not=needs_container,
        needs=Ability.DEBUG_IMAGE,
    ),
    # On Slurm a job of any state may have left files on its nodes; `shell` needs a running or held container.
    _change("open_shell", (), "Open a shell in remaining files (Slurm)", shells.shell, why_not=needs_job, needs=SHELL),
    _change("attach", ("a",), "Open the terminal of a session", shells.shell, why_not=needs_session, needs=SHELL),
    _change("develop", ("d",), "Make a session of a job, or the reverse", shells.develop, why_not=needs_job),
    # Not a change: it reads the output of jobs on this machine, and is allowed in read-only mode too.
    Action(
        "tensorboard",
        ("T",),
        "Start or stop TensorBoard on its output",
        jobs.tensorboard,
        group=Group.JOBS,
        views=ON_JOBS,
        why_not=has_output,
    ),
    _change(
        "scale",
        (),
        "Change the workers of an elastic job",
        lambda app: app.main_screen.entry_line.ask_command(f"{jobs.SCALE} "),
        why_not=needs_one_elastic,
        needs="edit",
    ),
    _change(
        "unblock",
        (),
        "Take a node off a job's block list",
        jobs.unblock,
        why_not=needs_one_elastic,
        needs="unblock",
    ),
    _change(
        "delete",
        ("X",),
        "Delete ended jobs from the list",
        jobs.delete,
        why_not=needs_ended,
        danger=True,
        needs="delete",
    ),
)

UNDO: Final = _change(
    "undo",
    ("u",),
    "Undo your last change",
    lambda app: app.last_act.undo(),
    views=ANYWHERE,
    why_not=needs_undoable,
)

HELD_CONTAINERS: Final = (
    _change(
        "extend_hold",
        ("plus",),
        "Hold the container two hours longer",
        jobs.extend_hold,
        group=Group.HOLDS,
        why_not=needs_held_container,
        needs="extend_hold",
    ),
    _change(
        "end_hold",
        ("minus",),
        "Remove the held container now",
        jobs.end_hold,
        group=Group.HOLDS,
        why_not=needs_held_container,
        danger=True,
        needs="end_hold",
    ),
)
