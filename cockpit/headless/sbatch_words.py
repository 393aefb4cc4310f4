"""Splits the command line of `cockpit submit` into cockpit's own words and options of sbatch, as users type these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cockpit.formats.foreign.sbatch_options import FLAGS, OPTIONAL_VALUE, SHORT, whole_name
from cockpit.headless.arguments import UsageError
from cockpit.present.safe import safe

_OWN: Final = {
    "--cluster": True,
    "--dependency": True,
    "--help": False,
    "--hold": False,
    "--request-id": True,
    "--show-commands": False,
    "--wrap": True,
}
"""Options of `cockpit submit`, also those that sbatch has too, and whether they have a value."""
_OWN_SHORT: Final = {"d": "--dependency", "H": "--hold", "h": "--help"}
"""Short options that mean the same to sbatch and to cockpit."""
_INSTEAD: Final = {
    "clusters": "name the cluster to cockpit: cockpit -c CLUSTER submit …",
    "parsable": "its output is a line for each job, whose last word is the id",
    "test-only": "ask for the start without submitting: cockpit predict FILE",
    "usage": "see cockpit submit --help, and for options of sbatch: man sbatch",
    "version": "see cockpit --version",
    "wait": "submit, then wait for the id: cockpit wait ID",
}
"""Options of sbatch that change what it prints or which cluster it asks, and what to do instead."""


def split_sbatch_options(words: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return the words without options of sbatch, and these options, each as one word `--name=value` or `--name`.

    `words` end before `--`. An option that cockpit has is cockpit's: `-c NAME` is the cluster, and `-c 4`, with a
    number, is `--cpus-per-task=4`. Raises `UsageError` for an option after a file, which sbatch would take
    for an argument of the script, and for one whose work a verb of cockpit does.
    """
    own: list[str] = []
    options: list[str] = []
    left = list(words)
    file = ""
    while left:
        word = left.pop(0)
        if not word.startswith("-") or word == "-":
            own.append(word)
            file = file or word
            continue
        before = len(options)
        if word.startswith("--"):
            _take_long(word, left, own, options)
        else:
            _take_short(word, left, own, options)
        if len(options) > before and file:
            raise UsageError(
                f"{safe(word)} is behind {safe(file)}: write options of sbatch before the script, and arguments of the "
                f"script behind --\nFor example: cockpit submit {safe(word)} … {safe(file)} -- ARGUMENTS"
            )
    return own, tuple(options)


def _take_long(word: str, left: list[str], own: list[str], options: list[str]) -> None:
    given, equals, value = word[2:].partition("=")
    name = given if f"--{given}" in _OWN else whole_name(given)
    if name is None and not equals:  # neither's: argparse refuses it
        own.append(word)
    elif f"--{name}" in _OWN:
        own.append(f"--{name}{equals}{value}")
        own += [left.pop(0)] if _OWN[f"--{name}"] and not equals and left else []
    elif name is None or equals or name in FLAGS:  # a site's plugin may add options; their value is behind `=`
        _add(options, name or given, value if equals else None)
    else:
        _add(options, name, _value(word, left))


def _take_short(word: str, left: list[str], own: list[str], options: list[str]) -> None:
    """Take a word of short options, several of which may be in one word: `-Hn4` is `-H -n 4`."""
    letter, rest = word[1], word[2:]
    if letter == "c":
        value = rest.removeprefix("=") or _value(word, left)
        if value.isdecimal():
            _add(options, SHORT[letter], value)
        else:
            own += ["-c", value]
        return
    if letter == "d":
        own.append(f"--dependency={rest.removeprefix('=') or _value(word, left)}")
        return
    if letter not in SHORT:
        own.append(word)
        return
    name = SHORT[letter]
    if letter in _OWN_SHORT:
        own.append(_OWN_SHORT[letter])
    elif name not in FLAGS:
        _add(options, name, rest.removeprefix("=") or _value(word, left))
        return
    elif letter in OPTIONAL_VALUE and rest:
        _add(options, name, rest.removeprefix("="))
        return
    else:
        _add(options, name, None)
    if rest:
        _take_short(f"-{rest}", left, own, options)


def _value(word: str, left: list[str]) -> str:
    if not left:
        raise UsageError(f"{safe(word)} needs a value\nSee: cockpit submit --help")
    return left.pop(0)


def _add(options: list[str], name: str, value: str | None) -> None:
    if name in _INSTEAD:
        raise UsageError(f"cockpit submit has no --{name} of sbatch: {_INSTEAD[name]}")
    options.append(f"--{name}" if value is None else f"--{name}={value}")
