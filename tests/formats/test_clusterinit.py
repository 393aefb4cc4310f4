"""The first cluster.toml of a site."""

from __future__ import annotations

import pytest

from cockpit.errors import SpecErrors
from cockpit.formats.cluster.file import ClusterSetup, read_cluster
from cockpit.formats.clusterinit import has_rules, initial_cluster
from cockpit.formats.slurm.spec import SlurmSpec, read_slurm_spec
from cockpit.model.cluster import PriorityKind
from cockpit.model.ids import NodeName
from cockpit.model.node import Node
from cockpit.resources import fixture

MACHINE = Node(name=NodeName("box"), cpus=16, memory_mib=65536)
EXAMPLE = fixture("slurmspec/training-cluster.json").read_text()
STORAGE = "projects/PROJECT_ID/locations/REGION-ZONE/instances/FILESTORE_INSTANCE_ID"
SITE = f"""# what we have
overcommit = true
[node_pools]
a4 = ["n1"]
login = ["n2"]
[home]
"{STORAGE}" = "/srv/home"
[[nodes]]
name = "n1"
cpus = 8
memory = "8G"
[[nodes]]
name = "n2"
cpus = 8
memory = "8G"
[[accounts]]
name = "vision"
"""


def spec() -> SlurmSpec:
    return read_slurm_spec("spec.json", EXAMPLE)


def setup(text: str) -> ClusterSetup:
    return read_cluster(MACHINE, text)


@pytest.mark.req("SC-15")
def test_a_slurm_spec_by_itself_makes_a_cluster_of_this_machine() -> None:
    found = setup(initial_cluster(MACHINE, spec(), None).text)
    wanted = spec().cluster
    assert found.cluster.partitions == wanted.partitions
    assert found.cluster.priority == wanted.priority
    assert found.cluster.preemption == wanted.preemption
    assert found.cluster.prolog_scripts == wanted.prolog_scripts
    assert (found.cluster.home, found.cluster.login_pool, found.cluster.mutable) == ("/home", "login", False)
    assert [node.pool for node in found.nodes] == ["a4"]
    assert found.sealed


@pytest.mark.req("SC-15")
def test_a_file_without_rules_is_completed() -> None:
    text = initial_cluster(MACHINE, spec(), SITE).text
    assert SITE.strip() in text
    found = setup(text)
    assert [(node.name, node.pool) for node in found.nodes] == [("n1", "a4"), ("n2", "login")]
    assert found.cluster.home == "/srv/home"
    assert found.accounts.associations.keys() >= {"vision/"}
    assert found.sealed


def test_settings_of_the_site_are_kept_when_rules_are_replaced() -> None:
    before = initial_cluster(MACHINE, None, SITE).text
    assert has_rules(before, "cluster.toml")
    found = setup(initial_cluster(MACHINE, spec(), before).text)
    assert [partition.name for partition in found.cluster.partitions] == ["a4"]
    assert found.cluster.home == "/srv/home"
    assert found.accounts.associations.keys() >= {"vision/"}


@pytest.mark.req("SC-15")
def test_unsupported_settings_are_reported_with_the_paths_of_the_spec() -> None:
    text = '[node_pools]\nb4 = ["box"]\n[home]\n"projects/a/locations/b/instances/c" = "/srv"\n'
    with pytest.raises(SpecErrors) as caught:
        initial_cluster(MACHINE, spec(), text, spec_source="spec.json")
    at = "spec.json: orchestratorSpec.slurmSpec"
    assert caught.value.errors == (
        f"{at}.partitions[0].node_pool_ids[0]: a4 is no pool of [node_pools] in cluster.toml; there are b4",
        f"{at}.login_node_pool_id: login is no pool of [node_pools] in cluster.toml; there are b4",
        f"{at}.home_directory_storage: [home] in cluster.toml has no folder for {STORAGE}; add it there",
    )


def test_an_edit_breaks_the_seal_but_the_sites_own_does_not() -> None:
    text = initial_cluster(MACHINE, spec(), None).text
    assert not setup(text.replace("mem = 150", "mem = 151")).sealed
    assert setup("urgent_jobs = 3\n" + text.replace('= "/home"', '= "/srv/home"')).sealed


def test_without_a_spec_a_default_file_is_written() -> None:
    found = setup(initial_cluster(MACHINE, None, None).text)
    assert [partition.name for partition in found.cluster.partitions] == ["main"]
    assert found.cluster.priority.kind is PriorityKind.MULTIFACTOR
    assert found.cluster.mutable
