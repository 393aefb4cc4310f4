"""The option lines of a Slurm batch script, as sbatch reads them. Source: sbatch(1) and getopt_long(3)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Final

from cockpit.formats.foreign.draft import Draft

DIRECTIVE: Final = "#SBATCH"
_PLAIN_VALUE: Final = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
_COMPONENT: Final = re.compile(r"(?<=het|pac)(?=job|kjob)", re.IGNORECASE)
"""Slurm looks for `hetjob` and `packjob` anywhere in a line, and starts another component there."""
SHORT: Final = {
    "A": "account",
    "a": "array",
    "B": "extra-node-info",
    "b": "begin",
    "C": "constraint",
    "c": "cpus-per-task",
    "D": "chdir",
    "d": "dependency",
    "e": "error",
    "F": "nodefile",
    "G": "gpus",
    "H": "hold",
    "h": "help",
    "i": "input",
    "J": "job-name",
    "k": "no-kill",
    "L": "licenses",
    "M": "clusters",
    "m": "distribution",
    "N": "nodes",
    "n": "ntasks",
    "O": "overcommit",
    "o": "output",
    "p": "partition",
    "Q": "quiet",
    "q": "qos",
    "S": "core-spec",
    "s": "oversubscribe",
    "t": "time",
    "V": "version",
    "v": "verbose",
    "W": "wait",
    "w": "nodelist",
    "x": "exclude",
}
"""Long names of sbatch's short options."""
OPTIONAL_VALUE: Final = frozenset("ks")
"""Short options with a value that may be left out, and else is in the same word."""
_WITHOUT_VALUE: Final = """
    contiguous exclusive get-user-env help hold ignore-pbs kill-on-invalid-dep nice no-kill no-requeue overcommit
    oversubscribe parsable propagate quiet reboot requeue spread-job stepmgr test-only usage use-min-nodes verbose
    version wait
"""
"""Options without a value, or with one behind `=` only."""
_WITH_VALUE: Final = """
    acctg-freq account array batch bb bbf begin chdir cluster-constraint clusters comment constraint container
    container-image
    container-id core-spec cores-per-socket cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot dependency
    distribution error exclude export export-file extra extra-node-info gid gpu-bind gpu-freq gpus gpus-per-node
    gpus-per-socket gpus-per-task gres gres-flags hint input job-name licenses mail-type mail-user mcs-label mem
    mem-bind mem-per-cpu mem-per-gpu mincpus network nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu
    ntasks-per-node ntasks-per-socket open-mode output partition power prefer priority profile qos
    reservation segment signal sockets-per-node switches tasks-per-node thread-spec threads-per-core time time-min tmp
    tres-bind tres-per-task uid wait-all-nodes wckey wrap
"""
FLAGS: Final = frozenset(_WITHOUT_VALUE.split())
"""Long names of the options that need no value."""
_VALUED: Final = frozenset(_WITH_VALUE.split())
_NAMES: Final = FLAGS | _VALUED
MEMORY: Final = frozenset({"mem", "mem-per-cpu", "mem-per-gpu"})
_ALSO_CALLED: Final = {"tasks-per-node": "ntasks-per-node"}
_NEXT_COMPONENT: Final = frozenset({"hetjob", "packjob"})


def directives(lines: Sequence[str], draft: Draft) -> dict[str, str]:
    """Return the options of the job, or of its first component, by long name, with the value on the last line that
    gives each; empty for options without a value. `lines` begin with the interpreter's. Slurm stops reading at the
    first line that is neither blank nor a comment. Comments may be indented; option lines may not, and need no space
    behind `#SBATCH`."""
    options: dict[str, str] = {}
    for number, line in enumerate(lines[1:], 2):
        if line.startswith(DIRECTIVE):
            text = line.removeprefix(DIRECTIVE).strip()
            if _starts_component(text):
                break
            _collect(text, options, draft)
        elif is_command(line):
            # `number` counts from 1, so that it is the index of the line behind this one.
            late = sum(later.startswith("#SBATCH") for later in lines[number:])
            if late:
                draft.lacks("#SBATCH", f"Slurm reads none behind the first command; {late} of them left out")
            break
    return options


def refuse_components(lines: Sequence[str]) -> None:
    """Raise ValueError, with the line's number, where the options of a second component start. `lines` begin with the
    interpreter's."""
    for number, line in enumerate(lines[1:], 2):
        if is_command(line):
            return
        text = line.removeprefix(DIRECTIVE)
        if text != line and _starts_component(text):
            raise ValueError(
                f"line {number}: {DIRECTIVE} {text.strip()} starts a second component, and a job here has one; submit "
                "a job for each component, or submit the script to a Slurm cluster"
            )


def is_command(line: str) -> bool:
    """Return whether Slurm stops looking for options at this line: it is neither blank nor a comment."""
    return bool(line.strip()) and not line.lstrip().startswith("#")


def script_options(script: str) -> dict[str, str]:
    """Return the options in the script's own lines."""
    return directives(script_lines(script), Draft())


