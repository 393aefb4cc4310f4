"""Where a job's output is, out of what accounting remembers of it, and sbatch's file patterns in words."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from cockpit.backends.slurm.mapping import values
from cockpit.backends.slurm.mapping.jobs import Found
from cockpit.formats.foreign.sbatch_options import line_options, script_options

OUT, ERR, FOLDER = "stdout", "stderr", "folder"
NO_TASK = "4294967294"
"""What stands for the task of a job that is none (NO_VAL)."""
MODULO_SINCE = (23, 2)
"""The first version that knows %b."""
_PATTERN = re.compile(r"%(\d*)(.)")


def of_record(fields: Mapping[str, str]) -> dict[str, str]:
    """What sacct says of the files, else what stands in the line that submitted the job."""
    told = {OUT: fields.get("StdOut", ""), ERR: fields.get("StdErr", ""), FOLDER: fields.get("WorkDir", "")}
    asked = _asked(line_options(fields.get("SubmitLine", "")))
    return asked | {name: value for name, value in told.items() if values.text(value)}


def of_script(script: str) -> dict[str, str]:
    """What the script's own lines say."""
    return _asked(script_options(script))


def _asked(options: Mapping[str, str]) -> dict[str, str]:
    names = (("output", OUT), ("error", ERR), ("chdir", FOLDER))
    return {name: options[option] for option, name in names if options.get(option)}


def resolved(path: str, known: Found, version: tuple[int, ...]) -> str:
    """The path with sbatch's patterns (`%j`, `%A_%a`, `%4t` …) in words. A backslash takes their meaning away.

    What the batch step's own file is called: %t and %n are 0 there, %s is `batch`, %J has no step.
    """
    if "\\" in path:
        return path.replace("\\", "")
    words = _words(known, version)

    def word(found: re.Match[str]) -> str:
        width, letter = found[1], found[2]
        if letter not in words:
            return found[0]
        return words[letter].zfill(int(width[:2])) if width and words[letter].isdigit() else words[letter]

    return posixpath.normpath(_PATTERN.sub(word, path))


def _words(known: Found, version: tuple[int, ...]) -> dict[str, str]:
    job = known.job
    node = job.attempt.placement[0].node if job.attempt is not None and job.attempt.placement else ""
    array = job.array
    words = {
        "%": "%",
        "A": str(array.array if array is not None else known.number),
        "a": str(array.index) if array is not None else NO_TASK,
        "J": str(known.number),
        "j": str(known.number),
        "N": node.partition(".")[0],
        "n": "0",
        "s": "batch",
        "t": "0",
        "u": job.submitter.name,
        "x": job.spec.name,
    }
    if version >= MODULO_SINCE:
        words["b"] = str(array.index % 10) if array is not None else NO_TASK
    return words
