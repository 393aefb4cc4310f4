"""Lists and records out of what commands print: fields between separators, `Key=value` words, lines with a header."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

_KEY = re.compile(r"(?:^|(?<=\s))([A-Za-z][A-Za-z0-9_/:.]*)=")
_FREE = frozenset(
    {"JobName", "Comment", "AdminComment", "SystemComment", "Command", "WorkDir", "StdErr", "StdIn", "StdOut"}
)
"""Written by users: what looks like a key inside them is none, if Slurm would not write it there."""


def separated(printed: str, separator: str, width: int) -> Iterator[tuple[str, ...]]:
    """Records of `width` fields, each of which is followed by the separator; a line break follows the last.

    A field may hold line breaks of its own: a job's name is whatever its owner likes. A record that is cut off at the
    end is left out.
    """
    fields = printed.split(separator) if separator else []  # without one nothing was printed
    for start in range(0, len(fields) - width, width):
        first, *rest = fields[start : start + width]
        yield (first.removeprefix("\n"), *rest)


def with_header(printed: str, separator: str = "|") -> Iterator[dict[str, str]]:
    """Lines as sacctmgr and sshare print them with -P; one of another width than the header is left out."""
    lines = printed.split("\n")
    header = lines[0].split(separator)
    for each in lines[1:]:
        fields = each.split(separator)
        if len(fields) == len(header):
            yield dict(zip(header, fields, strict=True))


def words(record: str) -> dict[str, str]:
    """`Key=value` pairs of one record of `scontrol show`, on one line or several. The first of equal keys counts:
    what users write comes behind, or is one of Slurm's own keys later on, which are not read from there."""
    found: dict[str, str] = {}
    marks = list(_KEY.finditer(record))
    for at, mark in enumerate(marks):
        end = marks[at + 1].start() if at + 1 < len(marks) else len(record)
        found.setdefault(mark[1], record[mark.end() : end].strip())
    return found


def blocks(printed: str, key: str) -> Iterator[str]:
    """The records of `scontrol show`, each of which begins with `key=`, on a line of its own start."""
    starts = [found.start() for found in re.finditer(rf"^{re.escape(key)}=", printed, re.MULTILINE)]
    for start, end in pairwise([*starts, len(printed)]):
        yield printed[start:end]


def settings(printed: str) -> dict[str, str]:
    """`Name = value` lines of `scontrol show config`."""
    pairs = (each.partition("=") for each in printed.splitlines())
    return {name.strip(): value.strip() for name, equals, value in pairs if equals}
