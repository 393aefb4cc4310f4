"""Controllers for operations of Slurm: signals, `scontrol update`, `scontrol top`, batch scripts as they are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from cockpit.errors import RequestRefused, SpecErrors
from cockpit.model.capabilities import Ability
from cockpit.model.directives import MoveToTop, SendSignal, SubmitScript, UpdateJob
from cockpit.model.ids import job_words
from cockpit.model.refusal import Refusal
from cockpit.present.safe import safe
from cockpit.present.task_spreading import fetched_remedies, refusal_lines
from cockpit.tui.controllers.chosen import named, task_of
from cockpit.tui.screens.pick import Choice, pick

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.model.ids import JobId
    from cockpit.model.spec import JobSpec
    from cockpit.tui.cockpit import Cockpit

SIGNALS: Final = {
    "TERM": "asks the processes to end",
    "INT": "interrupts, as Ctrl-C does",
    "USR1": "the job decides what it means",
    "USR2": "the job decides what it means",
    "HUP": "the job decides what it means",
    "STOP": "suspends the processes",
    "CONT": "continues the processes",
    "KILL": "kills the processes at once",
}
UPDATE: Final = "update"
DEBUG: Final = "debug"

WRAP: Final = "--wrap"
"""The option of `cockpit submit` for a script of one command; the command line of the screen refuses it."""


async def choose_signal(app: Cockpit) -> None:
    """Let the user choose a signal for the chosen jobs."""
    choices = [Choice(name, name, about) for name, about in SIGNALS.items()]
    title = f"Signal to {named(app.selection.chosen_rows())}"
    picked = await pick(app, title, choices, verb="sends it")
    if picked is not None:
        await send_signal(app, picked.id)


async def send_signal(app: Cockpit, name: str) -> None:
    """Send the signal to all processes of the chosen jobs."""
    rows = app.selection.chosen_rows()
    for row in rows:
        await app.backend.direct(SendSignal(row.id, name, task=task_of(row)))
    app.last_act.done(f"sent {safe(name)} to {named(rows)}", "A signal cannot be taken back.")


async def move_to_top(app: Cockpit) -> None:
    """Move the chosen jobs before all other jobs of their owner."""
    rows = app.selection.chosen_rows()
    await app.backend.direct(MoveToTop(tuple(job_words(row.id) for row in rows)))
    app.last_act.done(f"moved {named(rows)} to the top", "Slurm does not keep the order that there was before.")


async def update(app: Cockpit, text: str) -> None:
    """Change fields of the chosen jobs, such as `Features=nvlink Nice=50`. Raises `SpecErrors`."""
    # All fields are checked before the first job is changed.
    pairs = [word.partition("=") for word in _words(text)]
    if not all(name and equals for name, equals, _ in pairs):
        raise SpecErrors(["Write FIELD=VALUE, by Slurm's names for them: :update Features=nvlink Nice=50"])
    rows = app.selection.chosen_rows()
    for row in rows:
        await app.backend.direct(UpdateJob(row.id, {name: value for name, _, value in pairs}, task_of(row)))
    done = f"changed {', '.join(safe(name) for name, *_ in pairs)} of {named(rows)}"
    app.last_act.done(done, "Fields that :update changed are set to other values by :update.")


async def debug(app: Cockpit, image: str) -> None:
    """Open a shell in a container of this image beside a container of the chosen job."""
    from cockpit.tui.controllers.shells import enter

    (row, *_) = app.selection.chosen_rows()
    await enter(app, await app.backend.job(row.id), image=image.strip())


async def submit_file(app: Cockpit, typed: str) -> None:
    """Submit the file: a batch script as it is where the cluster takes one, else the jobs that are read from it.

    Words behind `--` are the script's arguments. Raises `SpecErrors`.

    1. Read the file.
    2. Where the cluster runs sbatch, hand a script to it.
    3. Else read the jobs from the file, in whatever known format it is, and submit them.
    4. Put the cursor on the first job, and say where the output goes.
    """
    from cockpit.formats.foreign.exchange import Form, taken_over
    from cockpit.tui.controllers.editing import submitted_words
    from cockpit.tui.controllers.ways_back import of_submission
    from cockpit.tui.job_files import submission_from_here

    # Blanks around it: a file may have two hyphens in its name.
    name, _, behind = typed.partition(" -- ")
    # Step 1
    if name.split(maxsplit=1)[:1] == [WRAP]:
        raise SpecErrors([f"{WRAP} works in the shell alone: cockpit submit {WRAP} COMMAND. Or press n for a new job."])
    name, text, folder = _read(name.strip())
    arguments, words = _words(behind), list[str]()
    # Step 2
    # sbatch takes a file as a script if it begins with `#!`. Where the cluster runs sbatch the script is handed over
    # unread, so that every option means what it means to Slurm.
    if text.startswith("#!") and app.backend.capabilities.has(Ability.SCRIPTS):
        script = SubmitScript(text, file=name, arguments=arguments)
        done = [await app.backend.direct(script)]
    else:
        # Step 3
        context = app.state.context()
        converted = taken_over(name, text, submission=submission_from_here(context.now, context.zone))
        # As sbatch does: paths of a script begin where the command is run, those of all other files where the file is.
        if converted is not None and converted.form is Form.SBATCH:
            folder = str(Path.cwd())
        specs = app.options.read_jobs(name, converted.text if converted is not None else text, folder)
        specs = [_with_arguments(spec, name, arguments) for spec in specs]
        done = [*await _submit(app, specs)]
        words = [submitted_words(spec, job) for spec, job in zip(specs, done, strict=True) if job is not None]
    # Step 4
    submitted = [job for job in done if job is not None]
    if submitted:
        app.poller.follow_to(submitted[0])
        done_words = words[0] if len(words) == 1 else f"submitted {', '.join(map(job_words, submitted))}"
        app.last_act.done(done_words, of_submission(app, submitted))


async def _submit(app: Cockpit, specs: Sequence[JobSpec]) -> Sequence[JobId]:
    """Submit the jobs. Raises `RequestRefused`, with what to add to a script whose tasks do not fit on one node."""
    try:
        return await app.backend.submit(specs)
    except RequestRefused as no:
        remedies = await fetched_remedies(no.refusal, specs, app.backend.nodes)
        if not remedies:
            raise
        text = "\n".join(refusal_lines(no.refusal, remedies, app.state.now()))
        raise RequestRefused(Refusal(no.refusal.kind, text)) from no


def _with_arguments(spec: JobSpec, name: str, arguments: tuple[str, ...]) -> JobSpec:
    """Return the spec with the arguments of its batch script. Raises `SpecErrors` where the job has no script."""
    if not arguments:
        return spec
    if spec.script is None:
        raise SpecErrors([f"{safe(name)}: only a batch script has arguments behind --"])
    return msgspec.structs.replace(spec, script=msgspec.structs.replace(spec.script, arguments=arguments))


def _words(text: str) -> tuple[str, ...]:
    """Split the text as a shell does. Raises `SpecErrors`."""
    import shlex

    try:
        return tuple(shlex.split(text))
    except ValueError as wrong:
        raise SpecErrors([f"{safe(text)}: {wrong}"]) from None


def _read(name: str) -> tuple[str, str, str]:
    """Return the file's path, its text, and the folder to which its paths are relative. Raises `SpecErrors`."""
    file = Path(name).expanduser()
    try:
        return str(file), file.read_text(encoding="utf-8"), str(file.absolute().parent)
    except (OSError, UnicodeDecodeError) as failed:
        why = getattr(failed, "strerror", None) or failed
        raise SpecErrors([f"{safe(name)}: cannot be read: {why}"]) from None
