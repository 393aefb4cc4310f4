"""Whether what a command printed is all that it had to say.

Slurm's commands end with 0 also where a wrapper, a full disk or a broken pipe cut their answer short, and a list
without its end looks like a shorter list. So every question is put so that its answer has a first line of its own, and
an end that a cut cannot leave behind unless it falls exactly between two records.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from cockpit.backends.slurm.mapping.records import settings

EMPTY = "it printed nothing"
BROKEN_OFF = "it breaks off in the middle"
FOREIGN = "it is not what the command prints"

_SENTENCE = re.compile(r"(?:No|Job steps?) [^\n]*\n\Z")
"""What scontrol says instead of an empty list."""
_CONFIG_KEYS: Final = ("ClusterName", "SLURM_VERSION", "X11Parameters")
"""Keys of every version; the last one is the last of the alphabetical list."""
_LEVELS: Final = frozenset({"", "None", "Operator", "Administrator"})
_SPRIO_FIELDS = 13


def flaw(argv: Sequence[str], printed: str, separator: str) -> str:
    """Return what is wrong with the answer, to stand behind "…'s answer is not whole: "; empty where nothing is seen.

    `argv` is the question as it was run; `separator` the word that stands behind each of its fields.
    """
    check = _check(argv)
    if check is None:
        return ""
    return EMPTY if not printed and check is not _level else check(argv, printed, separator)


def _check(argv: Sequence[str]) -> Callable[[Sequence[str], str, str], str] | None:
    program, words = argv[0], [word for word in argv[1:] if not word.startswith("-")]
    if program in {"squeue", "sacct"} and "--noheader" not in argv and "--batch-script" not in argv:
        return _fields
    if program == "sacctmgr" and "-n" in argv:
        return _level
    if program == "scontrol" and words[:1] == ["show"] and len(words) > 1:
        return _SHOWN.get(words[1])
    return _BY_PROGRAM.get(program)


def _fields(argv: Sequence[str], printed: str, separator: str) -> str:
    """Records with the separator behind each field and a line break behind the last; the first one names the fields."""
    wanted = next((word for word in argv if word.lower().startswith("--format=")), "").partition("=")[2]
    names = wanted.split(",")
    if not _same_word(printed.partition(separator)[0], names[0].partition(":")[0]):
        return FOREIGN
    whole = printed.endswith(f"{separator}\n") and printed.count(separator) % len(names) == 0
    return "" if whole else BROKEN_OFF


def _same_word(shown: str, name: str) -> bool:
    """`ARRAY_JOB_ID` stands above `ArrayJobID`."""
    return shown.replace("_", "").upper() == name.replace("_", "").upper()


def _table(_argv: Sequence[str], printed: str, _separator: str) -> str:
    """Lines of one width; the first one names the columns."""
    lines = printed.split("\n")
    if lines[0].partition("|")[0] not in {"Account", "Name", "Cluster"}:
        return FOREIGN
    columns = lines[0].count("|")
    return "" if lines.pop() == "" and all(line.count("|") == columns for line in lines) else BROKEN_OFF


def _priorities(_argv: Sequence[str], printed: str, _separator: str) -> str:
    lines = printed.split("\n")
    if not lines[0].lstrip().startswith("JOBID|"):
        return FOREIGN
    whole = lines.pop() == "" and all(line.count("|") == _SPRIO_FIELDS - 1 for line in lines)
    return "" if whole else BROKEN_OFF


def _level(_argv: Sequence[str], printed: str, _separator: str) -> str:
    """Nothing at all for a user that accounting does not know."""
    return "" if not printed or (printed.endswith("\n") and printed.strip() in _LEVELS) else FOREIGN


def _config(_argv: Sequence[str], printed: str, _separator: str) -> str:
    found = settings(printed)
    if _CONFIG_KEYS[0] not in found and _CONFIG_KEYS[1] not in found:
        return FOREIGN
    return "" if all(key in found for key in _CONFIG_KEYS) and printed.endswith("\n") else BROKEN_OFF


def _lines(key: str) -> Callable[[Sequence[str], str, str], str]:
    """Records of one line each. What users wrote may break a line, so only the first one must begin with the key."""

    def check(_argv: Sequence[str], printed: str, _separator: str) -> str:
        if _SENTENCE.fullmatch(printed):
            return ""
        if not printed.startswith(f"{key}="):
            return FOREIGN
        return "" if printed.endswith("\n") else BROKEN_OFF

    return check


def _blocks(key: str) -> Callable[[Sequence[str], str, str], str]:
    """Records of several lines, each with an empty line behind it."""

    def check(_argv: Sequence[str], printed: str, _separator: str) -> str:
        if _SENTENCE.fullmatch(printed):
            return ""
        if not printed.startswith(f"{key}="):
            return FOREIGN
        return "" if printed.endswith("\n\n") else BROKEN_OFF

    return check


def _statistics(_argv: Sequence[str], printed: str, _separator: str) -> str:
    if "sdiag output at" not in printed:
        return FOREIGN
    return "" if "Remote Procedure Call statistics by user" in printed else BROKEN_OFF


_SHOWN: Final = {
    "config": _config,
    "node": _lines("NodeName"),
    "partition": _lines("PartitionName"),
    "reservation": _lines("ReservationName"),
    "licenses": _lines("LicenseName"),
    "job": _blocks("JobId"),
    "step": _blocks("StepId"),
}
_BY_PROGRAM: Final = {"sprio": _priorities, "sshare": _table, "sacctmgr": _table, "sdiag": _statistics}
