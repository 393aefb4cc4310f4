"""cluster.toml as text: readable, with a comment above everything that it says."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from cockpit.formats.cluster.fields import FILE, ClusterFile
from cockpit.formats.cluster.rule_fields import Accounting
from cockpit.formats.tomltext import toml_table
from cockpit.model.cluster import Cluster
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
    """The whole file; `FILE.read` reads it back as equal."""
    parts = [*_comment(_HEADER), "", rules_text(file)]
    if not (file.accounts or file.qos or file.users):
        parts.append(_EXAMPLES)
    return "\n".join(parts)


def rules_text(file: ClusterFile) -> str:
    """Return the text of the file, with its comments."""
    values = _values(file)
    return "\n".join([*_scalars(values), *_tables(values)])


def completed_text(text: str, site: ClusterFile, file: ClusterFile) -> str:
    """A file's own text, between what `file` says beyond it: single values above, where TOML wants them, tables
    below."""
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
            yield "\n".join([*_comment(_ABOUT[name]), *toml_table({name: value})[1:], ""])


def _comment(sentence: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(sentence, WIDTH)]


def file_of_rules(cluster: Cluster, nodes: Sequence[Node]) -> ClusterFile:
    """The nodes tell which pools there are, beside those that the rules name."""
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
