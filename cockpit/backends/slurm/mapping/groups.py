"""The nodes of a job that are alike: one group, or several that Slurm starts together as a heterogeneous job.

Their commands name paths as the nodes have them, where a cluster has no containers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate
from typing import Final, NamedTuple

from cockpit.launch.lexer import Literal, NotSimple, Word, lex, script_follows
from cockpit.launch.shellform import in_double_quotes, shell_text
from cockpit.launch.workspace import ALGORITHM, OUTPUTS, WORKSPACE
from cockpit.model.spec import WHOLE_CARD, JobSpec, Mode, NodeSpec

_PLAIN = re.compile(r"[\w./+@%-]+")
"""A path that is the same within every kind of quotes."""


def on_nodes(spec: JobSpec, command: str) -> str:
    """Return the command with the paths that its algorithm and its output have there."""
    for place, path in ((ALGORITHM, spec.algorithm.path if spec.algorithm is not None else ""), (OUTPUTS, spec.output)):
        # Put in as text: it means the same inside and outside of quotes, even in the script of a `bash -c`.
        if _PLAIN.fullmatch(path):
            command = path.rstrip("/").join(_names(place).split(command))
        elif path:
            command = _with_quoted(command, _names(place), path.rstrip("/"))
    return command


def _with_quoted(command: str, place: re.Pattern[str], path: str) -> str:
    """Put a path into a command that has to be quoted there. The script of a `bash -c` is not changed: only that shell
    knows in which quotes the place is."""
    words = lex(command)
    if isinstance(words, NotSimple):
        return command
    # Word by word, since quotes may be added only around the words that name the place.
    texts = [
        word.source if script_follows(words[:at]) else _word_with_quoted(word, place, path)
        for at, word in enumerate(words)
    ]
    return " ".join(texts) if texts != [word.source for word in words] else command


def _word_with_quoted(word: Word, place: re.Pattern[str], path: str) -> str:
    if not any(isinstance(part, Literal) and place.search(part.text) for part in word.parts):
        return word.source
    parts = [
        in_double_quotes(path.join(place.split(part.text))) if isinstance(part, Literal) else part.source
        for part in word.parts
    ]
    return f'"{"".join(parts)}"'


def is_in_workspace(command: str) -> bool:
    """Return whether the command still names a path of cockpit's containers."""
    return _names(WORKSPACE).search(command) is not None


def _names(place: str) -> re.Pattern[str]:
    # Whole path only: `/workspace/outputs2` and `/old/workspace/outputs` are other places.
    return re.compile(rf"(?<![\w./-]){re.escape(place)}(?![\w.-])")


_SET: Final = frozenset(
    {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "SLOTS", "TF_CONFIG", "CLUSTER_SPEC", "VK_TASK_INDEX"}
    | {"PATH", "HOME", "USER"}
)
"""Variables that every login sets, and those that the script sets where the mode has them."""


class Group(NamedTuple):
    """Nodes of one size that run one command."""

    position: int
    """The number of the component of a heterogeneous job."""
    alone: bool
    """The job is of one piece."""
    first: int
    """Rank of its first node among all."""
    nodes: int
    each: NodeSpec
    role: str
    """The role as TensorFlow or Vertex AI calls it."""
    command: str

    @property
    def slots(self) -> int:
        """Return the number of processes per node that a launcher starts."""
        return max(1, -(-self.each.card_milli // WHOLE_CARD))

    @property
    def peers(self) -> str:
        """Return the name of the script's variable with the addresses of these nodes, as JSON."""
        return f"COCKPIT_PEERS_{self.position}"

    def of_slurm(self, name: str) -> str:
        """Return the name that Slurm's variable has for the nodes of this group."""
        return name if self.alone else f"{name}_HET_GROUP_{self.position}"


def groups(spec: JobSpec) -> tuple[Group, ...]:
    """Return the groups by rank; the group that decides the job's end comes first."""
    kinds = list(_kinds(spec))
    firsts = accumulate((nodes for nodes, *_ in kinds), initial=0)
    return tuple(
        Group(position, len(kinds) == 1, first, *kind)
        for position, (first, kind) in enumerate(zip(firsts, kinds, strict=False))
    )


def _kinds(spec: JobSpec) -> Iterator[tuple[int, NodeSpec, str, str]]:
    """Yield for each group its number of nodes, the size of a node, its role and its command."""
    if spec.mode is not Mode.WORKER_POOLS:
        # First, because its exit code is the job's: parameter servers serve until they are ended.
        yield spec.nodes, spec.specs[0], "worker", _command(spec, spec.command)
        if spec.parameter_servers:
            yield spec.parameter_servers, spec.helpers[0], "ps", _command(spec, spec.command)
        return
    for position, pool in enumerate(spec.worker_pools):
        # Vertex AI keeps the position of an empty pool, so the numbers in the roles must not close up.
        if pool.replicas:
            yield pool.replicas, pool.spec, f"workerpool{position}", _command(spec, pool.command or spec.command)


def _command(spec: JobSpec, command: str) -> str:
    """Return the command for the script's shell, with the paths on the nodes."""
    return shell_text(on_nodes(spec, command), known={*spec.env, *_SET})
