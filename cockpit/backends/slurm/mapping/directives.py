"""What only Slurm does, as its commands."""

from __future__ import annotations

import re

from cockpit.backends.slurm.mapping.acts import CannotBe, Command
from cockpit.backends.slurm.mapping.ids import slurm_id
from cockpit.model.directives import Directive, MoveToTop, Reach, SendSignal, SubmitScript, UpdateJob

_FIELD = re.compile(r"[A-Za-z]{2,40}")
_SIGNAL = re.compile(r"[A-Z][A-Z0-9+-]{1,9}|[0-9]{1,2}")
_TARGETS = frozenset({"jobid", "job", "userid"})
_REACH = {Reach.ALL: ("--full",), Reach.SCRIPT: ("--batch",), Reach.STEPS: ()}


def command(wanted: Directive) -> Command:
    """Raises `CannotBe` for what is no signal or no field."""
    match wanted:
        case SubmitScript():
            return Command(("sbatch", "--parsable", *wanted.options), wanted.script)
        case SendSignal():
            return _signal(wanted)
        case UpdateJob():
            return _update(wanted)
        case MoveToTop():
            return Command(("scontrol", "top", ",".join(wanted.jobs)))


def _signal(wanted: SendSignal) -> Command:
    name = wanted.signal.upper().removeprefix("SIG")
    if not _SIGNAL.fullmatch(name):
        raise CannotBe(f"{wanted.signal!r} is no signal; write USR1, TERM, 10 …")
    return Command(("scancel", *_REACH[wanted.to], f"--signal={name}", slurm_id(wanted.job, wanted.task)))


def _update(wanted: UpdateJob) -> Command:
    for name in wanted.fields:
        if not _FIELD.fullmatch(name) or name.lower() in _TARGETS:
            raise CannotBe(f"{name!r} is no field of a job; `man scontrol` lists those of `scontrol update`.")
    changes = (f"{name}={value}" for name, value in wanted.fields.items())
    return Command(("scontrol", "update", f"JobId={slurm_id(wanted.job, wanted.task)}", *changes))
