"""The options of `srun`, and how many tasks they make on which host. Source: srun(1) of Slurm 22.05."""

from __future__ import annotations

import math
from typing import NamedTuple

from cockpit.runtime.containers.slurmtools.hostlists import HostListError, expanded

_SHORT = {
    "A": "account", "C": "constraint", "D": "chdir", "E": "preserve-env", "G": "gpus", "H": "hold", "I": "immediate",
    "J": "job-name", "K": "kill-on-bad-exit", "L": "licenses", "M": "clusters", "N": "nodes", "O": "overcommit",
    "Q": "quiet", "S": "core-spec", "T": "threads", "W": "wait", "X": "disable-status", "Z": "no-allocate",
    "a": "array", "b": "begin", "c": "cpus-per-task", "d": "dependency", "e": "error", "i": "input",
    "k": "no-kill", "l": "label", "m": "distribution", "n": "ntasks", "o": "output", "p": "partition", "q": "qos",
    "r": "relative", "s": "oversubscribe", "t": "time", "u": "unbuffered", "v": "verbose", "w": "nodelist",
    "x": "exclude",
}  # fmt: skip
_FLAGS = frozenset(
    [
        "contiguous",
        "disable-status",
        "exact",
        "hold",
        "interactive",
        "label",
        "multi-prog",
        "no-allocate",
        "no-kill",
        "oversubscribe",
        "overcommit",
        "overlap",
        "preserve-env",
        "pty",
        "quiet",
        "quit-on-interrupt",
        "reboot",
        "send-libs",
        "spread-job",
        "unbuffered",
        "use-min-nodes",
        "verbose",
        "whole",
    ]
)
_VALUE_BEHIND_EQUALS = frozenset(
    ["compress", "exclusive", "immediate", "kill-on-bad-exit", "nice", "propagate", "wait-for", "x11"]
)
"""Options that take a value only behind `=`, or right behind their letter."""


class Unusable(Exception):
    """The request cannot be fulfilled; the text says why."""


class Task(NamedTuple):
    """One task of a step."""

    rank: int
    host: str
    node: int
    """Number of its host among those of the step."""
    local: int
    """Number among the tasks of its host."""


def parsed(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Options by their long names (a flag is empty), and the command."""
    words, options = list(words), {}
    while words and words[0].startswith("-") and words[0] != "-":
        word = words.pop(0)
        if word == "--":
            break
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            if not equals and name not in _FLAGS and name not in _VALUE_BEHIND_EQUALS:
                value = _next(words, word)
            options[name] = value
        else:
            _take_letters(word[1:], words, options)
    if not words:
        raise Unusable("No command given to execute.")
    return options, words


def _take_letters(letters: str, words: list[str], options: dict[str, str]) -> None:
    """`-ln4`: flags behind one hyphen, the last letter perhaps with its value."""
    while letters:
        name, letters = _SHORT.get(letters[0], letters[0]), letters[1:]
        if name in _FLAGS:
            options[name] = ""
        elif name in _VALUE_BEHIND_EQUALS:
            options[name] = letters if letters.isdigit() else ""
            letters = "" if letters.isdigit() else letters
        else:
            options[name] = letters or _next(words, f"-{name}")
            return


def _next(words: list[str], option: str) -> str:
    if not words:
        raise Unusable(f"option {option} requires an argument")
    return words.pop(0)


def laid_out(options: dict[str, str], env: dict[str, str]) -> list[Task]:
    """Return the tasks of a step by rank, distributed as Slurm does: each host gets as many as the one before, or one
    less. The script's number of tasks takes precedence over the step's tasks per node."""
    if set(options.get("het-group", "0").split(",")) != {"0"}:
        raise Unusable("--het-group: this job has one component, number 0")
    hosts = _hosts(options, env)
    counted = options.keys() & {"ntasks", "ntasks-per-node", "nodes"}
    per_node = number(options, "ntasks-per-node", 0)
    requested = number(env, "SLURM_NTASKS", 0)
    if not per_node and not counted:
        per_node = number(env, "SLURM_NTASKS_PER_NODE", 0)
    nodes = min(len(hosts), number(options, "nodes", len(hosts)))
    if number(options, "nodes", 1) > len(hosts):
        raise Unusable(f"Unable to create step: {options['nodes']} nodes requested, {len(hosts)} allocated")
    usual = requested if requested and not options.keys() & {"nodelist", "exclude"} else 0
    tasks = number(options, "ntasks", usual or (per_node * nodes if "ntasks-per-node" in options else nodes))
    nodes = max(1, min(nodes, tasks))
    if per_node and "nodes" not in options:
        nodes = min(nodes, math.ceil(tasks / per_node))
    shares = [tasks // nodes + (node < tasks % nodes) for node in range(nodes)]
    places = [(node, local) for node, share in enumerate(shares) for local in range(share)]
    if options.get("distribution", env.get("SLURM_DISTRIBUTION", "")).startswith("cyclic"):
        places.sort(key=lambda place: place[1])
    return [Task(rank, hosts[node], node, local) for rank, (node, local) in enumerate(places)]


def _hosts(options: dict[str, str], env: dict[str, str]) -> list[str]:
    try:
        there = expanded(env.get("SLURM_JOB_NODELIST", ""))
        wanted = expanded(options.get("nodelist", ""))
        without = expanded(options.get("exclude", ""))
    except HostListError as error:
        raise Unusable(str(error)) from None
    if not there:
        raise Unusable("SLURM_JOB_NODELIST is not set: srun runs inside of a job")
    for name in wanted:
        if name not in there:
            raise Unusable(f"Requested node {name} is not in this allocation")
    first = int(options.get("relative") or 0) if options.get("relative", "0").isdigit() else 0
    hosts = [name for name in (wanted or there[first:]) if name not in without]
    if not hosts:
        raise Unusable("Requested node configuration is not available")
    return hosts


def grouped(counts: list[int]) -> str:
    """Counts of nodes as Slurm writes them: `4(x2),1`."""
    groups: list[list[int]] = []
    for count in counts:
        if groups and groups[-1][0] == count:
            groups[-1][1] += 1
        else:
            groups.append([count, 1])
    return ",".join(f"{count}(x{times})" if times > 1 else str(count) for count, times in groups)


def ungrouped(text: str) -> list[int]:
    """Return the names in a list that `grouped` wrote."""
    counts: list[int] = []
    for each in text.split(","):
        count, _, times = each.partition("(x")
        if count.isdigit():
            counts += [int(count)] * int(times.rstrip(")") or 1)
    return counts


def number(given: dict[str, str], name: str, otherwise: int) -> int:
    """A count; of a range `2-4` the smaller."""
    value = given.get(name)
    if value is None:
        return otherwise
    value = value.partition("-")[0]
    if not value.isdigit() or not int(value):
        raise Unusable(f'Invalid numeric value "{given[name]}" for {name}.')
    return int(value)


def programs(text: str) -> list[tuple[set[int], list[str]]]:
    """The lines of a `--multi-prog` file: the ranks, and what they run. `*` means all that are left: an empty set."""
    import shlex

    programs_by_rank: list[tuple[set[int], list[str]]] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            ranks, *command = shlex.split(line)
            programs_by_rank.append((_ranks(ranks), command))
    return programs_by_rank


def _ranks(text: str) -> set[int]:
    if text == "*":
        return set()
    try:
        return {int(name) for name in expanded(f"[{text}]")}
    except HostListError:
        raise Unusable(f"Invalid task rank in the program file: {text}") from None
