"""Parses the output of Slurm's commands: fields with separators, `Key=value` records, tables with a header line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise

Record = dict[str, str]
"""The fields of one job, node, partition, … by Slurm's names, with values in the notation of Slurm's commands.

The mappings build everything from records. They come from the output of a command or from the JSON of slurmrestd."""

# A key is at the start of the record or behind a blank, so that `cpu=8` within `TRES=node=1,cpu=8` is none.
_KEY = re.compile(r"(?:^|(?<=\s))([A-Za-z][A-Za-z0-9_/:.]*)=")


def split_records(printed: str, separator: str, width: int) -> Iterator[tuple[str, ...]]:
    """Yield records of `width` fields; the separator follows each field and a line break follows the last.

    A field may contain line breaks, since a user may write any job name. A record that is cut off at the end is left
    out.
    """
    fields = printed.split(separator) if separator else []  # without a separator nothing was printed
    for start in range(0, len(fields) - width, width):
        # The line break of the record before is at the head of this record's first field.
        first, *rest = fields[start : start + width]
        yield (first.removeprefix("\n"), *rest)


def with_header(printed: str, separator: str = "|") -> Iterator[Record]:
    """Yield the lines of a table of sacctmgr or sshare (-P); a line of another width than the header is left out."""
    lines = printed.split("\n")
    header = lines[0].split(separator)
    for each in lines[1:]:
        fields = each.split(separator)
        # A name with a separator in it would shift all columns behind it.
        if len(fields) == len(header):
            yield dict(zip(header, fields, strict=True))


def words(record: str) -> Record:
    """Return the `Key=value` pairs of one record of `scontrol show`, on one line or several.

    The first of equal keys counts. Text that users write, which may look like a key, comes after Slurm's own keys.
    """
    pairs: Record = {}
    marks = list(_KEY.finditer(record))
    for at, mark in enumerate(marks):
        end = marks[at + 1].start() if at + 1 < len(marks) else len(record)
        pairs.setdefault(mark[1], record[mark.end() : end].strip())
    return pairs


def blocks(printed: str, key: str) -> Iterator[str]:
    """Yield the records of `scontrol show`, each of which begins with `key=` at the start of a line."""
    starts = [mark.start() for mark in re.finditer(rf"^{re.escape(key)}=", printed, re.MULTILINE)]
    for start, end in pairwise([*starts, len(printed)]):
        yield printed[start:end]


def job_blocks(printed: str, names: Iterable[str] = ()) -> Iterator[str]:
    """Yield the records of `scontrol show job`.

    Slurm prints names, comments and paths with the line breaks that users write in them, so such a text may look like
    the beginning of a record. `names`: the jobs' names out of squeue, whose fields no text can end.

    1. Write each name that has line breaks on one line, since it comes before the facts of the record.
    2. A record begins at the start, or after an empty line, with a number and a name.
    3. If several records have one number, all but one are text of users: leave out all of them.
    """
    for name in names:  # step 1
        if "\n" in name:
            printed = printed.replace(f" JobName={name}\n", f" JobName={' '.join(name.split())}\n")
    found = list(_JOB_HEAD.finditer(printed))  # step 2
    numbers = Counter(each["job"] for each in found)
    ends = (*(each.start() for each in found[1:]), len(printed))
    for each, end in zip(found, ends, strict=False):
        if numbers[each["job"]] == 1:  # step 3
            yield printed[each.start() : end]


_JOB_HEAD = re.compile(r"(?:\A|(?<=\n\n))JobId=(?P<job>\d+)(?: [A-Za-z]+=\S*)*? JobName=")


def records_of_key(printed: str, key: str) -> Iterator[Record]:
    """Yield the records of `scontrol show`, each of which begins with `key=` at the start of a line."""
    return map(words, blocks(printed, key))


def settings(printed: str) -> Record:
    """Return the `Name = value` lines of `scontrol show config`."""
    # The first `=` ends the name; values such as SchedulerParameters have more of them.
    pairs = (each.partition("=") for each in printed.splitlines())
    return {name.strip(): value.strip() for name, equals, value in pairs if equals}
