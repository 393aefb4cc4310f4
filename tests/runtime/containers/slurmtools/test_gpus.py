"""Which of a job's CPUs and cards a step holds, and which of them each of its tasks sees."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from cockpit.runtime.containers.slurmtools.gpus import STEP_CARDS, own_cards, own_cards_elsewhere, step_resources
from cockpit.runtime.containers.slurmtools.options import Task, Unusable

pytestmark = pytest.mark.req("LA-71")


def tasks(*hosts: str) -> list[Task]:
    order = list(dict.fromkeys(hosts))
    return [Task(rank, host, order.index(host), hosts[:rank].count(host)) for rank, host in enumerate(hosts)]


def job(cards: str = "", **more: str) -> dict[str, str]:
    own = {"SLURMD_NODENAME": "a", "SLURM_JOB_NODELIST": "a,b", "SLURM_JOB_CPUS_PER_NODE": "4,2"}
    return {**own, "CUDA_VISIBLE_DEVICES": cards, **more}


def held(*steps: tuple[dict[str, int], list[str]]) -> dict[str, dict[str, Any]]:
    return {str(pid): {"cpus": cpus, "cards": cards} for pid, (cpus, cards) in enumerate(steps)}


@pytest.mark.parametrize("alone", ["exact", "exclusive"])
def test_a_step_for_itself_waits_until_its_cpus_are_free_on_every_host(alone: str) -> None:
    take = step_resources(tasks("a", "a", "b"), {alone: ""}, job())
    assert take({}) == {"cpus": {"a": 2, "b": 1}, "cards": []}
    assert take(held(({"a": 2, "b": 1}, []))) == {"cpus": {"a": 2, "b": 1}, "cards": []}
    assert take(held(({"a": 2}, []), ({"a": 1}, []))) is None
    assert take(held(({"b": 2}, []))) is None


@pytest.mark.parametrize("options", [{}, {"exact": "", "overlap": ""}, {"exclusive": "", "overcommit": ""}])
def test_other_steps_share_their_cpus(options: dict[str, str]) -> None:
    take = step_resources(tasks("a", "b"), options, job())
    assert take(held(({"a": 4, "b": 2}, []))) == {"cpus": {}, "cards": []}


@pytest.mark.parametrize(
    ("options", "env", "hosts"),
    [
        ({"cpus-per-task": "3"}, {}, ("a", "a")),
        ({"cpus-per-task": "3"}, {}, ("b",)),
        ({}, {"SRUN_CPUS_PER_TASK": "5"}, ("a",)),
        ({}, {"SLURM_JOB_CPUS_PER_NODE": "", "SLURM_CPUS_ON_NODE": "1"}, ("a", "a")),
        ({"cpus-per-task": "2"}, {"SLURM_JOB_CPUS_PER_NODE": "4"}, ("b",)),
    ],
)
def test_a_step_with_more_cpus_than_the_job_is_refused(
    options: dict[str, str], env: dict[str, str], hosts: tuple[str, ...]
) -> None:
    with pytest.raises(Unusable, match="More processors requested than permitted"):
        step_resources(tasks(*hosts), options, job(**env))
    step_resources(tasks(*hosts), {**options, "overcommit": ""}, job(**env))


@pytest.mark.parametrize(
    ("options", "cards"),
    [
        ({}, 0),
        ({"gpus-per-task": "1"}, 2),
        ({"gpus-per-task": "a100:2"}, 4),
        ({"gpus-per-node": "3"}, 3),
        ({"gpus": "a100"}, 1),
        ({"gpus": ""}, 0),
        ({"gpus-per-task": "1", "gpus": "4"}, 2),
        ({"gres": "gpu:2"}, 2),
        ({"gres": "gpu:a100:3,shard:9"}, 3),
        ({"gres": "gpu:1,gpu:h100:1"}, 2),
        ({"gres": "shard:2"}, 0),
        ({"gpus": "2", "overlap": ""}, 0),
    ],
)
def test_a_step_takes_the_first_free_cards_of_the_scripts_host(options: dict[str, str], cards: int) -> None:
    everything, env = ["5", "6", "7", "8", "9"], job("5,6,7,8,9")
    take = step_resources(tasks("a", "a", "b"), options, env)
    assert take({}) == {"cpus": {}, "cards": everything[:cards]}
    assert env.get(STEP_CARDS, "") == ",".join(everything[:cards])
    assert env["CUDA_VISIBLE_DEVICES"] == ",".join(everything[:cards] or everything)


def test_cards_of_other_steps_are_waited_for() -> None:
    env = job("5,6,7")
    take = step_resources(tasks("a"), {"gpus": "2"}, env)
    assert take(held(({}, ["6"]), ({}, ["7"]))) is None
    assert STEP_CARDS not in env
    assert take(held(({}, ["6"]))) == {"cpus": {}, "cards": ["5", "7"]}
    assert env[STEP_CARDS] == "5,7"


def test_a_step_with_more_cards_than_the_job_is_refused() -> None:
    with pytest.raises(Unusable, match="Unable to create step: 3 GPUs requested, 2 allocated"):
        step_resources(tasks("a"), {"gpus": "3"}, job("5,6"))
    step_resources(tasks("a"), {"gpus": "2"}, job("5,6"))


@pytest.mark.parametrize("options", [{"gpus": "2"}, {"gpus-per-node": "2"}, {"gres": "gpu:2"}, {"gpus-per-task": "2"}])
def test_a_step_on_other_hosts_takes_no_card_of_this_one(options: dict[str, str]) -> None:
    assert step_resources(tasks("b"), options, job())({}) == {"cpus": {}, "cards": []}


def test_each_task_has_its_own_cards() -> None:
    first, second, other = tasks("a", "a", "b")
    options, env = {"gpus-per-task": "2"}, job("5,6,7,8")
    assert own_cards(options, env, first) == {"CUDA_VISIBLE_DEVICES": "5,6"}
    assert own_cards(options, env, second) == {"CUDA_VISIBLE_DEVICES": "7,8"}
    assert own_cards(options, env, other) == own_cards({}, env, first) == {}
    assert own_cards_elsewhere({}, other) == ""


@pytest.mark.parametrize(("local", "cards"), [(0, "1,2"), (1, "3,4")])
def test_a_task_on_another_host_takes_its_part_of_the_cards_there(local: int, cards: str) -> None:
    prefix = own_cards_elsewhere({"gpus-per-task": "2"}, Task(1, "b", 1, local))

    def seen(visible: str) -> str:
        env = {"CUDA_VISIBLE_DEVICES": visible, "PATH": "/usr/bin:/bin"}
        words = ["/bin/sh", "-c", f'{prefix}printf %s "$CUDA_VISIBLE_DEVICES"']
        return subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout

    assert (seen("1,2,3,4"), seen("")) == (cards, "")
