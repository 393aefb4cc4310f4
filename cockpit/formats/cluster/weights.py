"""Changes the weights in a cluster.toml line by line, so that the user's comments and order stay."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec.structs import asdict

from cockpit.errors import SpecErrors
from cockpit.formats.cluster.rule_fields import PRIORITY
from cockpit.formats.kinds import Reading
from cockpit.formats.tomltext import parse_toml, toml_key, toml_text
from cockpit.model.cluster import Priority

RULES: Final = "priority"
WEIGHTS: Final = f"{RULES}.weights"
TRES: Final = f"{WEIGHTS}.tres"
_HEADING = re.compile(r"[ \t]*\[")


def with_weights(text: str, priority: Priority, source: str = "cluster.toml") -> str:
    """The file with the type and the weights of `priority`, and everything else as it was. Raises `SpecErrors` where
    the file is no TOML, or is written in a way that cannot be edited by lines."""
    before = parse_toml(text, source)
    lines = _with_values(text.splitlines(), RULES, {"type": str(priority.kind)})
    weights: dict[str, object] = {name: weight for name, weight in asdict(priority.weights).items() if name != "tres"}
    resources = {name: _plain(weight) for name, weight in priority.weights.tres.items()}
    if any(_is_heading(line, TRES) for line in lines):
        lines = _with_values(lines, TRES, resources)
    elif resources:
        weights["tres"] = resources
    edited = "\n".join(_with_values(lines, WEIGHTS, weights)) + "\n"
    if not _says(edited, before, priority):
        raise SpecErrors([f"{source}: [{RULES}] does not stand there as tables; write the weights into it by hand"])
    return edited


def _says(text: str, before: Mapping[str, object], priority: Priority) -> bool:
    """Return whether the text is TOML with this type and these weights, and with all else as before."""
    try:
        after = parse_toml(text, "")
    except SpecErrors:
        return False
    read = PRIORITY.read(after.get(RULES), RULES, Reading("/", ""))
    same = (read.kind, read.weights) == (priority.kind, priority.weights)
    return same and _others(after) == _others(before)


def _others(values: Mapping[str, object]) -> dict[str, object]:
    rules = values.get(RULES)
    kept = (
        {name: each for name, each in rules.items() if name not in {"type", "weights"}}
        if isinstance(rules, dict)
        else {}
    )
    return {**values, RULES: kept}


def _plain(weight: float) -> float:
    return int(weight) if weight == int(weight) else weight


def _with_values(lines: list[str], heading: str, values: Mapping[str, object]) -> list[str]:
    """Return the lines with these values under the heading: present ones are replaced, others are added below it unless
    they are 0."""
    start = next((at for at, line in enumerate(lines) if _is_heading(line, heading)), None)
    if start is None:
        new = _new_lines(values)
        return [*lines, *([""] if lines else []), f"[{heading}]", *new] if new else lines
    end = next((at for at in range(start + 1, len(lines)) if _HEADING.match(lines[at])), len(lines))
    body, left = lines[start + 1 : end], dict(values)
    for at, line in enumerate(body):
        name = line.partition("=")[0].strip().strip('"')
        if name in left:
            body[at] = _with_value(line, left.pop(name))
    return [*lines[: start + 1], *_new_lines(left), *body, *lines[end:]]


def _new_lines(values: Mapping[str, object]) -> list[str]:
    return [f"{toml_key(name)} = {toml_text(value)}" for name, value in values.items() if value]


def _is_heading(line: str, heading: str) -> bool:
    return bool(re.fullmatch(rf"\s*\[\s*{re.escape(heading)}\s*\]\s*(#.*)?", line))


def _with_value(line: str, value: object) -> str:
    """Return the line with another value and its comment."""
    name, _, rest = line.partition("=")
    comment = re.search(r"\s*#[^\"']*$", rest)
    return f"{name.rstrip()} = {toml_text(value)}{comment[0] if comment else ''}"
