"""Computes the output files of a job and its steps from the records of Slurm and its accounting, and from the patterns
of sbatch and srun."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from cockpit.backends.slurm.mapping import jobparts, values
from cockpit.backends.slurm.mapping.jobs import Listed, LookedUpJob
from cockpit.formats.foreign.sbatch_options import line_options, script_options
from cockpit.model.job import ArrayTask, Job
from cockpit.model.jobdetail import StepRow

OUT, ERR, FOLDER = "stdout", "stderr", "folder"
NO_TASK = "4294967294"
"""Slurm's task number of a job that is no task (NO_VAL)."""
MOST_DIGITS = 10
"""Slurm fills up no number to more."""
_OF_SRUN = """
    E K X Z disable-status exact external-launcher interactive kill-on-bad-exit l label multi-prog no-allocate overlap
    preserve-env propagate pty quit-on-interrupt u unbuffered whole
"""
SRUN_FLAGS = frozenset(_OF_SRUN.split())
"""Options of srun alone that take no value."""
_NUMBERS = frozenset("AaJjnstb")
"""Patterns for numbers, which can be padded with zeros."""
MODULO_SINCE = (23, 2)
"""The first version that knows %b."""
_NAME, _COMMENT = r"-J[= ]?|--job-n[a-z]*[= ]", r"--comm[a-z]*[= ]"
"""Options of sbatch whose values accounting has, too, and which may have several words."""
_PATTERN = re.compile(r"%(\d*)(.)")


