"""Card models, and the instances of a partitioned card."""

from __future__ import annotations

import pytest

from cockpit.model.cardmodels import counted_milli, gres_type, instances_per_card, is_one_of
from cockpit.model.resilience import Elastic
from cockpit.model.spec import Mode
from tests.builders import a_spec


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("model", "instances"),
    [
        ("A100_1g.10gb", 7),
        ("h100_1g.20gb", 4),
        ("h200_1g.35gb", 4),
        ("a30_1g.6gb", 4),
        ("a30_2g.12gb", 2),
        ("a30_4g.24gb", 1),
        ("mig-2g.20gb", 3),
        ("3g.40gb", 2),
        ("A100-4g.40gb", 1),
        ("7G.80GB", 1),
        ("5g.10gb", 0),
        ("A100", 0),
    ],
)
def test_a_profile_says_how_many_instances_fit_on_a_card(model: str, instances: int) -> None:
    assert instances_per_card(model) == instances


@pytest.mark.req("LA-70")
def test_an_instance_counts_as_a_card_and_shares_of_whole_cards_stay_shares() -> None:
    assert counted_milli(2 * (1000 // 7), "1g.10gb") == 2000
    assert counted_milli(500, "3g.40gb") == 1000
    assert counted_milli(1500, "A100") == 1500


@pytest.mark.req("LA-70")
def test_a_model_is_found_in_every_spelling() -> None:
    assert gres_type("RTX 4090") == "rtx_4090"
    assert is_one_of("RTX 4090", ("A100", "rtx_4090"))
    assert is_one_of("A100", ())
    assert not is_one_of("A100", ("H100",))


@pytest.mark.req("LA-12")
def test_only_a_job_with_a_launcher_has_a_first_replica_without_resources() -> None:
    elastic = Elastic(workers=2, max_workers=4)
    assert a_spec("x").first_worker == 0
    assert a_spec("x", nodes=2, mode=Mode.HOROVOD, elastic=elastic).first_worker == 1
    assert a_spec("x", nodes=2, mode=Mode.PYTORCH, elastic=elastic).first_worker == 0
