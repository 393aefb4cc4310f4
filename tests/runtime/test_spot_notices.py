"""Nodes are reclaimed when their provider announces it: over real HTTP, and by a watched file."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from cockpit.engine.nodes import service
from cockpit.model.attempt import EndCause
from cockpit.model.events import NodeDrained, NodesChanged
from cockpit.model.ids import Millis
from cockpit.model.labels import Taint
from cockpit.model.node import NodeState
from cockpit.model.outside import Provider
from cockpit.runtime.clock import VirtualClock
from cockpit.runtime.spot_notices import GRACE_MS, SpotSettings, SpotWatch
from cockpit.runtime.troubles import Outages
from tests.builders import MINUTE, NOON, SECOND, a_node, a_spec
from tests.doubles.http_service import HttpService, Reply, Request
from tests.runtime.host_world import BY_ANN, World, eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from cockpit.model.node import Node

GONE_AT = Millis(NOON + 2 * MINUTE)
MOMENT = datetime.fromtimestamp(GONE_AT / 1000, UTC)
ISO = f"{MOMENT:%Y-%m-%dT%H:%M:%SZ}"
WORDS = f"{MOMENT:%Y-%m-%d %H:%M:%S} UTC"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path, VirtualClock(NOON))
    await world.begin()
    yield world
    await world.stop()


def watch(world: World, outages: Outages | None = None, **settings: Any) -> SpotWatch:
    return SpotWatch(
        world.host, SpotSettings(**{"seconds": 5, "patience_seconds": 2, **settings}), outages or Outages()
    )


def node(world: World, name: str = "n1") -> Node:
    return {str(each): node for each, node in world.host.machine.state.nodes.items()}[name]


def with_token(path: str, header: str, token: str, body: str) -> Any:
    def reply(request: Request) -> Reply:
        return Reply(200, body.encode()) if request.headers.get(header) == token else Reply(401)

    return {f"GET {path}": reply}


AWS = "/latest/meta-data/spot/instance-action"
AZURE = "/metadata/scheduledevents?api-version=2020-07-01"
ALIBABA = "/latest/meta-data/instance/spot/termination-time"
GCP = "/computeMetadata/v1/instance/preempted"
AZURE_BODY = (
    '{"DocumentIncarnation": 2, "Events": [{"EventId": "A", "EventType": "Preempt", "ResourceType": "VirtualMachine", '
    f'"Resources": ["vm-1"], "EventStatus": "Scheduled", "NotBefore": "{MOMENT:%a, %d %b %Y %H:%M:%S GMT}"}}]}}'
)


def serve_aws(http: HttpService) -> None:
    http.answer("PUT /latest/api/token", "tok==")
    http.replies |= with_token(AWS, "x-aws-ec2-metadata-token", "tok==", f'{{"action":"terminate","time":"{ISO}"}}')


def serve_azure(http: HttpService) -> None:
    http.replies[f"GET {AZURE}"] = lambda asked: (
        Reply(200, AZURE_BODY.encode()) if asked.headers.get("metadata") == "true" else Reply(400)
    )


def serve_alibaba(http: HttpService) -> None:
    http.answer(f"GET {ALIBABA}", ISO)


def serve_hardened_alibaba(http: HttpService) -> None:
    http.answer("PUT /latest/api/token", "ali")
    http.replies |= with_token(ALIBABA, "x-aliyun-ecs-metadata-token", "ali", ISO)


@pytest.mark.req("EL-02")
@pytest.mark.parametrize(
    ("provider", "serve"),
    [("aws", serve_aws), ("azure", serve_azure), ("alibaba", serve_alibaba), ("alibaba", serve_hardened_alibaba)],
)
async def test_a_providers_notice_reclaims_the_node_with_the_time_that_is_left(
    world: World, http_service: HttpService, provider: str, serve: Any
) -> None:
    job = await world.run(a_spec(cpus=1))
    watching = watch(world, provider=Provider(provider), address=http_service.address)
    await watching.look()  # the provider's 404: nothing to do
    assert node(world).state is NodeState.UP
    serve(http_service)
    await watching.look()
    assert node(world).state_reason == f"its provider ({provider}) takes it back at {WORDS}"
    ending = world.job(job).ending
    assert (ending.cause, ending.kill_at, ending.requeue) == (EndCause.RECLAIMED, GONE_AT, True)


@pytest.mark.req("EL-02")
async def test_google_gives_no_time_so_that_half_a_minute_is_left(world: World, http_service: HttpService) -> None:
    job = await world.run(a_spec(cpus=1))
    watching = watch(world, provider=Provider.GCP, address=http_service.address)
    http_service.answer(f"GET {GCP}", "FALSE")
    await watching.look()
    assert node(world).state is NodeState.UP
    http_service.answer(f"GET {GCP}", "TRUE")
    await watching.look()
    assert world.job(job).ending.kill_at == NOON + GRACE_MS
    assert http_service.requests[-1].headers["metadata-flavor"] == "Google"
    seq = world.host.machine.state.seq
    world.clock.advance(SECOND)
    await watching.look()
    assert world.host.machine.state.seq == seq


@pytest.mark.req("EL-02")
async def test_awss_token_is_made_once_and_again_when_it_has_expired(world: World, http_service: HttpService) -> None:
    serve_aws(http_service)
    http_service.replies |= with_token(AWS, "x-aws-ec2-metadata-token", "tok==", '{"action":"none","time":""}')
    watching = watch(world, provider=Provider.AWS, address=http_service.address)
    await watching.look()
    await watching.look()
    assert [each.method for each in http_service.requests] == ["PUT", "GET", "GET"]
    assert http_service.requests[0].headers["x-aws-ec2-metadata-token-ttl-seconds"] == "21600"
    http_service.answer("PUT /latest/api/token", "new")
    http_service.replies |= with_token(AWS, "x-aws-ec2-metadata-token", "new", f'{{"action":"stop","time":"{ISO}"}}')
    await watching.look()
    assert node(world).state is NodeState.DRAINED


@pytest.mark.req("EL-02")
async def test_a_node_that_is_resumed_is_not_reclaimed_again_for_the_same_notice(
    world: World, http_service: HttpService
) -> None:
    serve_alibaba(http_service)
    settings = {"provider": Provider.ALIBABA, "address": http_service.address}
    watching = watch(world, **settings)
    await watching.look()
    seq = world.host.machine.state.seq
    await watch(world, **settings).look()  # a restarted engine, which has seen nothing
    assert world.host.machine.state.seq == seq
    await world.host.act(lambda machine, _: service.resume(machine, "n1", "root"), BY_ANN)
    await watching.look()
    assert node(world).state is NodeState.UP
    await watch(world, **settings).look()  # an engine that was restarted after that
    assert node(world).state is NodeState.UP


@pytest.mark.req("EL-02")
async def test_a_resumed_node_is_reclaimed_for_another_notice_and_by_its_administrator(
    world: World, tmp_path: Path
) -> None:
    file = tmp_path / "notices"
    watching = watch(world, file=str(file))
    for wrote_at in (NOON, NOON + SECOND):
        file.write_text("n1 0\n")
        os.utime(file, (wrote_at / 1000, wrote_at / 1000))
        await watching.look()
        assert node(world).state is NodeState.DRAINED
        await world.host.act(lambda machine, _: service.resume(machine, "n1", "root"), BY_ANN)
    await world.host.act(lambda machine, now: service.take_back(machine, "n1", "spot", "root", now, 0), BY_ANN)
    assert node(world).state is NodeState.DRAINED


@pytest.mark.req("EL-02")
async def test_only_spot_nodes_are_reclaimed_where_there_are_some(world: World, http_service: HttpService) -> None:
    nodes = (a_node("n1"), a_node("n2", taints=(Taint("spot"),)))
    await world.host.act(lambda *_: [NodesChanged(nodes)], BY_ANN)
    serve_alibaba(http_service)
    await watch(world, provider=Provider.ALIBABA, address=http_service.address).look()
    assert [node(world, name).state for name in ("n1", "n2")] == [NodeState.UP, NodeState.DRAINED]


@pytest.mark.req("EL-02", "TR-10")
async def test_an_address_that_does_not_answer_is_reported_once_and_delays_nothing(
    world: World, http_service: HttpService, capfd: pytest.CaptureFixture[str]
) -> None:
    outages = Outages()
    watching = watch(world, outages, provider=Provider.ALIBABA, address=http_service.address, patience_seconds=0.05)
    http_service.silent.set()
    async with asyncio.TaskGroup() as group:
        group.create_task(watching.look())
        await world.run(a_spec(cpus=1))  # the engine starts jobs meanwhile
    await watching.look()
    name = f"the spot notice's address {http_service.address}"
    assert capfd.readouterr().err.splitlines() == [f"cockpit engine: {name} did not answer within 0.05 s"]
    assert outages.sentences == (f"The spot notice's address {http_service.address} did not answer within 0.05 s.",)
    http_service.silent.clear()
    await watch(world, outages, provider=Provider.ALIBABA, address=http_service.address, patience_seconds=60).look()
    assert outages.sentences == ()
    assert node(world).state is NodeState.UP


@pytest.mark.req("EL-02", "TR-10")
@pytest.mark.parametrize(
    ("status", "body", "why"),
    [(500, "oops", "answers with status 500"), (200, "<html>\x1b", "does not answer as alibaba does: <html>\\x1b")],
)
async def test_an_answer_of_another_form_is_reported(
    world: World, http_service: HttpService, status: int, body: str, why: str
) -> None:
    outages = Outages()
    http_service.answer(f"GET {ALIBABA}", body, status)
    await watch(world, outages, provider=Provider.ALIBABA, address=http_service.address).look()
    assert outages.sentences == (f"The spot notice's address {http_service.address} {why}.",)


@pytest.mark.req("EL-02")
async def test_a_closed_port_is_reported(world: World, http_service: HttpService) -> None:
    outages = Outages()
    address = http_service.address
    http_service.close()
    await watch(world, outages, provider=Provider.GCP, address=address).look()
    assert "cannot be reached" in outages.sentences[0]


@pytest.mark.req("EL-02")
async def test_a_watched_file_reclaims_the_nodes_that_it_names(world: World, tmp_path: Path) -> None:
    outages, file = Outages(), tmp_path / "notices"
    job = await world.run(a_spec(cpus=1))
    watching = watch(world, outages, file=str(file))
    await watching.look()  # there is no file
    assert outages.sentences == ()
    file.write_text("n9 60\nn1 120\n")
    os.utime(file, (NOON / 1000, NOON / 1000))
    await watching.look()
    assert world.job(job).ending.kill_at == GONE_AT
    assert node(world).state_reason == f"its provider takes it back at {WORDS}"
    assert outages.sentences == (f"The spot notices' file {file} is not usable: names n9, which is no node.",)
    drains = [
        each for each in await world.journal.events(job=None, after=0, limit=99) if isinstance(each.body, NodeDrained)
    ]
    assert [each.body.gone_at for each in drains] == [GONE_AT]


@pytest.mark.req("EL-02")
async def test_rounds_go_on_at_their_interval(world: World, http_service: HttpService) -> None:
    watching = watch(world, provider=Provider.ALIBABA, address=http_service.address, seconds=5)

    def reclaimed() -> bool:
        world.clock.advance(5 * SECOND)
        return node(world).state is NodeState.DRAINED

    async with asyncio.TaskGroup() as group:
        task = group.create_task(watching.watch_periodically())
        await eventually(lambda: http_service.requests)
        serve_alibaba(http_service)
        await eventually(reclaimed)
        task.cancel()
