"""Who may reserve what, and when it can be given back."""

from __future__ import annotations

from typing import Any

import pytest

from cockpit.engine.reservations import end_reservation, make_reservation
from cockpit.model.cluster import Reservation
from cockpit.model.ids import NodeName
from cockpit.model.refusal import Refusal, RefusalKind
from tests.builders import HOUR, a_node, a_spec
from tests.engine.driver import EngineDriver


@pytest.fixture
def engine() -> EngineDriver:
    return EngineDriver(a_node("n1"), a_node("n2"))


def a_reservation(engine: EngineDriver, **fields: Any) -> Reservation:
    usual = {"name": "course", "nodes": ("n1",), "start_at": engine.now, "end_at": engine.now + HOUR, "users": ("ann",)}
    return Reservation(**{**usual, **fields})


def asked(engine: EngineDriver, wanted: Reservation) -> Refusal | None:
    return engine.act(make_reservation(engine.machine, wanted, engine.now))


@pytest.mark.req("SC-10")
def test_reservations_are_created_and_ended(engine: EngineDriver) -> None:
    assert asked(engine, a_reservation(engine)) is None
    assert list(engine.machine.state.reservations) == ["course"]
    again = asked(engine, a_reservation(engine))
    assert again is not None
    assert again.kind is RefusalKind.CONFLICT
    assert engine.act(end_reservation(engine.machine, "course")) is None
    gone = end_reservation(engine.machine, "course")
    assert isinstance(gone, Refusal)
    assert gone.kind is RefusalKind.NOT_FOUND


@pytest.mark.req("SC-10")
@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"name": "a/b"}, "name"),
        ({"nodes": ()}, "nodes"),
        ({"nodes": ("n9",)}, "nodes"),
        ({"end_at": 5}, "end"),
        ({"start_at": -1}, "start"),
        ({"users": ()}, "users"),
        ({"maintenance": True}, "maintenance"),
        ({"accounts": ("none",)}, "accounts"),
    ],
)
def test_an_invalid_reservation_is_refused_with_the_field(
    engine: EngineDriver, fields: dict[str, Any], path: str
) -> None:
    refused = asked(engine, a_reservation(engine, **fields))
    assert refused is not None
    assert [line.split(":")[0] for line in refused.message.splitlines()] == [path]


@pytest.mark.req("SC-10")
def test_two_reservations_may_not_overlap_on_a_node(engine: EngineDriver) -> None:
    assert asked(engine, a_reservation(engine)) is None
    refused = asked(engine, a_reservation(engine, name="other", nodes=("n2", "n1")))
    assert refused is not None
    assert "reservation course keeps n1" in refused.message
    later = {"start_at": engine.now + HOUR, "end_at": engine.now + 2 * HOUR}
    assert asked(engine, a_reservation(engine, name="other", **later)) is None
    assert asked(engine, a_reservation(engine, name="beside", nodes=(NodeName("n2"),))) is None


@pytest.mark.req("SC-10")
def test_a_reservation_with_running_jobs_is_not_ended(engine: EngineDriver) -> None:
    assert asked(engine, a_reservation(engine)) is None
    (job,) = engine.run(a_spec(reservation="course", time_limit_seconds=60))
    refused = end_reservation(engine.machine, "course")
    assert isinstance(refused, Refusal)
    assert f"course: {job}." in refused.message
    engine.ended(job, code=0)
    assert engine.act(end_reservation(engine.machine, "course")) is None
