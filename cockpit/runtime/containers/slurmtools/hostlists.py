"""Slurm's lists of host names: `n[1-3,7],login`."""

from __future__ import annotations

import re

_PART = re.compile(r"[^,\[]*(?:\[[^\]]*\][^,\[]*)*")
_RANGES = re.compile(r"(?P<head>[^\[]*)\[(?P<ranges>[^\]]*)\](?P<tail>.*)", re.DOTALL)
_NUMBERED = re.compile(r"(?P<head>.*?)(?P<number>[0-9]+)", re.DOTALL)


class HostListError(ValueError):
    """A text that is no list of hosts."""


def expand(text: str) -> list[str]:
    """Return all names of a list, in its order."""
    if text.count("[") != text.count("]"):
        raise HostListError(text_of(text))
    # At commas that are outside of brackets.
    parts = [found for found in _PART.findall(text.strip()) if found.strip()]
    return [name for part in parts for name in _names(part.strip())]


def _names(part: str) -> list[str]:
    match = _RANGES.fullmatch(part)
    if match is None:
        if "[" in part or "]" in part:
            raise HostListError(text_of(part))
        return [part]
    # Ranges first, and what follows the bracket may have brackets of its own: `r[1-2]n[1-4]`.
    heads = [f"{match['head']}{number}" for each in match["ranges"].split(",") for number in _numbers(each, part)]
    return [head + tail for head in heads for tail in (_names(match["tail"]) if match["tail"] else [""])]


def _numbers(span: str, part: str) -> list[str]:
    low, dash, high = span.partition("-")
    if not (low.isdigit() and (high.isdigit() or not dash)):
        raise HostListError(text_of(part))
    # The width of the lower end decides on leading zeros: `[08-10]` is 08, 09, 10.
    return [f"{number:0{len(low)}d}" for number in range(int(low), int(high or low) + 1)]


def text_of(part: str) -> str:
    return f"Invalid hostlist: {part}"


def compress(names: list[str]) -> str:
    """Return the shortest list that Slurm writes of these names: neighbours of one head and one width as ranges."""
    groups: list[tuple[str, int, list[int]]] = []
    # Only neighbours are joined, so that the order of the list stays.
    for name in names:
        match = _NUMBERED.fullmatch(name)
        head, digits = (match["head"], match["number"]) if match else (name, "")
        width = len(digits) if digits else 0
        if groups and groups[-1][0] == head and digits and _same_width(groups[-1][1], width, digits):
            groups[-1][2].append(int(digits))
        else:
            groups.append((head, width, [int(digits)] if digits else []))
    return ",".join(_group(*each) for each in groups)


def _same_width(width: int, other: int, digits: str) -> bool:
    """Return whether a number may join a range: one with leading zeros only if all have that many digits."""
    return width == other or (width < other and width > 0 and not digits.startswith("0"))


def _group(head: str, width: int, numbers: list[int]) -> str:
    if not numbers:
        return head
    if len(numbers) == 1:
        return f"{head}{numbers[0]:0{width}d}"
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][-1] + 1 == number:
            spans[-1] = [spans[-1][0], number]
        else:
            spans.append([number])
    texts = ["-".join(f"{number:0{width}d}" for number in span) for span in spans]
    return f"{head}[{','.join(texts)}]"
