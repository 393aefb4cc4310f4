"""Computes which of a job's CPUs and cards a step holds. Source: srun(1), --exact, --exclusive, --gpus-per-task."""

from __future__ import annotations

from cockpit.runtime.containers.slurmtools.hostlists import expand
from cockpit.runtime.containers.slurmtools.options import Task, Unusable, number, parse_counts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Held = dict[str, Any]

_VISIBLE = "CUDA_VISIBLE_DEVICES"
STEP_CARDS = "SLURM_STEP_GPUS"
"""The variable with the cards of a step that requested cards, in the form of `CUDA_VISIBLE_DEVICES`."""


def step_resources(
    tasks: list[Task], options: dict[str, str], env: dict[str, str]
) -> Callable[[dict[str, Held]], Held | None]:
    """Return what a step takes exclusively; nothing where everything that it requests may be shared. Its cards are put
    into `env`. Raises `Unusable` if the job does not have enough."""
    needed = _cpus(tasks, options, env)
    # `--exact` and `--exclusive` take the CPUs for this step alone, `--overlap` shares them (srun(1)).
    alone = bool(options.keys() & {"exclusive", "exact"}) and not options.keys() & {"overlap", "overcommit"}
    cpus = needed if alone else {}
    here = env.get("SLURMD_NODENAME", "")
    visible = [each for each in env.get(_VISIBLE, "").split(",") if each]
    # An overlapping step shares the cards too, and so takes none.
    wanted = _cards(tasks, options, here) if "overlap" not in options else 0
    # More than the job has would be waited for without end.
    if wanted > len(visible):
        raise Unusable(f"Unable to create step: {wanted} GPUs requested, {len(visible)} allocated")

    def take(others: dict[str, Held]) -> Held | None:
        for host, (own, there) in cpus.items():
            if own + sum(each["cpus"].get(host, 0) for each in others.values()) > there:
                return None
        taken = {card for each in others.values() for card in each["cards"]}
        free = [card for card in visible if card not in taken]
        if wanted > len(free):
            return None
        if wanted:
            # Chosen only now, when the other steps are known, and seen by the tasks through this environment.
            env[STEP_CARDS] = env[_VISIBLE] = ",".join(free[:wanted])
        return {"cpus": {host: own for host, (own, _) in cpus.items()}, "cards": free[:wanted]}

    return take


def own_cards(options: dict[str, str], env: dict[str, str], task: Task) -> dict[str, str]:
    """Return the cards of a task on the script's own host, if each task has its own."""
    each = _count(options.get("gpus-per-task", ""))
    visible = [card for card in env.get(_VISIBLE, "").split(",") if card]
    if not each or task.host != env.get("SLURMD_NODENAME", ""):
        return {}
    return {_VISIBLE: ",".join(visible[task.local * each : (task.local + 1) * each])}


def own_cards_elsewhere(options: dict[str, str], task: Task) -> str:
    """Return what the shell of another container runs first, so that the task has its own of the cards there."""
    each = _count(options.get("gpus-per-task", ""))
    if not each:
        return ""
    # The shell over there has its own list of cards, of which this task takes its part by position.
    fields = f"{task.local * each + 1}-{(task.local + 1) * each}"
    own = f'$(printf %s "${_VISIBLE}" | cut -d, -f{fields})'
    return f'[ -z "${_VISIBLE}" ] || export {_VISIBLE}="{own}"; '


def cards_per_task(options: dict[str, str], env: dict[str, str]) -> None:
    """Add the cards of each task that the script's own options ask for, where the step asks for no cards itself."""
    if not options.keys() & {"gpus-per-task", "gpus-per-node", "gpus", "gres"} and "SLURM_GPUS_PER_TASK" in env:
        options["gpus-per-task"] = env["SLURM_GPUS_PER_TASK"]


def _cpus(tasks: list[Task], options: dict[str, str], env: dict[str, str]) -> dict[str, tuple[int, int]]:
    """Return, by host, the CPUs that the step needs and those that there are. Raises `Unusable` if there are
    too few."""
    each = number(options, "cpus-per-task", number(env, "SRUN_CPUS_PER_TASK", 1))
    usual = number(env, "SLURM_CPUS_ON_NODE", 1)
    counts = parse_counts(env.get("SLURM_JOB_CPUS_PER_NODE", ""))
    hosts = expand(env.get("SLURM_JOB_NODELIST", ""))
    # The shortened form has one count for each host, in the order of the hosts.
    there = {host: counts[at] for at, host in enumerate(hosts[: len(counts)])}
    needed = {host: each * sum(task.host == host for task in tasks) for host in {task.host for task in tasks}}
    cpus = {host: (count, there.get(host, usual)) for host, count in needed.items()}
    if "overcommit" not in options and any(count > own for count, own in cpus.values()):
        raise Unusable("Unable to create step: More processors requested than permitted")
    return cpus


def _cards(tasks: list[Task], options: dict[str, str], here: str) -> int:
    """Return the number of cards that the step needs on the script's own host."""
    local = sum(task.host == here for task in tasks)
    if "gpus-per-task" in options:
        return local * _count(options["gpus-per-task"])
    for name in ("gpus-per-node", "gpus"):
        if name in options:
            return _count(options[name]) if local else 0
    # As in `gpu:a100:2`; other resources have no cards.
    kinds = [each for each in options.get("gres", "").split(",") if each.partition(":")[0] == "gpu"]
    return sum(_count(each.partition(":")[2]) for each in kinds) if local else 0


def _count(text: str) -> int:
    """Return the number of cards in a text such as `2` or `a100:2`; a model alone is one card."""
    if not text:
        return 0
    last = text.rpartition(":")[2]
    return int(last) if last.isdigit() else 1
