"""Prices are asked for again while the engine runs: of a file, and of a real HTTP server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from cockpit.model.events import NodesChanged
from cockpit.model.ids import NodeName
from cockpit.model.labels import Taint
from cockpit.model.resilience import Elastic
from cockpit.runtime.clock import VirtualClock
from cockpit.runtime.prices import PriceSettings, PriceWatch, forget_prices
from cockpit.runtime.troubles import Outages
from tests.builders import NOON, SECOND, a_node, a_spec
from tests.doubles.http_service import HttpService
from tests.runtime.host_world import BY_ANN, World, eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path, VirtualClock(NOON))
    await world.begin()
    nodes = (a_node("n1", cpus=4, taints=(Taint("spot"),)), a_node("n2", cpus=4), a_node("n3", taints=(Taint("spot"),)))
    await world.host.act(lambda *_: [NodesChanged(nodes)], BY_ANN)
    yield world
    await world.stop()


def watch(world: World, source: str, outages: Outages | None = None, **settings: Any) -> PriceWatch:
    return PriceWatch(
        world.host,
        PriceSettings(source=source, **{"seconds": 60, "patience_seconds": 60, **settings}),
        outages or Outages(),
    )


def prices(world: World) -> dict[str, int | None]:
    return {str(name): node.price_milli for name, node in world.host.machine.state.nodes.items()}


@pytest.mark.req("EL-01")
async def test_a_job_starts_when_the_address_says_a_lower_price(world: World, http_service: HttpService) -> None:
    elastic = Elastic(workers=1, max_workers=1, spot=True, max_price_milli=400)
    http_service.answer("GET /prices?zone=a", '{"n1": 0.5, "n2": 0.5, "n3": 0.5, "elsewhere": 0.1}')
    watching = watch(world, f"{http_service.address}/prices?zone=a", seconds=60)
    await watching.look()
    (job,) = await world.submit(a_spec(elastic=elastic, cpus=1))
    await world.idle()
    assert world.state(job) == "queued"
    assert prices(world) == {"n1": 500, "n2": 500, "n3": 500}

    def starts() -> bool:
        world.clock.advance(60 * SECOND)
        return world.state(job) == "running"

    async with asyncio.TaskGroup() as group:
        task = group.create_task(watching.watch_periodically())
        http_service.answer("GET /prices?zone=a", '{"n1": 0.5, "n2": 0.5, "n3": 0.35}')
        await eventually(starts)
        task.cancel()
    assert [part.node for part in world.job(job).attempt.placement] == ["n3"]


@pytest.mark.req("EL-01")
async def test_a_star_is_the_price_of_all_other_spot_nodes(world: World, tmp_path: Path) -> None:
    file = tmp_path / "prices"
    file.write_text("* 0.4\nn1 0.3\n")
    await watch(world, str(file)).look()
    assert prices(world) == {"n1": 300, "n2": None, "n3": 400}
    seq = world.host.machine.state.seq
    await watch(world, str(file)).look()
    assert world.host.machine.state.seq == seq
    await forget_prices(world.host)
    assert prices(world) == {"n1": None, "n2": None, "n3": None}


@pytest.mark.req("EL-01", "TR-10")
async def test_a_source_that_fails_is_reported_once_and_the_last_prices_hold(
    world: World, http_service: HttpService, capfd: pytest.CaptureFixture[str]
) -> None:
    outages = Outages()
    source = f"{http_service.address}/prices"
    watching, hasty = watch(world, source, outages), watch(world, source, outages, patience_seconds=0.05)
    http_service.answer("GET /prices", "n1 0.3")
    await watching.look()
    http_service.silent.set()
    await hasty.look()
    await hasty.look()
    http_service.silent.clear()
    assert capfd.readouterr().err == f"cockpit engine: the price source {source} did not answer within 0.05 s\n"
    assert world.host.machine.state.nodes[NodeName("n1")].price_milli == 300
    for body, status, why in (("x", 503, "answers with status 503"), ("<html>", 200, "is not usable: line 1 is not")):
        http_service.answer("GET /prices", body, status)
        await watching.look()
        assert why in outages.sentences[0]
    http_service.answer("GET /prices", "n1 0.2")
    await watching.look()
    assert outages.sentences == ()
    assert world.host.machine.state.nodes[NodeName("n1")].price_milli == 200


@pytest.mark.req("EL-01", "TR-10")
async def test_a_missing_file_is_reported(world: World, tmp_path: Path) -> None:
    outages = Outages()
    await watch(world, str(tmp_path / "none"), outages).look()
    assert outages.sentences == (f"The price source {tmp_path / 'none'} cannot be read: No such file or directory.",)
