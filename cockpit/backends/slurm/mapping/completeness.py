"""Checks that the output of a command is complete.

Slurm's commands end with exit code 0 even if a wrapper script, a full disk or a broken pipe cuts their output, and a
list without its end looks like a shorter list. Therefore every command is called so that its output has a header and an
end that can be recognised. Only a cut exactly between two records passes these checks; `list_checks` looks for those.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from cockpit.backends.slurm.mapping.records import blocks, settings, words

EMPTY = "it printed nothing"
BROKEN_OFF = "it breaks off in the middle"
FOREIGN = "it is not what the command prints"
GARBAGE = "it has garbage inside"

_SENTENCE = re.compile(r"(?:No|Job steps?) [^\n]*\n\Z")
"""Sentence that scontrol prints in place of an empty list."""
_CONFIG_KEYS: Final = ("ClusterName", "SLURM_VERSION", "X11Parameters")
"""Keys that every Slurm version prints; the list is alphabetical and ends with the last of these."""
_TEXTS: Final = frozenset(
    {"Name", "JobName", "WorkDir", "Command", "STDOUT", "STDERR", "Comment", "AdminComment", "SubmitLine", "UserName"}
)
"""Fields whose text users choose, so that it may be any bytes."""
_SPRIO_ID: Final = re.compile(r"\s*[0-9]+\s*\|")
_NO_TEXT: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f\ufffd]")
"""Characters that only texts of users have: control characters, and the replacement of bytes that are no UTF-8."""
_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}")
_LEVELS: Final = frozenset({"", "None", "Operator", "Administrator"})
_SPRIO_FIELDS = 13
_NO_SUCH_JOB = "Unable to find jobs matching user/id(s) specified\n"
"""The output of sprio, with exit code 0, when none of the requested jobs is pending any more."""


def flaw(argv: Sequence[str], printed: str, separator: str) -> str:
    """Return what is wrong with the output, to follow "The answer of … is not whole: "; empty when nothing is.

    `argv`: the command as it was run. `separator`: the word that follows each field.
    """
    check = _check(argv)
    if check is None:
        return ""
    if "\0" in printed:  # C strings end before it, so no command prints one
        return GARBAGE
    return EMPTY if not printed and check is not _level else check(argv, printed, separator)


def _check(argv: Sequence[str]) -> Callable[[Sequence[str], str, str], str] | None:
    """Return the check for the output of a command; None if its form tells nothing."""
    program, words = argv[0], [word for word in argv[1:] if not word.startswith("-")]
    if program in {"squeue", "sacct"} and "--noheader" not in argv and "--batch-script" not in argv:
        return _fields
    # Without a header only one answer has a form that can be checked.
    if program == "sacctmgr" and "-n" in argv:
        return _level if "user" in words else None
    if program == "scontrol" and words[:1] == ["show"] and len(words) > 1:
        return _SHOWN.get(words[1])
    return _BY_PROGRAM.get(program)


def _fields(argv: Sequence[str], printed: str, separator: str) -> str:
    """Check records with a separator after each field and a line break after the last; the first names the fields."""
    wanted = next((word for word in argv if word.lower().startswith("--format=")), "").partition("=")[2]
    # squeue's fields have widths or separators behind a colon (`JobID:~1f~`), sacct's have none.
    names = wanted.split(",")
    if not _same_word(printed.partition(separator)[0], names[0].partition(":")[0]):
        return FOREIGN
    # Both: a cut within a field loses the end, and a lost piece in the middle changes the count.
    if not printed.endswith(f"{separator}\n") or printed.count(separator) % len(names) != 0:
        return BROKEN_OFF
    if not _NO_TEXT.search(printed):
        return ""
    fields = printed.split(separator)
    # only in fields that Slurm writes: a user's own text may hold any byte
    own = [at for at, each in enumerate(names) if each.partition(":")[0] not in _TEXTS]
    return GARBAGE if any(_NO_TEXT.search(each) for at in own for each in fields[at :: len(names)]) else ""


def _same_word(shown: str, name: str) -> bool:
    """Return whether a header such as `ARRAY_JOB_ID` is that of the field `ArrayJobID`."""
    return shown.replace("_", "").upper() == name.replace("_", "").upper()


def _table(_argv: Sequence[str], printed: str, _separator: str) -> str:
    """Check lines of one number of columns; the first names the columns."""
    # the last line break makes an empty last part: without it the table was cut
    lines = printed.split("\n")
    if lines[0].partition("|")[0] not in {"Account", "Name", "Cluster"}:
        return FOREIGN
    columns = lines[0].count("|")
    return "" if lines.pop() == "" and all(line.count("|") == columns for line in lines) else BROKEN_OFF


def _priorities(argv: Sequence[str], printed: str, _separator: str) -> str:
    """Check the table of sprio."""
    if printed == _NO_SUCH_JOB and any(word.startswith("--jobs=") for word in argv):
        return ""
    lines = printed.split("\n")
    if not lines[0].lstrip().startswith("JOBID|"):
        return FOREIGN
    if lines.pop() != "" or any(line.count("|") != _SPRIO_FIELDS - 1 for line in lines):
        return BROKEN_OFF
    return "" if all(_SPRIO_ID.match(line) for line in lines[1:]) else GARBAGE


def _level(_argv: Sequence[str], printed: str, _separator: str) -> str:
    """Check the output for AdminLevel, which is empty for a user that accounting does not know."""
    return "" if not printed or (printed.endswith("\n") and printed.strip() in _LEVELS) else FOREIGN


def _config(_argv: Sequence[str], printed: str, _separator: str) -> str:
    keys = settings(printed)
    if _CONFIG_KEYS[0] not in keys and _CONFIG_KEYS[1] not in keys:
        return FOREIGN
    if not all(key in keys for key in _CONFIG_KEYS) or not printed.endswith("\n"):
        return BROKEN_OFF
    return GARBAGE if _NO_TEXT.search(printed) else ""


def _records(key: str, end: str = "\n") -> Callable[[Sequence[str], str, str], str]:
    """Check records that begin with this key, and the end of the last one; `end`: an empty line follows records of
    several lines. Text of users may contain line breaks, so only the first line must have the key."""

    def check(_argv: Sequence[str], printed: str, _separator: str) -> str:
        # `No reservations in the system`: an empty list, not a foreign text.
        if _SENTENCE.fullmatch(printed):
            return ""
        if not printed.startswith(f"{key}="):
            return FOREIGN
        return "" if printed.endswith(end) else BROKEN_OFF

    return check


def _reservations(argv: Sequence[str], printed: str, separator: str) -> str:
    """Check that each record has its times, and only once: two records are one where the line between them is lost."""
    if wrong := _records("ReservationName")(argv, printed, separator):
        return wrong
    for block in blocks(printed, "ReservationName"):
        # A comment may contain any text, also `StartTime=`; it comes last.
        own = block.partition(" Comment=")[0]
        record = words(own)
        times = [record.get("StartTime", ""), record.get("EndTime", "")]
        if own.count("Time=") != 2 or not all(map(_TIME.fullmatch, times)):
            return GARBAGE
    return ""


def _statistics(_argv: Sequence[str], printed: str, _separator: str) -> str:
    if "sdiag output at" not in printed:
        return FOREIGN
    # A heading near the end, which every version prints.
    return "" if "Remote Procedure Call statistics by user" in printed else BROKEN_OFF


_SHOWN: Final = {
    "config": _config,
    "node": _records("NodeName"),
    "partition": _records("PartitionName"),
    "reservation": _reservations,
    "licenses": _records("LicenseName"),
    "job": _records("JobId", "\n\n"),
    "step": _records("StepId", "\n\n"),
}
_BY_PROGRAM: Final = {"sprio": _priorities, "sshare": _table, "sacctmgr": _table, "sdiag": _statistics}
