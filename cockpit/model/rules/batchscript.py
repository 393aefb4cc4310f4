"""Rules for batch scripts in a job spec. Errors are paths and clauses, as everywhere in `rules`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cockpit.model.rules.bounds import Bounds
from cockpit.model.rules.text import COMMAND_BYTES, PATH_BYTES, count_error, path_error, text_error, utf8_size
from cockpit.model.spec import HomeAccess, JobKind, Mode
from cockpit.model.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.model.batchscript import BatchScript
    from cockpit.model.spec import JobSpec

MOST_ARGUMENTS = 4096
SIGNAL_SECONDS = Bounds(0, 65_535, " s")
"""Permitted seconds before the end, as for sbatch's --signal."""
SIGNAL_PATTERN = r"^(?:HUP|INT|QUIT|ABRT|KILL|USR1|USR2|ALRM|TERM|CONT|STOP|TSTP|TTIN|TTOU|URG|WINCH)$"
"""Signals that can be sent to a program as a notice."""


def script_checks(script: BatchScript) -> Iterator[tuple[str, str | None]]:
    """Return what is wrong with the script's fields."""
    # The second check only if the first finds nothing: it reads the first line.
    yield "script.text", text_error(script.text, COMMAND_BYTES) or _first_line_error(script.text)
    yield "script.arguments", count_error(len(script.arguments), MOST_ARGUMENTS) or _length_error(script.arguments)
    for index, word in enumerate(script.arguments[:MOST_ARGUMENTS]):
        # An argument may be empty; a path or a script may not.
        yield f"script.arguments[{index}]", text_error(word, COMMAND_BYTES, least=0)
    yield "script.work_dir", path_error(script.work_dir)
    for field, path in (("submit_dir", script.submit_dir), ("file", script.file)):
        if path:
            yield f"script.{field}", path_error(path)
    if (early := script.early_signal) is not None:
        known = re.fullmatch(SIGNAL_PATTERN, early.name)
        yield "script.early_signal.name", None if known else f"{visible(early.name)} is no name of a signal; write USR1"
        yield "script.early_signal.seconds", SIGNAL_SECONDS.error(early.seconds)
    for name in ("output", "error", "input"):
        yield f"script.{name}", text_error(getattr(script, name), PATH_BYTES, least=0)


def script_conflicts(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Return the fields that a job with a batch script cannot have."""
    if spec.script is None:
        return
    if spec.mode is not Mode.SLURM:
        yield "script", f"is for the mode slurm; write mode: {Mode.SLURM}, or remove script"
    if spec.kind is not JobKind.REGULAR:
        yield "script", f"cannot be used in a job of the kind {spec.kind}; write kind: regular, or remove it"
    if spec.home is not HomeAccess.RW:
        yield "home", "must be rw beside script, which finds its home as under sbatch; write rw, or leave it out"
    for field, given in (("elastic", spec.elastic), ("sweep", spec.sweep)):
        if given is not None:
            yield field, "cannot be used with script; remove one of them"


def _first_line_error(text: str) -> str | None:
    """Return what is wrong with the first line. Source: sbatch's own check of a script."""
    if not text.startswith("#!"):
        return "does not begin with an interpreter; write one in its first line: #!/bin/bash"
    # The kernel would look for an interpreter whose name ends with a carriage return.
    if "\r\n" in text:
        return "has DOS line breaks (\\r\\n), which no shell takes; convert it: dos2unix FILE"
    return None


def _length_error(words: tuple[str, ...]) -> str | None:
    size = sum(map(utf8_size, words))
    return None if size <= COMMAND_BYTES else f"have {size} bytes together; use at most {COMMAND_BYTES}"
