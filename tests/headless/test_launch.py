from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from cockpit.errors import RequestRefused
from cockpit.model.ids import JobId
from cockpit.model.node import Card, CardVendor
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import JobSpec
from tests.headless.conftest import Desk

JOB = b"""\
name: train
command: torchrun --node_rank ${RANK} --master_addr ${MASTER_ADDR} t.py
output: /data/out
mode: pytorch
nodes: 2
specs: [{cpus: 1, memory: 1G, cards: 4}]
"""


@pytest.mark.req("LA-30", "LA-31")
def test_a_dry_run_shows_each_replica_before_and_after_expansion(reading: Desk) -> None:
    lines = reading("launch", "--dry-run", "-", stdin=JOB).lines
    second = lines[lines.index("train: rank 1, host train-1") :]
    assert "  RANK=1" in second
    assert "  command  torchrun --node_rank ${RANK} --master_addr ${MASTER_ADDR} t.py" in second
    assert "  runs     torchrun --node_rank 1 --master_addr train-0 t.py" in second
    common = lines[: lines.index("train: rank 0, host train-0")]
    assert {"  WORLD_SIZE=2", "  SLOTS=4"} <= {*common}


@pytest.mark.req("LA-01")
def test_a_command_of_several_lines_is_shown_as_it_was_written(reading: Desk) -> None:
    command = b"command: |\n  torchrun \\\n  --nnodes 2 \\\n  t.py\n"
    job = JOB.replace(b"command: torchrun --node_rank ${RANK} --master_addr ${MASTER_ADDR} t.py\n", command)
    lines = reading("launch", "--dry-run", "-", stdin=job).lines
    at = lines.index("  given    torchrun \\")
    assert lines[at + 1 : at + 3] == ["           --nnodes 2 \\", "           t.py"]
    assert "  runs     torchrun --nnodes 2 t.py" in lines


@pytest.mark.req("LA-40", "LA-02")
def test_a_dry_run_is_printed_as_json(reading: Desk) -> None:
    done = reading("launch", "--dry-run", "-", "-o", "json", stdin=JOB.replace(b"pytorch", b"deepspeed"))
    first, second = json.loads(done.out)["rows"]
    assert first["files"] == second["files"] == {"/job/hostfile": "train-0 slots=4\ntrain-1 slots=4\n"}
    assert (first["rank"], first["argv"][:3]) == (0, ["torchrun", "--node_rank", "0"])
    assert second["argv"] == ["sleep", "infinity"]


@pytest.mark.req("JT-08")
def test_standalone_means_one_node_and_is_what_a_job_without_a_mode_is(reading: Desk) -> None:
    done = reading("launch", "--dry-run", "-", stdin=JOB.replace(b"pytorch", b"standalone"))
    assert done.err.startswith("stdin: mode: standalone has one node, and there are 2")
    silent = reading("launch", "--dry-run", "-", stdin=JOB.replace(b"mode: pytorch\n", b""))
    assert "mode: without one it is standalone, of one node, and there are 2; write pytorch (the command" in silent.err
    assert silent.code == done.code != 0


@pytest.mark.req("JT-08")
def test_a_batch_script_begins_on_the_first_node_and_finds_the_names_of_slurm(reading: Desk) -> None:
    script = b"#!/bin/bash\n#SBATCH -J train -N 2 -D /o\nsrun ./a.out\n"
    first, second = json.loads(reading("launch", "--dry-run", "-", "-o", "json", stdin=script).out)["rows"]
    assert (first["argv"], second["argv"]) == (["/run/cockpit-slurm/slurm_script"], ["sleep", "infinity"])
    assert first["files"]["/run/cockpit-slurm/slurm_script"] == script.decode()
    assert first["env"]["SLURM_JOB_NODELIST"] == "train-0,train-1"
    assert first["env"]["PATH"].startswith("/run/cockpit-launch/bin:")


def test_launch_without_dry_run_is_refused(reading: Desk) -> None:
    assert reading("launch", "-", stdin=JOB).code == 64


