"""Writes cluster.toml as text, with a comment above each value.

A change of weights edits an existing file line by line, so that the user's comments and order stay.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import asdict

from cockpit.errors import SpecErrors
from cockpit.formats.cluster.fields import FILE, ClusterFile
from cockpit.formats.cluster.rule_fields import PRIORITY, Accounting
from cockpit.formats.kinds import Reading
from cockpit.formats.tomltext import parse_toml, toml_key, toml_table, toml_text
from cockpit.model.cluster import Cluster, Priority
from cockpit.model.node import Node

WIDTH = 100
_ABOUT = {field.name: field.about for field in FILE.fields}
_HEADER = "The embedded cluster. `cockpit schema cluster` describes every key; the engine reads it when it starts."
_ALWAYS = ("mutable",)
_EXAMPLES = """\
# Who may use how much; the engine begins with these, and `cockpit accounts` changes them:
#
# [[accounts]]
# name = "vision"
# shares = 60
#
# [[users]]
# name = "alice"
# account = "vision"
#
# [[qos]]
# name = "high"
# priority = 100
# limits = { max_jobs = 4, max_wall = "1d" }
"""


def cluster_text(file: ClusterFile) -> str:
    """Return the whole file; `FILE.read` reads it back as equal."""
    parts = [*_comment(_HEADER), "", rules_text(file)]
    if not (file.accounts or file.qos or file.users):
        parts.append(_EXAMPLES)
    return "\n".join(parts)


def rules_text(file: ClusterFile) -> str:
    """Return the text of the file, with its comments."""
    values = _values(file)
    return "\n".join([*_scalars(values), *_tables(values)])


def completed_text(text: str, site: ClusterFile, file: ClusterFile) -> str:
    """Return a file's own text with the fields that only `file` has.

    Single values come above it, where TOML wants them, and tables below.
    """
    # Only what the site's own text does not say already.
    own, values = FILE.write(site), _values(file)
    new = {name: value for name, value in values.items() if name not in own}
    return "\n".join([*_comment(_HEADER), "", *_scalars(new), text.strip() + "\n", *_tables(new)])


def _values(file: ClusterFile) -> dict[str, object]:
    written = FILE.write(file)
    always = {name: getattr(file, name) for name in _ALWAYS}
    return {field.name: (always | written)[field.name] for field in FILE.fields if field.name in always | written}


def _is_below(value: object) -> bool:
    """Return whether the value is written under a heading of its own."""
    return isinstance(value, dict) or (isinstance(value, list) and bool(value) and isinstance(value[0], dict))


def _scalars(values: Mapping[str, object]) -> Iterator[str]:
    for name, value in values.items():
        if not _is_below(value):
            yield "\n".join([*_comment(_ABOUT[name]), *toml_table({name: value}), ""])


def _tables(values: Mapping[str, object]) -> Iterator[str]:
    for name, value in values.items():
        if _is_below(value):
            # Without the empty line, which would part the comment from its heading.
            yield "\n".join([*_comment(_ABOUT[name]), *toml_table({name: value})[1:], ""])


def _comment(sentence: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(sentence, WIDTH)]


def file_of_rules(cluster: Cluster, nodes: Sequence[Node]) -> ClusterFile:
    """Return the file that has the rules of a cluster.

    The nodes tell which pools there are, beside those that the rules name.
    """
    named = [pool for partition in cluster.partitions for pool in partition.pools]
    pools: dict[str, tuple[str, ...]] = dict.fromkeys([*named, *filter(None, [cluster.login_pool])], ())
    for node in nodes:
        if node.pool:
            pools[node.pool] = (*pools.get(node.pool, ()), node.name)
    return ClusterFile(
        mutable=cluster.mutable,
        urgent_jobs=cluster.urgent_jobs,
        staging=cluster.staging,
        sharing=cluster.sharing,
        max_resumes=cluster.max_resumes,
        max_grace_seconds=cluster.max_grace_seconds,
        drain_after_prechecks=cluster.drain_after_prechecks,
        precheck_exclusion_seconds=cluster.precheck_exclusion_seconds,
        login_node_pool=cluster.login_pool,
        home_directory_storage=cluster.home,
        prolog_bash_scripts=cluster.prolog_scripts,
        epilog_bash_scripts=cluster.epilog_scripts,
        node_pools=pools,
        accounting=Accounting(cluster.enforce),
        priority=cluster.priority,
        backfill=cluster.backfill,
        preemption=cluster.preemption,
        partitions=cluster.partitions,
        projects=cluster.projects,
    )


RULES: Final = "priority"
WEIGHTS: Final = f"{RULES}.weights"
TRES: Final = f"{WEIGHTS}.tres"
_HEADING = re.compile(r"[ \t]*\[")


def with_weights(text: str, priority: Priority, source: str = "cluster.toml") -> str:
    """Return the file with the type and the weights of `priority`, and everything else as it was.

    Raises `SpecErrors` when the file is no TOML, or is written in a way that cannot be edited by lines.
    """
    before = parse_toml(text, source)
    lines = _with_values(text.splitlines(), RULES, {"type": str(priority.kind)})
    weights: dict[str, object] = {name: weight for name, weight in asdict(priority.weights).items() if name != "tres"}
    resources = {name: _plain(weight) for name, weight in priority.weights.tres.items()}
    # A file may have the weights of resources in a table of their own, or in a line of the weights.
    if any(_is_heading(line, TRES) for line in lines):
        lines = _with_values(lines, TRES, resources)
    elif resources:
        weights["tres"] = resources
    edited = "\n".join(_with_values(lines, WEIGHTS, weights)) + "\n"
    # The text was changed by lines, without understanding TOML: read it again before it replaces the file.
    if not _says(edited, before, priority):
        raise SpecErrors([f"{source}: [{RULES}] is not written as tables; write the weights into it by hand"])
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
    # A `#` behind which no quote follows; one within a text is followed by the closing quote.
    comment = re.search(r"\s*#[^\"']*$", rest)
    return f"{name.rstrip()} = {toml_text(value)}{comment[0] if comment else ''}"
