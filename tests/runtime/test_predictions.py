"""What the engine predicts for queued jobs and for jobs that are not submitted yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cockpit.engine.access import Actor
from cockpit.errors import RequestRefused
from cockpit.model.ids import JobId
from cockpit.model.refusal import RefusalKind
from cockpit.protocol import messages
from cockpit.runtime import predicting
from cockpit.runtime.engine import Engine
from cockpit.runtime.request_context import RequestContext
from tests.builders import ANN, BOB, HOUR, MINUTE, NOON, SECOND, a_spec
from tests.runtime.host_world import World, eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from cockpit.model.refusal import Refusal

pytestmark = pytest.mark.req("SC-04")
BY, BY_BOB = (RequestContext(Actor(who, admin=False)) for who in (ANN, BOB))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Its four CPUs are busy for an hour."""
    world = World(tmp_path)
    await world.begin()
    await world.run(a_spec("first", cpus=4, time_limit_seconds=3600))
    yield world
    await world.stop()


@pytest.fixture
def engine(world: World) -> Engine:
    return Engine(host=world.host, state_folder=world.folder, socket=world.folder / "s", system=True, cluster="lab")


async def queued(world: World, name: str, **fields: Any) -> JobId:
    made = await world.submit(a_spec(name, **{"cpus": 4, "time_limit_seconds": 600, **fields}))
    assert isinstance(made, list), made
    await eventually(lambda: world.host.plan is not None and made[0] in world.host.machine.queue)
    await world.idle()
    return made[0]


async def refusal(asked: Any) -> Refusal:
    with pytest.raises(RequestRefused) as refused:
        await asked
    return refused.value.refusal


async def test_a_queued_job_is_explained_with_its_start_and_what_would_start_sooner(
    world: World, engine: Engine
) -> None:
    job = await queued(world, "second")
    outlook = await predicting.explain(engine, BY, messages.JobArgs(job))
    assert outlook.job == job
    assert outlook.forecast.latest_at == NOON + HOUR + 30 * SECOND, "with the time to end"
    assert [*engine.bounds.promised] == [job]
    assert world.host.reminded
    assert await predicting.explain(engine, BY, messages.JobArgs(job)) == outlook
    other = await refusal(predicting.explain(engine, BY_BOB, messages.JobArgs(job)))
    assert other.kind is RefusalKind.NOT_FOUND


async def test_only_a_queued_job_waits_for_something(engine: Engine) -> None:
    said = await refusal(predicting.explain(engine, BY, messages.JobArgs(1)))
    assert (said.kind, said.message) == (
        RefusalKind.CONFLICT,
        "Job 1 is running; only a queued job waits for something.",
    )


async def test_a_prediction_is_used_again_within_a_second_in_which_nothing_happens(
    world: World, engine: Engine
) -> None:
    job = await queued(world, "second")

    async def predictor() -> Any:
        await predicting.explain(engine, BY, messages.JobArgs(job))
        return engine.predictor

    first = await predictor()
    assert await predictor() is first
    world.clock.advance(SECOND - 1)
    assert await predictor() is first
    world.clock.advance(1)
    second = await predictor()
    assert second is not first
    await queued(world, "third")
    assert await predictor() is not second


async def test_jobs_that_are_not_submitted_yet_are_predicted_in_their_order(world: World, engine: Engine) -> None:
    waiting = await queued(world, "second")
    specs = (
        a_spec("mine", cpus=4, time_limit_seconds=600),
        a_spec("next", cpus=4, time_limit_seconds=600),
    )
    before = world.host.machine.state.seq
    found = await predicting.predict(engine, BY, messages.PredictArgs(specs))
    assert [each.job for each in found] == [0, 0]
    starts = [each.forecast.likely_at for each in found]
    assert starts == [NOON + HOUR + 10 * MINUTE, NOON + HOUR + 20 * MINUTE], "behind the job that waits"
    assert world.host.machine.state.seq == before
    assert engine.bounds.promised == {}
    await predicting.explain(engine, BY, messages.JobArgs(waiting))
    refused = await refusal(predicting.predict(engine, BY, messages.PredictArgs((a_spec("odd", cpus=99),))))
    assert [where for where, _ in refused.reasons] == ["specs[0].cpus"]


async def test_starts_are_predicted_of_the_jobs_that_a_user_may_see(world: World, engine: Engine) -> None:
    job = await queued(world, "second")
    assert await predicting.starts(engine, BY_BOB, messages.StartsArgs((job,))) == []
    assert await predicting.starts(engine, BY, messages.StartsArgs((1, 99))) == []
    assert engine.predictor is None, "for nothing, nothing is computed"
    (start,) = await predicting.starts(engine, BY, messages.StartsArgs((1, job)))
    assert start.job == job
    assert [*engine.bounds.promised] == [job]


async def test_a_request_about_too_many_jobs_is_refused(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (predicting.MOST_SPECS, predicting.MOST_STARTS) == (1000, 1000), "as docs/protocol.md says"
    monkeypatch.setattr(predicting, "MOST_SPECS", 1)
    monkeypatch.setattr(predicting, "MOST_STARTS", 1)
    one, other = a_spec("one"), a_spec("other")
    await predicting.predict(engine, BY, messages.PredictArgs((one,)))
    await predicting.starts(engine, BY, messages.StartsArgs((1,)))
    for asked, words in (
        (predicting.predict(engine, BY, messages.PredictArgs((one, other))), "predicts at most 1 jobs"),
        (predicting.starts(engine, BY, messages.StartsArgs((1, 2))), "predicts the starts of at most 1 jobs"),
    ):
        said = await refusal(asked)
        assert (said.kind, words in said.message) == (RefusalKind.INVALID, True)