@pytest.mark.req("JT-03", "LA-50")
def test_tasks_of_a_batch_are_distinguished_and_started_under_the_batch_name(reading: Desk) -> None:
    batch = b"{name: tune, kind: batch, output: /o, tasks: [{command: a}, {command: b}]}"
    rows = json.loads(reading("launch", "--dry-run", "-", "-o", "json", stdin=batch).out)["rows"]
    assert [(row["name"], row["argv"], row["host"]) for row in rows] == [
        ("tune-0", ["a"], "tune-0"),
        ("tune-1", ["b"], "tune-0"),
    ]
    assert {row["env"]["COCKPIT_JOB_NAME"] for row in rows} == {"tune"}


@pytest.mark.req("LA-01", "JT-47")
@pytest.mark.parametrize(
    ("vendor", "variable"), [(CardVendor.NVIDIA, "CUDA_VISIBLE_DEVICES"), (CardVendor.MLU, "MLU_VISIBLE_DEVICES")]
)
def test_whole_declared_cards_are_named_as_the_job_will_find_them(
    reading: Desk, vendor: CardVendor, variable: str
) -> None:
    cards = tuple(Card(index=index, model="X9", vendor=vendor, declared=True) for index in range(4))
    first = reading.backend.node_rows[0]
    reading.backend.node_rows = [replace(first, node=replace(first.node, cards=cards))]
    job = JOB.replace(b"cards: 4", b"cards: 2, card_models: [X9]")
    for row in json.loads(reading("launch", "--dry-run", "-", "-o", "json", stdin=job).out)["rows"]:
        assert row["env"][variable] == "0,1"


@pytest.mark.req("LA-60", "JT-47")
def test_each_worker_pool_has_its_own_cards(reading: Desk) -> None:
    job = b"""\
name: pools
command: python t.py
output: /data/out
mode: worker-pools
worker_pools:
- {spec: {cpus: 1, memory: 1G, cards: 1}, command: python a.py}
- {replicas: 1, spec: {cpus: 1, memory: 1G, cards: 3}, command: python b.py}
"""
    reading.backend.node_rows = []
    done = reading("launch", "--dry-run", "-", "-o", "json", stdin=job)
    assert done.err == ""
    rows = json.loads(done.out)["rows"]
    assert [row["env"]["CUDA_VISIBLE_DEVICES"] for row in rows] == ["0", "0,1,2"]


@pytest.mark.req("JT-08")
def test_a_dry_run_is_of_the_first_attempt(reading: Desk) -> None:
    rows = json.loads(reading("launch", "--dry-run", "-", "-o", "json", stdin=JOB).out)["rows"]
    assert {row["env"]["COCKPIT_ATTEMPT"] for row in rows} == {"1"}


@pytest.mark.req("LA-71")
def test_a_batch_script_whose_name_is_taken_is_submitted_under_a_free_one(
    reading: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted = reading.backend.submit

    async def submit(specs: Sequence[JobSpec]) -> list[JobId]:
        taken = {row.name for row in reading.backend.job_rows}
        if any(spec.name in taken for spec in specs):
            raise RequestRefused(Refusal(RefusalKind.INVALID, "jobs[0].name: a job has this name"))
        return await accepted(specs)

    monkeypatch.setattr(reading.backend, "submit", submit)
    done = reading("submit", "-", stdin=b"#!/bin/bash\n#SBATCH -J vit-sweep -D /o\ntrue\n")
    assert (done.code, done.out) == (0, b"submitted vit-sweep-2 as 100\n")
    assert "a job called vit-sweep is there already; this one is vit-sweep-2" in done.err
    done = reading("submit", "-", stdin=b"{name: vit-sweep, command: a, output: /o}")
    assert done.code != 0
    assert "a job has this name" in done.err
    denied = Refusal(RefusalKind.DENIED, "nlp is not yours")
    asked: list[object] = []

    async def deny(specs: Sequence[JobSpec]) -> list[JobId]:
        asked.append(specs)
        raise RequestRefused(denied)

    monkeypatch.setattr(reading.backend, "submit", deny)
    assert "nlp is not yours" in reading("submit", "-", stdin=b"#!/bin/bash\n#SBATCH -J a -D /o\ntrue\n").err
    assert len(asked) == 1