def of_record(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the files in sacct's record, else those in the line that submitted the job."""
    files = {OUT: fields.get("StdOut", ""), ERR: fields.get("StdErr", ""), FOLDER: fields.get("WorkDir", "")}
    requested = _output_options(line_options(_submit_line(fields)))
    # Slurm's own fields win: they also have what the script's options decided.
    return requested | {name: value for name, value in files.items() if values.text(value)}


def ended_path(job: Job, fields: Mapping[str, str]) -> str:
    """Return the output file of an ended job for a list, by its record in accounting alone.

    Empty for a job at a terminal, and where only the script may name a file: the record does not have the script.
    """
    files, line = of_record(fields), _submit_line(fields).split()
    # srun and salloc write to the user's terminal; of sbatch without --wrap the script may name another file.
    program = posixpath.basename(line[0]) if line else ""
    # --wrap: there is no script that could name a file, so the default name is certain.
    if OUT not in files and (program != "sbatch" or not any(word.startswith("--wrap") for word in line)):
        return ""
    known = LookedUpJob(job, None, fields)
    # The first component of a heterogeneous job runs its script and alone has a file.
    number = known.leader or known.number
    words = _words(number, job.array, job.submitter.name, job.spec.name)
    words |= {"J": str(number), "j": str(number), "a": str(job.array.index) if job.array is not None else NO_TASK}
    return fill_patterns(written_path(files, known), words)


def _submit_line(fields: Mapping[str, str]) -> str:
    """Return the line that submitted the job, with a name or a comment of several words as one word.

    Slurm stores the line without its quotes, so the second word would count as the script, behind which no options are.
    """
    line = fields.get("SubmitLine", "")
    for option, value in ((_NAME, fields.get("JobName", "")), (_COMMENT, fields.get("Comment", ""))):
        # A value of one word needs no mending: it stayed one word without its quotes.
        if len(value.split()) > 1:
            line = re.sub(rf"(?<=\s)({option}){re.escape(value)}(?=\s|$)", r"\1_", line, count=1)
    return line


def of_script(script: str) -> dict[str, str]:
    """Return the files in the script's own options."""
    return _output_options(script_options(script))


def _output_options(options: Mapping[str, str]) -> dict[str, str]:
    names = (("output", OUT), ("error", ERR), ("chdir", FOLDER))
    return {name: options[option] for option, name in names if options.get(option)}


def of_step(submit_line: str) -> str:
    """Return the file in the step's srun command, with srun's patterns; empty: the job's output."""
    # Flags must be known: of `srun -l train.py` the word behind -l is the program, not its value.
    return line_options(submit_line, SRUN_FLAGS).get("output", "")


def written_path(files: Mapping[str, str], known: LookedUpJob, *, errors: bool = False) -> str:
    """Return the path that the job writes to, with sbatch's patterns; empty where it writes to the terminal of its
    srun.

    `files`: by stream, and its folder. For a job that gave no name squeue makes one up of the job's number: of an array
    it is not the file's, and an interactive job, which has no error file then, has no file at all.
    """
    out, err = (values.text(files.get(name, "")) for name in (OUT, ERR))
    folder = files.get(FOLDER, "") or known.job.spec.output
    made_up = _made_up(folder, known)
    if out in made_up and not err:
        return ""
    out, err = ("" if path in made_up else path for path in (out, err))
    path = (err if errors else "") or out or ("slurm-%A_%a.out" if known.job.array is not None else "slurm-%j.out")
    return path if path.startswith("/") else posixpath.join(folder, path)


def _made_up(folder: str, known: LookedUpJob) -> set[str]:
    return _made_up_in(folder, known.listed.fields) if known.listed is not None else set()


def _made_up_in(folder: str, fields: Mapping[str, str]) -> set[str]:
    number, array = (fields.get(name, "") for name in ("JobID", "ArrayJobID"))
    return {f"{folder}/slurm-{number}.out", f"{folder}/slurm-{array}_{NO_TASK}.out"}


def listed_path(listed: Listed) -> str:
    """Return the path of squeue's record, for a list: nothing more is asked, so patterns that need it stay."""
    fields, array = listed.fields, listed.array
    path, folder = values.text(fields.get("STDOUT", "")), fields.get("WorkDir", "")
    component = listed.component
    if array is None and component is None and "%" not in path:
        return jobparts.output(fields)
    if not path or path in _made_up_in(folder, fields):
        path = "slurm-%A_%a.out" if array is not None else "slurm-%j.out"
    # Without `listed.job`: making the whole job would take twice the time of a long list.
    # The first component of a heterogeneous job runs its script and alone has a file.
    number = component[0] if component is not None else values.number(fields["JobID"]) or listed.id
    words = _words(number, array, fields["UserName"], fields["Name"])
    if not listed.tasks:
        words |= {"J": str(number), "j": str(number), "a": str(array.index) if array is not None else NO_TASK}
    return fill_patterns(path if path.startswith("/") else posixpath.join(folder, path), words)


def fill_patterns(path: str, words: Mapping[str, str]) -> str:
    """Return the path with the patterns (`%j`, `%A_%a`, `%4t` …) in words. A backslash takes their meaning away; what
    is not known yet stays."""
    # sbatch(1), filename pattern: with a backslash in the name no pattern is replaced.
    if "\\" in path:
        return path.replace("\\", "")

    def word(match: re.Match[str]) -> str:
        width, letter = match[1], match[2]
        if letter not in words:
            return match[0]
        filled = width and letter in _NUMBERS and words[letter].isdigit()
        return words[letter].zfill(min(int(width), MOST_DIGITS)) if filled else words[letter]

    return posixpath.normpath(_PATTERN.sub(word, path))


def batch_words(known: LookedUpJob, version: tuple[int, ...], host: str) -> dict[str, str]:
    """Return the values of the patterns in the name of the batch script's file: %t and %n are 0 there, %s is `batch`,
    %J has no step. A task that is still part of a queued array has no number of its own yet. `host`: the first node;
    empty: there is none."""
    job = known.job
    array, waiting = job.array, known.listed.tasks if known.listed is not None else ()
    words = _words(known.number, array, job.submitter.name, job.spec.name)
    if host:
        # %N is the short host name.
        words["N"] = host.partition(".")[0]
    if not waiting:
        words |= {"J": str(known.number), "j": str(known.number)}
    if not waiting or (known.listed is not None and job.id != known.listed.id):
        words["a"] = str(array.index) if array is not None else NO_TASK
        if version >= MODULO_SINCE:
            words["b"] = str(array.index % 10) if array is not None else NO_TASK
    return words


def _words(number: int, array: ArrayTask | None, user: str, name: str) -> dict[str, str]:
    """Return the values of the patterns that are known of every job, even of queued tasks."""
    # %A is the array's number; of a job that is no task it is the job's own, which sbatch prints as well.
    main = array.array if array is not None else number
    return {"%": "%", "A": str(main), "n": "0", "s": "batch", "t": "0", "u": user, "x": name}


def step_words(batch: Mapping[str, str], step: StepRow, rank: int | None) -> dict[str, str]:
    """Return the values of the patterns in the name of a step's file, with its task where that is known."""
    words = {**batch, "s": step.name, "J": f"{batch.get('j', '')}.{step.name}"}
    # %N and %n differ for each node, so there is not one file.
    if step.nodes > 1:
        words = {name: word for name, word in words.items() if name not in "nN"}
    if rank is None and step.tasks != 1:
        del words["t"]
    else:
        words["t"] = str(rank or 0)
    return words
