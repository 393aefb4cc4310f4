"""The size of the job of a batch script, as `scontrol show job` of Slurm 22.05 has it, and what sbatch refuses."""

from __future__ import annotations

import pytest

from cockpit.errors import SpecErrors
from cockpit.formats.foreign.exchange import Form, taken_over, written
from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.model.spec import JobSpec, NodeSpec

pytestmark = pytest.mark.req("LA-70")


def read(source: str, text: str) -> list[JobSpec]:
    return read_jobs(f"{source}.json", text, "/home/ann", defaults=Defaults())


def taken(line: str) -> tuple[JobSpec, list[str]]:
    found = taken_over("x.sh", f"#!/bin/bash\n#SBATCH -J x {line}\nsrun hostname\n")
    assert found is not None
    (spec,) = read("x", found.text)
    return spec, list(found.notes)


@pytest.mark.parametrize(
    ("line", "nodes", "tasks", "cpus", "cards"),
    [
        # Tasks per node are the most of a node: they decide the nodes, and give way to the tasks of the job.
        ("-n 16 --ntasks-per-node=4", 4, 16, 4, 0),
        ("-n 6 --ntasks-per-node=4 -c 2", 2, 6, 6, 0),
        ("-N 2 -n 16 --ntasks-per-node=4", 2, 16, 8, 0),
        ("-N 2 -n 5 --ntasks-per-node=4", 2, 5, 3, 0),
        ("-n 8 --gpus=8 --ntasks-per-node=4", 2, 8, 4, 4),
        # Cards of the job, of a node and of a task say how many nodes and tasks there are.
        ("--gpus=8 --gpus-per-node=4", 2, None, 1, 4),
        ("--gpus=8 --gres=gpu:4", 2, None, 1, 4),
        ("--gpus=4 --gpus-per-task=1", 1, 4, 4, 4),
        ("--gpus=8 --gpus-per-task=2 -N 2", 2, 4, 2, 4),
        ("--gpus-per-node=4 --gpus-per-task=2 -N 2", 2, None, 2, 4),
        ("-n 6 --gpus-per-node=2 --gpus-per-task=1", 3, 6, 2, 2),
        ("--gpus-per-task=a100:2 -n 4 --ntasks-per-node=2", 2, 4, 2, 4),
        ("--gpus=8 --ntasks-per-gpu=2", 1, 16, 16, 8),
        ("-N 2 --gpus-per-node=4 --ntasks-per-gpu=1 -c 3", 2, None, 12, 4),
        ("-n 8 --ntasks-per-gpu=2", 1, 8, 8, 4),
        # Spellings.
        ("--nodes=' 2'", 2, None, 1, 0),
        ("--nodes=1k", 1024, None, 1, 0),
        ("--cpus-per-task=+4", 1, None, 4, 0),
        ("--gres=gres:gpu:a100:2", 1, None, 1, 2),
        ("--gres=none", 1, None, 1, 0),
        ("--tres-per-node=gres/gpu:2 -N 2", 2, None, 1, 2),
        ("--tres-per-task=cpu=3,gres/gpu=1 -n 2", 1, 2, 6, 2),
    ],
)
def test_nodes_tasks_and_cards_decide_each_other(
    line: str, nodes: int, tasks: int | None, cpus: int, cards: int
) -> None:
    spec, notes = taken(line)
    assert (spec.nodes, spec.specs[0].cpus, spec.specs[0].whole_cards) == (nodes, cpus, cards)
    assert spec.env.get("SLURM_NTASKS") == (None if tasks is None else str(tasks))
    assert notes == []


