"""Notices reclaim the nodes of the machine that they mean, where the nodes are of several machines: over real HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cockpit.model.events import NodesChanged
from cockpit.model.labels import Taint
from cockpit.model.node import NodeState
from cockpit.model.outside import Provider
from cockpit.runtime.clock import VirtualClock
from cockpit.runtime.spot_notices import SpotSettings, SpotWatch
from cockpit.runtime.troubles import Outages
from tests.builders import NOON, a_node
from tests.doubles.http_service import HttpService
from tests.runtime.host_world import BY_ANN, World
from tests.runtime.test_spot_notices import ALIBABA, AZURE, GCP, ISO, MOMENT, serve_alibaba, serve_aws, with_token

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

SPOT = (Taint("spot"),)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path, VirtualClock(NOON))
    await world.begin()
    yield world
    await world.stop()


async def drained(world: World, nodes: dict[str, dict[str, Any]], outages: Outages | None = None, **settings: Any):
    """The nodes that one look at the notices takes out of service."""
    made = tuple(a_node(name, taints=SPOT, **fields) for name, fields in nodes.items())
    await world.host.act(lambda *_: [NodesChanged(made)], BY_ANN)
    await SpotWatch(
        world.host, SpotSettings(**{"seconds": 5, "patience_seconds": 20, **settings}), outages or Outages()
    ).look()
    return [str(name) for name, each in world.host.machine.state.nodes.items() if each.state is NodeState.DRAINED]


def azure(http: HttpService, *resources: str) -> dict[str, Any]:
    names = ", ".join(f'"{each}"' for each in resources)
    event = f'"EventType": "Preempt", "Resources": [{names}], "NotBefore": "{MOMENT:%a, %d %b %Y %H:%M:%S GMT}"'
    http.answer(f"GET {AZURE}", f'{{"DocumentIncarnation": 2, "Events": [{{{event}}}]}}')
    return {"provider": Provider.AZURE, "address": http.address}


@pytest.mark.req("EL-02")
@pytest.mark.parametrize(
    ("resources", "resource", "gone"),
    [
        (["vm-1"], "", ["n1"]),
        (["vm-1", "n3"], "", ["n1", "n3"]),
        (["vm-9"], "", []),
        (["vm-0"], "vm-0", ["n3"]),
        (["vm-2", "vm-9"], "vm-0", ["n2"]),
    ],
)
async def test_azures_document_reclaims_the_machines_that_it_names(
    world: World, http_service: HttpService, resources: list[str], resource: str, gone: list[str]
) -> None:
    nodes = {"n1": {"instance": "vm-1"}, "n2": {"instance": "vm-2"}, "n3": {}}
    assert await drained(world, nodes, **azure(http_service, *resources), resource=resource) == gone


@pytest.mark.req("EL-02")
async def test_an_engine_whose_nodes_are_parts_of_one_machine_takes_every_notice_for_its_own(
    world: World, http_service: HttpService
) -> None:
    assert await drained(world, {"n1": {}, "n2": {}}, **azure(http_service, "vm-1")) == ["n1", "n2"]


@pytest.mark.req("EL-02")
@pytest.mark.parametrize(("own", "gone"), [("i-0b", ["n2"]), ("i-0c", ["n3"])])
async def test_awss_notice_is_about_the_instance_whose_address_was_asked(
    world: World, http_service: HttpService, own: str, gone: list[str]
) -> None:
    serve_aws(http_service)
    http_service.replies |= with_token("/latest/meta-data/instance-id", "x-aws-ec2-metadata-token", "tok==", own)
    nodes = {"n1": {"instance": "i-0a"}, "n2": {"instance": "i-0b"}, "n3": {}}
    assert await drained(world, nodes, provider=Provider.AWS, address=http_service.address) == gone


@pytest.mark.req("EL-02")
@pytest.mark.parametrize(
    ("provider", "path", "notice", "identity"),
    [
        (Provider.GCP, GCP, "TRUE", "/computeMetadata/v1/instance/name"),
        (Provider.ALIBABA, ALIBABA, ISO, "/latest/meta-data/instance-id"),
    ],
)
async def test_other_providers_say_which_machine_it_is_too(
    world: World, http_service: HttpService, provider: Provider, path: str, notice: str, identity: str
) -> None:
    http_service.answer(f"GET {path}", notice)
    http_service.answer(f"GET {identity}", "spot-2\n")
    nodes = {"n1": {"instance": "spot-1"}, "n2": {"instance": "spot-2"}}
    assert await drained(world, nodes, provider=provider, address=http_service.address) == ["n2"]


@pytest.mark.req("EL-02", "TR-10")
async def test_without_an_answer_to_which_machine_it_is_no_node_is_reclaimed_and_that_is_reported(
    world: World, http_service: HttpService
) -> None:
    serve_alibaba(http_service)
    outages = Outages()
    nodes = {"n1": {"instance": "i-1"}, "n2": {}}
    assert await drained(world, nodes, outages, provider=Provider.ALIBABA, address=http_service.address) == []
    assert outages.sentences == (
        f"The spot notice's address {http_service.address} does not say which machine it is (status 404).",
    )


@pytest.mark.req("EL-02")
async def test_a_node_with_an_address_of_its_own_is_reclaimed_by_what_is_said_there(
    world: World, http_service: HttpService
) -> None:
    other = HttpService()
    try:
        serve_alibaba(other)
        nodes = {"n1": {}, "n2": {"notice_address": other.address}, "n3": {"notice_address": other.address + "/x"}}
        gone = await drained(world, nodes, provider=Provider.ALIBABA, address=http_service.address)
        assert gone == ["n2"]
        assert [each.path for each in http_service.requests] == [ALIBABA]
    finally:
        other.close()


@pytest.mark.req("EL-02")
async def test_an_address_that_is_silent_keeps_no_other_machines_notice_back(
    world: World, http_service: HttpService
) -> None:
    other = HttpService()
    try:
        serve_alibaba(other)
        http_service.silent.set()
        outages = Outages()
        nodes = {"n1": {}, "n2": {"notice_address": other.address}}
        settings = {"provider": Provider.ALIBABA, "address": http_service.address, "patience_seconds": 0.2}
        assert await drained(world, nodes, outages, **settings) == ["n2"]
        assert "did not answer within 0.2 s" in outages.sentences[0]
    finally:
        other.close()


@pytest.mark.req("EL-02")
async def test_the_watched_file_names_a_node_or_its_machine(world: World, tmp_path: Path) -> None:
    file = tmp_path / "notices"
    file.write_text("i-0b 300\nn3 60\n")
    nodes = {"n1": {"instance": "i-0a"}, "n2": {"instance": "i-0b"}, "n3": {"instance": "i-0c"}}
    assert await drained(world, nodes, file=str(file)) == ["n2", "n3"]
