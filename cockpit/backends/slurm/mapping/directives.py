"""Builds the commands for requests that only Slurm serves."""

from __future__ import annotations

import posixpath
import re

from cockpit.backends.slurm.mapping.acts import Command, NotPossible
from cockpit.backends.slurm.mapping.values import slurm_id
from cockpit.formats.foreign.sbatch_options import option_values, script_options
from cockpit.model.directives import Directive, MoveToTop, SendSignal, SignalTarget, SubmitScript, UpdateJob

STDIN = "/dev/stdin"
"""The script's name where it has arguments and no file: sbatch takes the first word for a file."""
_FIELD = re.compile(r"[A-Za-z]{2,40}")
_SIGNAL = re.compile(r"[A-Z][A-Z0-9+-]{1,9}|[0-9]{1,2}")
_TARGETS = frozenset({"jobid", "job", "userid"})
# scancel(1): without an option a signal goes to the steps and not to the script.
_REACH = {SignalTarget.ALL: ("--full",), SignalTarget.SCRIPT: ("--batch",), SignalTarget.STEPS: ()}


def command(wanted: Directive, *, on_this_disk: bool = False) -> Command:
    """Return the command for a directive. Raises `NotPossible` for what is no signal or no field.

    `on_this_disk`: the command sees the files that the user names.
    """
    match wanted:
        case SubmitScript():
            return _submit(wanted, by_name=on_this_disk and bool(wanted.file))
        case SendSignal():
            return _signal(wanted)
        case UpdateJob():
            return _update(wanted)
        case MoveToTop():
            return Command(("scontrol", "top", ",".join(wanted.jobs)))


def _submit(wanted: SubmitScript, *, by_name: bool) -> Command:
    """Return the sbatch command. From a file's name sbatch derives the job's name, its Command and %x. A script on
    standard input gets its file's name as the job's name, unless it sets one itself."""
    options = ["sbatch", "--parsable", *wanted.options]
    if wanted.wrap:
        return Command((*options, f"--wrap={wanted.wrap}"))
    # A name that begins with a dash would be an option.
    if by_name:
        file = f"./{wanted.file}" if wanted.file.startswith("-") else wanted.file
        return Command((*options, file, *wanted.arguments))
    named = "job-name" in {**option_values(wanted.options), **script_options(wanted.script)}
    if wanted.file and not named:
        options.append(f"--job-name={posixpath.basename(wanted.file)}")
    # sbatch reads standard input by itself only if it is given no arguments.
    called = (STDIN, *wanted.arguments) if wanted.arguments else ()
    return Command((*options, *called), wanted.script)


def _signal(wanted: SendSignal) -> Command:
    name = wanted.signal.upper().removeprefix("SIG")
    if not _SIGNAL.fullmatch(name):
        raise NotPossible(f"{wanted.signal!r} is no signal; write USR1, TERM, 10 …")
    return Command(("scancel", *_REACH[wanted.to], f"--signal={name}", slurm_id(wanted.job, wanted.task)))


def _update(wanted: UpdateJob) -> Command:
    for name in wanted.fields:
        # Another JobId= among the fields would change another job.
        if not _FIELD.fullmatch(name) or name.lower() in _TARGETS:
            raise NotPossible(f"{name!r} is no field of a job; `man scontrol` lists those of `scontrol update`.")
    changes = (f"{name}={value}" for name, value in wanted.fields.items())
    return Command(("scontrol", "update", f"JobId={slurm_id(wanted.job, wanted.task)}", *changes))
