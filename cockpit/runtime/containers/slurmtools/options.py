"""The options of `srun`, and how many tasks they make on which host. Source: srun(1) of Slurm 22.05."""

from __future__ import annotations

import math
from typing import NamedTuple

from cockpit.runtime.containers.slurmtools.hostlists import HostListError, expand

_SHORT = {
    "A": "account", "B": "extra-node-info", "C": "constraint", "D": "chdir", "E": "preserve-env", "F": "nodefile",
    "G": "gpus", "H": "hold", "I": "immediate", "J": "job-name", "K": "kill-on-bad-exit", "L": "licenses",
    "M": "clusters", "N": "nodes", "O": "overcommit", "Q": "quiet", "S": "core-spec", "T": "threads", "W": "wait",
    "X": "disable-status", "Z": "no-allocate", "b": "begin", "c": "cpus-per-task", "d": "dependency", "e": "error",
    "i": "input", "k": "no-kill", "l": "label", "m": "distribution", "n": "ntasks", "o": "output", "p": "partition",
    "q": "qos", "r": "relative", "s": "oversubscribe", "t": "time", "u": "unbuffered", "v": "verbose", "w": "nodelist",
    "x": "exclude",
}  # fmt: skip
_WITHOUT_VALUE = """
    contiguous disable-status exact hold interactive label multi-prog no-allocate no-kill oversubscribe overcommit
    overlap preserve-env pty quiet quit-on-interrupt reboot send-libs spread-job test-only unbuffered use-min-nodes
    verbose whole
"""
_OPTIONAL_VALUE = "bcast compress exclusive immediate kill-on-bad-exit nice propagate resv-ports wait-for x11"
_WITH_VALUE = """
    accel-bind account acctg-freq bb bbf bcast-exclude begin chdir cluster-constraint clusters comment constraint
    container core-spec cores-per-socket cpu-bind cpu-freq cpu_bind cpus-per-gpu cpus-per-task deadline delay-boot
    dependency distribution epilog error exclude export extra-node-info gid gpu-bind gpu-freq gpus gpus-per-node
    gpus-per-socket gpus-per-task gres gres-flags het-group hint input job-name jobid licenses mail-type mail-user
    mcs-label mem mem-bind mem-per-cpu mem-per-gpu mem_bind mincpus mpi msg-timeout network nodefile nodelist nodes
    ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket open-mode output pack-group partition
    power prefer priority profile prolog qos relative reservation signal slurmd-debug sockets-per-node switches
    task-epilog task-prolog tasks-per-node thread-spec threads threads-per-core time time-min tmp uid wait wckey
"""
_FLAGS = frozenset(_WITHOUT_VALUE.split())
_VALUE_BEHIND_EQUALS = frozenset(_OPTIONAL_VALUE.split())
"""Options that take a value only behind `=`, or right behind their letter."""
_KNOWN = _FLAGS | _VALUE_BEHIND_EQUALS | frozenset(_WITH_VALUE.split())
_OTHER_NAMES = {"tasks-per-node": "ntasks-per-node", "pack-group": "het-group"}
_UNLIMITED = frozenset(["infinite", "unlimited", "-1"])
_UNITS = (86_400, 3600, 60, 1)
"""Seconds of a day, an hour, a minute and a second."""


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


