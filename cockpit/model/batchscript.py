"""A batch script that a job runs as sbatch would: its text, its folders, and the files of its output."""

from __future__ import annotations

from enum import StrEnum

import msgspec

DISCARD = "/dev/null"
"""The file name under which Slurm discards output, and under which a script reads nothing."""


class OpenMode(StrEnum):
    """What happens to an output file that exists already when the script starts."""

    TRUNCATE = "truncate"
    APPEND = "append"


class EarlySignal(msgspec.Struct, frozen=True, kw_only=True):
    """A signal that a script gets before its time limit ends it."""

    name: str
    """The signal's name without SIG."""
    # sbatch(1): the default without `@seconds`.
    seconds: int = 60
    """How long before the end of the time limit the signal is sent."""
    shell: bool = False
    """Whether only the script's own process gets the signal; else the tasks of its steps get it."""


class BatchScript(msgspec.Struct, frozen=True, kw_only=True):
    """One batch script. Folders are absolute paths; file names are patterns as for sbatch, relative to `work_dir`."""

    # The text and not the path: sbatch copies a script when it is submitted, so a later change of the file has no
    # effect.
    text: str
    """The whole script; its first line names the interpreter."""
    file: str = ""
    """The file that the script was read from, to show to users; empty: not from a file."""
    arguments: tuple[str, ...] = ()
    """Words that the script is given behind its own name."""
    work_dir: str
    """Folder in which the script runs."""
    submit_dir: str = ""
    """Folder from which it was submitted; empty: `work_dir`."""
    output: str = ""
    """Pattern of the file for standard output; empty: `slurm-%j.out`, of an array's task `slurm-%A_%a.out`."""
    error: str = ""
    """Pattern of the file for standard error; empty: the one for standard output."""
    input: str = ""
    """Pattern of the file that is standard input; empty: nothing is read."""
    open_mode: OpenMode = OpenMode.TRUNCATE
    early_signal: EarlySignal | None = None

    @property
    def submitted_from(self) -> str:
        return self.submit_dir or self.work_dir