def option_values(words: Sequence[str]) -> dict[str, str]:
    """Return the options of words such as `--gres=gpu:2` and `--exclusive`, by long name; the last of a name counts."""
    pairs = (word.removeprefix("--").partition("=") for word in words)
    return {name: value for name, _, value in pairs}


def script_lines(text: str) -> list[str]:
    """Split the script into lines as Slurm and the shell do; other line separators are text."""
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def as_directive(name: str, value: str) -> str:
    """Return the line that gives an option. Slurm takes a backslash as an escape within either kind of quotes, so only
    double quotes mean the same to Slurm and to a shell. Raises ValueError if no line can express the value."""
    if "\n" in value or "\0" in value:
        raise ValueError("holds a line break, which no #SBATCH line can carry")
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    text = value if _PLAIN_VALUE.fullmatch(value) else f'"{escaped}"'
    # Two empty quotes in the middle keep Slurm from seeing `hetjob`, and mean nothing to its splitter.
    return f"{DIRECTIVE} --{name}=" + _COMPONENT.sub('""', text)


def line_options(line: str, flags: Collection[str] = ()) -> dict[str, str]:
    """Read a command such as `sbatch -o out.%j --mem=4G job.sh -o its.own` as accounting stores it, without the quotes
    of its words. The words behind the script are its arguments; a command follows --wrap. `flags`: more options
    without a value."""
    options: dict[str, str] = {}
    words = line.split()[1:]
    while words and words[0].startswith("-") and not words[0].startswith("--wrap"):
        _take_option(words, options, flags)
    return options


def _starts_component(text: str) -> bool:
    """Return whether the text behind `#SBATCH` separates two components of a heterogeneous job."""
    return not _NEXT_COMPONENT.isdisjoint(text.split()[:1])


def _collect(text: str, options: dict[str, str], draft: Draft) -> None:
    """Add the options of one line to `options`."""
    try:
        words = _words(text)
    except ValueError:
        draft.refuse(f"{DIRECTIVE} {text}", "has a quote that is never closed; close it")
        return
    while words:
        if not words[0].startswith("-") or not words[0].lstrip("-"):
            draft.refuse(
                f"{DIRECTIVE} {text}", f"{words.pop(0)} is no option; write comments behind #, or quote values"
            )
            continue
        word, is_last = words[0], len(words) == 1
        name = _take_option(words, options)
        # sbatch(1): a value may be left out of few options only.
        if is_last and name in _VALUED and not options[name] and "=" not in word:
            draft.refuse(word, f"has no value; write --{name}=VALUE, or remove it")


def _words(text: str) -> list[str]:
    """Return the words of an option line, split as Slurm does (`get_argument` of sbatch).

    A backslash escapes within quotes, too, and an unquoted `#` starts a comment. Raises ValueError when a quote is
    never closed.
    """
    words: list[str] = []
    word: str | None = None
    quote, escaped = "", False
    for char in text:
        if char.isspace() and not quote:
            words += [] if word is None else [word]
            # A backslash before an unquoted blank is lost: the blank ends the word all the same.
            word, escaped = None, False
        # Behind a backslash any character but an unquoted blank is taken as it is.
        elif escaped:
            word, escaped = f"{word or ''}{char}", False
        elif char == "\\":
            escaped = True
        elif char == quote:
            quote = ""
        elif not quote and char in "\"'":
            quote, word = char, word or ""
        elif char == "#" and not quote:
            break
        else:
            word = f"{word or ''}{char}"
    if quote:
        raise ValueError("a quote is never closed")
    return words if word is None else [*words, word]


def _take_option(words: list[str], options: dict[str, str], flags: Collection[str] = ()) -> str:
    """Take the first word as an option, and the next one where that is its value. Return the option's long name."""
    if (flag := words[0].lstrip("-").partition("=")[0]) in flags:
        words.pop(0)
        return flag
    word = words.pop(0)
    if word.startswith("--"):
        given, equals, value = word[2:].partition("=")
        name = whole_name(given) or given
        # getopt_long: the argument of an option that must have one is the next word, whatever it looks like.
        options[name] = value if equals or name in FLAGS or not words else words.pop(0)
    else:
        # getopt(3): the value may follow the letter directly (`-N2`).
        name, value = SHORT.get(word[1:2], word[1:2]), word[2:].removeprefix("=")
        takes = name not in FLAGS and not value and words
        options[name] = words.pop(0) if takes else value
    return name


def misspelled(name: str) -> list[str]:
    """Return the options that may be meant by a name that sbatch refuses: an abbreviation of several, or one that is
    written almost so. A name of neither kind may be an option of a site's plugin."""
    if name in _NAMES:
        return []
    return sorted(each for each in _NAMES if each.startswith(name)) or get_close_matches(name.lower(), _NAMES, 1, 0.85)


def whole_name(given: str) -> str | None:
    """Return the whole name of an option that may be abbreviated; None: no option starts so, or several do."""
    # An exact name wins: `mem` is not short for `mem-bind`.
    candidates = [given] if given in _NAMES else [name for name in _NAMES if name.startswith(given)]
    return _ALSO_CALLED.get(candidates[0], candidates[0]) if len(candidates) == 1 else None