def test_more_nodes_than_tasks_are_not_taken() -> None:
    spec, notes = taken("-N 4 -n 2 --gres=gpu:4")
    assert (spec.nodes, spec.specs[0].cpus, spec.specs[0].whole_cards) == (2, 1, 4)
    assert notes == ["--nodes=4: a node has at least one of the 2 tasks; --nodes=2 is taken, as by sbatch"]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("--mem=64GiB", "--mem=64GiB: is no amount of memory; write a number with K, M, G or T, such as --mem=64G"),
        ("--mem-per-cpu=lots", "--mem-per-cpu=lots: is no amount of memory; write a number with K, M, G or T, such as"),
        ("--mem=4G --mem-per-cpu=1G", "--mem and --mem-per-cpu: exclude each other; remove one of them"),
        ("-c 2 --cpus-per-gpu=4", "--cpus-per-task and --cpus-per-gpu: exclude each other; remove one of them"),
        ("--ntasks=8tasks", "--ntasks=8tasks: is no whole number; write one from 1 up, such as --ntasks=4"),
        ("--ntasks-per-node=0", "--ntasks-per-node=0: is no whole number; write one from 1 up"),
        ("-c 2.5", "--cpus-per-task=2.5: is no whole number; write one from 1 up"),
        ("--cpus-per-task=${CPUS}", "--cpus-per-task=${CPUS}: is no whole number; it is a template's placeholder"),
        ("--nodes=two", "--nodes=two: is no number of nodes; write one, such as --nodes=2, or a range"),
        ("--nodes=4-2", "--nodes=4-2: is no number of nodes; write one, such as --nodes=2, or a range"),
        ("--time=12h", "--time=12h: is no time limit of sbatch; write minutes, hours:minutes:seconds or days-hours"),
        ("--gpus-per-node=2.5", "--gpus-per-node=2.5 counts no cards; write a number, or a model and one: a100:2"),
        ("--mem=64 GB", "#SBATCH -J x --mem=64 GB: GB is no option; write comments behind #, or quote values"),
        ("--nice 10", "#SBATCH -J x --nice 10: 10 is no option; write comments behind #, or quote values"),
        ("--comment='x", "#SBATCH -J x --comment='x: has a quote that is never closed; close it"),
        ("--partition", "--partition: has no value; write --partition=VALUE, or remove it"),
        ("--cpu-per-task=3", "--cpu-per-task: is no option of sbatch; write --cpus-per-task"),
        ("--Nodes=2", "--Nodes: is no option of sbatch; write --nodes"),
        ("--ti=10", "--ti: is no option of sbatch; write --time or --time-min"),
    ],
)
def test_what_sbatch_refuses_is_refused_with_the_option_and_a_remedy(line: str, error: str) -> None:
    with pytest.raises(SpecErrors) as refused:
        taken(line)
    assert f"x.sh: {error}" in str(refused.value) or f"cannot be read as that: {error}" in str(refused.value)


def test_all_wrong_options_are_named_at_once() -> None:
    with pytest.raises(SpecErrors) as refused:
        taken("--mem=much --nodes=some --time=2days")
    assert [error.split(": ")[1] for error in refused.value.errors] == ["--nodes=some", "--mem=much", "--time=2days"]


@pytest.mark.parametrize("line", ["--comment ''", "--propagate", "--nice", "--mem=1.5G", "--time=0", "--nvmps"])
def test_what_sbatch_or_a_plugin_of_a_site_takes_is_no_error(line: str) -> None:
    taken(line)


@pytest.mark.parametrize("model", ["NVIDIA A100-SXM4-80GB", "2080ti", "1g.10gb", "a100_1g.5gb"])
def test_models_of_cards_are_read_back(model: str) -> None:
    spec = JobSpec(name="x", command="a", output="/x", specs=(NodeSpec(card_milli=2000, card_models=(model,)),))
    assert written(spec, Form.SBATCH, read).lost == ()


def test_a_text_that_its_own_reader_refuses_is_written_with_what_is_wrong() -> None:
    spec = JobSpec(name="x", command="a", output="/x", specs=(NodeSpec(card_milli=2000, card_models=("a:b",)),))
    assert "counts no cards" in written(spec, Form.SBATCH, read).lost[0]


def test_tasks_of_an_array_may_stand_in_brackets() -> None:
    spec, _ = taken("--array=[1-3]%2")
    assert spec.array is not None
    assert (spec.array.indices, spec.array.at_once) == ((1, 2, 3), 2)
    unbounded, _ = taken("--array=1-3%0")
    assert unbounded.array is not None
    assert (unbounded.array.indices, unbounded.array.at_once) == ((1, 2, 3), 0)