def parse(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return the options by their long names (a flag has an empty value), and the command."""
    words, options = list(words), {}
    # The command begins at the first word that is not an option; its own options are not srun's.
    while words and words[0].startswith("-") and words[0] != "-":
        word = words.pop(0)
        if word == "--":
            break
        if word.startswith("--"):
            given, equals, value = word[2:].partition("=")
            name = _full_name(given)
            if not equals and name not in _FLAGS and name not in _VALUE_BEHIND_EQUALS:
                value = _next(words, word)
            options[name] = value
        else:
            _take_letters(word[1:], words, options)
    if not words:
        raise Unusable("No command given to execute.")
    if ":" in words:
        raise Unusable("a step of several components (:) is not known here; start each by its own srun with &")
    return options, words


def _full_name(given: str) -> str:
    """Return the option's full name, of which any unambiguous beginning will do. What is not known is refused: a step
    without it would be another one."""
    if given.startswith(("container-", "no-container-")):
        raise Unusable(
            f"--{given}: a step runs in the container of its job; write #SBATCH --container-image into the script"
        )
    # Any unambiguous beginning, as getopt_long(3) accepts it.
    names = [given] if given in _KNOWN else [name for name in _KNOWN if given and name.startswith(given)]
    if len(names) != 1:
        raise Unusable(f"option '--{given}' is ambiguous" if names else f"unrecognized option '--{given}'")
    return _OTHER_NAMES.get(names[0], names[0])


def _take_letters(letters: str, words: list[str], options: dict[str, str]) -> None:
    """Parse letters behind one hyphen, as in `-ln4`: flags, and at the end perhaps an option with its value."""
    while letters:
        if letters[0] not in _SHORT:
            raise Unusable(f"invalid option -- '{letters[0]}'")
        name, letters = _SHORT[letters[0]], letters[1:]
        if name in _FLAGS:
            options[name] = ""
        elif name in _VALUE_BEHIND_EQUALS:
            # `-K1` has a value and `-Kl` is two flags: only digits belong to the letter before.
            options[name] = letters if letters.isdigit() else ""
            letters = "" if letters.isdigit() else letters
        else:
            options[name] = letters or _next(words, f"-{name}")
            return


def _next(words: list[str], option: str) -> str:
    if not words:
        raise Unusable(f"option {option} requires an argument")
    return words.pop(0)


def assign_tasks(options: dict[str, str], env: dict[str, str]) -> list[Task]:
    """Return the tasks of a step by rank, distributed as Slurm does: each host gets as many as the one before, or one
    less. The script's number of tasks takes precedence over the step's tasks per node.

    1. Refuse what asks for another job or component than the script's own.
    2. Determine the hosts that the step may use, and of how many of them it asks for.
    3. Determine the number of tasks: the step's own, the script's, or so many on each host.
    4. Use no more hosts than there are tasks, nor more than the tasks per host fill.
    5. Number the tasks host by host (block), or in turn over the hosts (cyclic).
    """
    # 1
    if set(options.get("het-group", "0").split(",")) != {"0"}:
        raise Unusable("--het-group: this job has one component, number 0")
    if options.get("jobid", "") not in {"", env.get("SLURM_JOB_ID"), env.get("SLURM_JOBID")}:
        raise Unusable(f"--jobid={options['jobid']}: a step belongs to the job of its script here")
    # 2
    hosts = _hosts(options, env)
    counted = options.keys() & {"ntasks", "ntasks-per-node", "nodes"}
    per_node = number(options, "ntasks-per-node", 0)
    requested = number(env, "SLURM_NTASKS", 0)
    if not per_node and not counted:
        per_node = number(env, "SLURM_NTASKS_PER_NODE", 0)
    nodes = min(len(hosts), number(options, "nodes", len(hosts)))
    if number(options, "nodes", 1) > len(hosts):
        raise Unusable(f"Unable to create step: {options['nodes']} nodes requested, {len(hosts)} allocated")
    # 3: a step on chosen hosts does not inherit the number of tasks that is meant for all hosts.
    usual = requested if requested and not options.keys() & {"nodelist", "exclude"} else 0
    tasks = number(options, "ntasks", usual or (per_node * nodes if "ntasks-per-node" in options else nodes))
    # 4
    nodes = max(1, min(nodes, tasks))
    if per_node and "nodes" not in options:
        nodes = min(nodes, math.ceil(tasks / per_node))
    # 5
    shares = [tasks // nodes + (node < tasks % nodes) for node in range(nodes)]
    places = [(node, local) for node, share in enumerate(shares) for local in range(share)]
    if options.get("distribution", env.get("SLURM_DISTRIBUTION", "")).startswith("cyclic"):
        places.sort(key=lambda place: place[1])
    return [Task(rank, hosts[node], node, local) for rank, (node, local) in enumerate(places)]


def _hosts(options: dict[str, str], env: dict[str, str]) -> list[str]:
    try:
        there = expand(env.get("SLURM_JOB_NODELIST", ""))
        wanted = expand(options.get("nodelist", ""))
        without = expand(options.get("exclude", ""))
    except HostListError as error:
        raise Unusable(str(error)) from None
    if not there:
        raise Unusable("SLURM_JOB_NODELIST is not set: srun runs inside of a job")
    for name in wanted:
        if name not in there:
            raise Unusable(f"Requested node {name} is not in this allocation")
    # `--relative` counts in the job's list of hosts, and has no meaning for hosts that are named.
    first = int(options.get("relative") or 0) if options.get("relative", "0").isdigit() else 0
    hosts = [name for name in (wanted or there[first:]) if name not in without]
    if not hosts:
        raise Unusable("Requested node configuration is not available")
    return hosts


def format_counts(counts: list[int]) -> str:
    """Return counts by node as Slurm writes them: `4(x2),1`."""
    groups: list[list[int]] = []
    for count in counts:
        if groups and groups[-1][0] == count:
            groups[-1][1] += 1
        else:
            groups.append([count, 1])
    return ",".join(f"{count}(x{times})" if times > 1 else str(count) for count, times in groups)


def parse_counts(text: str) -> list[int]:
    """Return the counts of a text that `format_counts` wrote."""
    counts: list[int] = []
    for each in text.split(","):
        count, _, times = each.partition("(x")
        if count.isdigit():
            counts += [int(count)] * int(times.rstrip(")") or 1)
    return counts


def number(given: dict[str, str], name: str, otherwise: int) -> int:
    """Return a count; of a range `2-4` the smaller."""
    value = given.get(name)
    if value is None:
        return otherwise
    value = value.partition("-")[0]
    if not value.isdigit() or not int(value):
        raise Unusable(f'Invalid numeric value "{given[name]}" for {name}.')
    return int(value)


def seconds(text: str, option: str) -> int:
    """Return the seconds of a time limit (0: none), written as `m`, `m:s`, `h:m:s`, `d-h`, `d-h:m` or `d-h:m:s`."""
    if text.lower() in _UNLIMITED:
        return 0
    days, dash, clock = text.rpartition("-")
    parts = clock.split(":")
    if not all(part.isdigit() for part in [*parts, *([days] if dash else [])]) or len(parts) > 3:
        raise Unusable(f'Invalid time limit "{text}" for {option}.')
    # The unit of the first part, as an index into `_UNITS`: hours after days or before two other parts, else minutes.
    first = 1 if dash or len(parts) == 3 else 2
    figures = [int(days or 0), *([0] * (first - 1)), *map(int, parts)]
    return sum(figure * unit for figure, unit in zip(figures, _UNITS, strict=False))


def programs(text: str) -> list[tuple[set[int], list[str]]]:
    """Return the lines of a `--multi-prog` file: the ranks, and what they run. `*` means all that are left: an empty
    set."""
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
        return {int(name) for name in expand(f"[{text}]")}
    except HostListError:
        raise Unusable(f"Invalid task rank in the program file: {text}") from None
