"""Card models are found however they are spelt: Slurm's scripts write them in lower case."""

from __future__ import annotations

import pytest

from cockpit.engine.submission.submit import edit
from cockpit.formats.foreign.exchange import taken_over
from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.model.job import JobState
from cockpit.model.refusal import Refusal
from cockpit.model.spec import Mode, NodeSpec, WorkerPool
from tests.builders import a_card, a_node, a_spec
from tests.engine.driver import EngineDriver


def an_engine(*models: str) -> EngineDriver:
    return EngineDriver(
        *(a_node(f"n{at}", card_list=tuple(a_card(n, model) for n in range(2))) for at, model in enumerate(models))
    )


@pytest.mark.req("LA-70")
@pytest.mark.parametrize("asked", ["a100", "A100", "a100:2", "A100:2"])
def test_a_batch_script_that_asks_for_a_model_in_lower_case_finds_it(asked: str) -> None:
    engine = an_engine("H100", "A100")
    found = taken_over("x", f"#!/bin/bash\n#SBATCH -J x -c 1 --mem=1G --gres=gpu:{asked}\npython t.py\n")
    assert found is not None
    (spec,) = read_jobs("x.json", found.text, "/home/ann", defaults=Defaults())
    (job,) = engine.run(spec)
    assert engine.job(job).spec.specs[0].card_models == ("A100",)
    assert engine.job(job).attempt is not None
    assert engine.job(job).attempt.placement[0].node == "n1"


@pytest.mark.req("LA-70")
def test_a_model_is_found_by_the_name_that_slurm_has_for_it() -> None:
    engine = an_engine("A100", "RTX 4090")
    (job,) = engine.run(a_spec("x", card_milli=1000, card_models=("rtx_4090",)))
    assert engine.job(job).spec.specs[0].card_models == ("RTX 4090",)


@pytest.mark.req("LA-70")
def test_a_model_name_that_exists_as_written_is_not_changed() -> None:
    engine = an_engine("t4", "T4")
    for model in ("T4", "t4"):
        (job,) = engine.run(a_spec(model, card_milli=1000, card_models=(model,)))
        assert engine.job(job).spec.specs[0].card_models == (model,)


@pytest.mark.req("LA-70")
def test_edits_and_worker_pools_match_models_too_and_an_unknown_model_is_refused_as_written() -> None:
    engine = an_engine("A100", "A100")
    (job,) = engine.submit(a_spec("x", card_milli=1000))
    engine.act(edit(engine.machine, engine.job(job), a_spec("x", card_milli=1000, card_models=("a100",))))
    assert engine.job(job).spec.specs[0].card_models == ("A100",)
    each = NodeSpec(card_milli=1000, card_models=("a100",))
    pools = (WorkerPool(replicas=1, spec=each), WorkerPool(replicas=1, spec=each))
    (gang,) = engine.submit(a_spec("y", specs=(each,), mode=Mode.WORKER_POOLS, worker_pools=pools))
    assert [pool.spec.card_models for pool in engine.job(gang).spec.worker_pools] == [("A100",), ("A100",)]
    assert engine.job(gang).state is JobState.QUEUED
    refused = edit(engine.machine, engine.job(job), a_spec("x", card_milli=1000, card_models=("h100",)))
    assert isinstance(refused, Refusal)
