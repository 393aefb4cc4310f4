"""The fields of a batch script in a job file."""

from __future__ import annotations

from cockpit.formats.kinds import Choice, Flag, ListOf, Path, Text, WholeNumber
from cockpit.formats.tables import Field, Table
from cockpit.model.batchscript import BatchScript, EarlySignal, OpenMode
from cockpit.model.rules.batchscript import MOST_ARGUMENTS, SIGNAL_PATTERN, SIGNAL_SECONDS
from cockpit.model.rules.text import COMMAND_BYTES, PATH_BYTES

EARLY_SIGNAL = Table(
    EarlySignal,
    [
        Field(
            name="name",
            attribute="name",
            kind=Text(pattern=SIGNAL_PATTERN),
            required=True,
            about="Give the signal's name without SIG: USR1.",
        ),
        Field(
            name="seconds",
            attribute="seconds",
            kind=WholeNumber(SIGNAL_SECONDS),
            about="Seconds before the time limit.",
        ),
        Field(
            name="shell",
            attribute="shell",
            kind=Flag(),
            about="Signal only the script's own process, instead of the tasks of srun.",
        ),
    ],
)
BATCH_SCRIPT = Table(
    BatchScript,
    [
        Field(
            name="text",
            attribute="text",
            kind=Text(minLength=1, maxLength=COMMAND_BYTES),
            required=True,
            about="Give the whole script; its first line names the interpreter: #!/bin/bash.",
        ),
        Field(
            name="file", attribute="file", kind=Path(), about="The file from which the script was read, for display."
        ),
        Field(
            name="arguments",
            attribute="arguments",
            kind=ListOf(Text(maxLength=COMMAND_BYTES), MOST_ARGUMENTS),
            about="Arguments of the script.",
        ),
        Field(
            name="work_dir",
            attribute="work_dir",
            kind=Path(),
            required=True,
            about="Give the folder in which the script runs; the job sees it under its own path.",
        ),
        Field(
            name="submit_dir",
            attribute="submit_dir",
            kind=Path(),
            about="The folder that SLURM_SUBMIT_DIR names; by default work_dir.",
        ),
        Field(
            name="output",
            attribute="output",
            kind=Text(maxLength=PATH_BYTES),
            about="The file for its output, with sbatch's patterns; by default slurm-%j.out in work_dir.",
        ),
        Field(
            name="error",
            attribute="error",
            kind=Text(maxLength=PATH_BYTES),
            about="The file for its errors; by default that of its output.",
        ),
        Field(
            name="input",
            attribute="input",
            kind=Text(maxLength=PATH_BYTES),
            about="The file that it reads as standard input; by default none.",
        ),
        Field(
            name="open_mode",
            attribute="open_mode",
            kind=Choice(OpenMode),
            about="Whether existing files are emptied (truncate) or continued (append).",
        ),
        Field(
            name="early_signal",
            attribute="early_signal",
            kind=EARLY_SIGNAL,
            about="A signal that it gets before its time limit.",
        ),
    ],
)
