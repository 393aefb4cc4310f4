"""Where a job may run: named nodes, pools, drivers, labels and taints; what nothing offers is refused at its field."""

from __future__ import annotations

import pytest

from cockpit.engine.access import Actor
from cockpit.engine.submission.submit import submit
from cockpit.model.labels import Taint, Toleration
from cockpit.model.reasons import NoEligibleNode
from cockpit.model.refusal import Refusal
from cockpit.model.spec import JobSpec
from tests.builders import ANN, a_node, a_spec
from tests.engine.driver import EngineDriver


@pytest.fixture
def engine() -> EngineDriver:
    return EngineDriver(
        a_node("old", cards=2, driver_version="535", labels={"disk": "ssd"}),
        a_node("new", cards=2, driver_version="550", pool="train"),
        a_node("spot", cards=2, driver_version="550", taints=(Taint("spot"),)),
        a_node("own", cards=2, driver_version="550", pool="vision", dedicated=True),
    )


def places(engine: EngineDriver, *specs: JobSpec) -> list[str]:
    jobs = engine.submit(*specs)
    engine.schedule()
    return [part.node for job in jobs for part in engine.job(job).attempt.placement]


@pytest.mark.req("JT-10", "JT-11", "JT-12")
def test_pins_drivers_and_pools_are_obeyed(engine: EngineDriver) -> None:
    where = places(
        engine,
        a_spec("pinned", node_names=("spot", "old")),
        a_spec("driver", card_milli=1000, driver_version="550"),
        a_spec("either", card_milli=1000, driver_version="535", nodes=1),
        a_spec("pool", pool="vision"),
    )
    assert where == ["old", "new", "old", "own"]


@pytest.mark.req("JT-12", "JT-25")
def test_dedicated_and_tainted_nodes_accept_only_jobs_that_request_or_tolerate_them(engine: EngineDriver) -> None:
    specs = [a_spec(f"j{number}", card_milli=2000) for number in range(2)]
    tolerant = a_spec("tolerant", card_milli=2000, tolerations=(Toleration("spot"),))
    selecting = a_spec("selecting", node_selector={"disk": "ssd"})
    assert sorted(places(engine, *specs, tolerant, selecting)) == ["new", "old", "old", "spot"]
    (late,) = engine.submit(a_spec("late", card_milli=2000))
    engine.schedule()
    assert engine.job(late).attempt is None


@pytest.mark.parametrize(
    ("fields", "field", "reason"),
    [
        ({"node_names": ("gone",)}, "node_names", NoEligibleNode(pins=("gone",))),
        ({"node_names": ("own",)}, "node_names", NoEligibleNode(pins=("own",), dedicated=("vision",))),
        ({"pool": "gone"}, "pool", NoEligibleNode(pool="gone")),
        (
            {"driver_version": "470", "card_milli": 1000},
            "driver_version",
            NoEligibleNode(driver_version="470"),
        ),
        ({"node_selector": {"disk": "nvme"}}, "node_selector", NoEligibleNode(labels=("disk=nvme",))),
        (
            {"node_names": ("spot",), "tolerations": (Toleration("gpu"),)},
            "node_names",
            NoEligibleNode(pins=("spot",), taints=("spot",)),
        ),
    ],
)
@pytest.mark.req("JT-10", "JT-11", "JT-25")
def test_a_request_that_no_node_satisfies_is_refused_with_its_field(
    engine: EngineDriver, fields: dict, field: str, reason: NoEligibleNode
) -> None:
    refused = submit(engine.machine, [a_spec("mine", **fields)], Actor(ANN, admin=False))
    assert isinstance(refused, Refusal)
    assert refused.reasons == ((field, reason),)
