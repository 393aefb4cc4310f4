"""`fleet = [...]` in config.toml: the engine has these clusters under one queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cockpit.backends.local import daemon
from cockpit.clusters.engine_process import link_to
from cockpit.config.members import Member
from cockpit.config.settings import Settings
from cockpit.engine.machine import Machine
from cockpit.engine.state import ClusterState
from cockpit.errors import CockpitError
from cockpit.formats.cluster.file import read_cluster
from cockpit.model.fleetorder import order_of
from cockpit.runtime.machine import probe_machine

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.req("FL-04", "UI-10")
OLD = {"old": Member(address="recorded:22.05")}


def test_a_name_that_is_no_cluster_is_refused_with_what_to_do() -> None:
    with pytest.raises(CockpitError, match=r"fleet: west is no cluster of \[clusters\], which has old. Add it there."):
        daemon._links(Settings(clusters=OLD, fleet=("old", "west")), link_to)
    assert daemon._links(Settings(clusters=OLD), link_to) == {}


def test_the_engine_of_a_fleet_has_no_nodes_of_its_own_and_a_partition_for_each_member() -> None:
    setup = read_cluster(probe_machine(), "")
    of_fleet = daemon._of_fleet(setup, ("west", "old"), Machine(ClusterState()))
    assert of_fleet.nodes == ()
    assert [each.name for each in of_fleet.cluster.partitions] == ["west", "old", "fleet"]
    assert all(each.over_link for each in of_fleet.cluster.members)
    assert replace(of_fleet.cluster, members=(), partitions=()) == replace(setup.cluster, members=(), partitions=())


def test_a_fleet_keeps_its_id_so_that_its_orders_are_known_after_a_start(tmp_path: Path) -> None:
    made = daemon._fleet_id(tmp_path)
    assert daemon._fleet_id(tmp_path) == made
    order = order_of(f"bert-{made}-12-3")
    assert order is not None
    assert (order.fleet, order.job, order.attempt) == (made, 12, 3)


async def test_a_link_to_a_cluster_of_config_toml_opens_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = tmp_path / "cockpit-cluster"
    config.mkdir()
    (config / "config.toml").write_text('fleet = ["old"]\n[clusters]\nold = {address = "recorded:22.05"}\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    link = link_to("old")
    assert len(await link.nodes()) == 4
    assert await link.parts("f000000") == []
    with pytest.raises(CockpitError, match="recording of a cluster"):
        await link.cancel("7")
    await link.close()
