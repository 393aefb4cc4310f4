"""When the engine takes rules over, and when they are fixed."""

from __future__ import annotations

import pytest

from cockpit.engine.configure import take_over_accounts, take_over_rules
from cockpit.engine.state import ClusterState
from cockpit.model.accounts import Accounts, Association, Qos, assoc_key
from cockpit.model.cluster import Backfill, BackfillKind, Cluster, Partition, Priority, PriorityKind
from cockpit.model.events import AccountsChanged, ClusterConfigured
from cockpit.model.refusal import Refusal

FIXED = Cluster(partitions=(Partition(name="a4"),), mutable=False)
OTHER = Cluster(partitions=(Partition(name="b4"),), priority=Priority(kind=PriorityKind.MULTIFACTOR), mutable=False)


def test_unchanged_rules_write_no_event() -> None:
    assert take_over_rules(ClusterState(cluster=FIXED), FIXED, sealed=False) == []


def test_a_cluster_without_an_init_accepts_any_rules() -> None:
    assert take_over_rules(ClusterState(), FIXED, sealed=False) == [ClusterConfigured(FIXED)]


@pytest.mark.req("SC-15")
def test_fixed_rules_are_not_edited() -> None:
    refusal = take_over_rules(ClusterState(cluster=FIXED), OTHER, sealed=False)
    assert isinstance(refusal, Refusal)
    assert "another partitions and priority than `cockpit cluster init` fixed" in refusal.message


@pytest.mark.req("SC-15")
def test_another_init_or_a_mutable_file_changes_them() -> None:
    mutable = Cluster(partitions=OTHER.partitions)
    assert take_over_rules(ClusterState(cluster=FIXED), OTHER, sealed=True) == [ClusterConfigured(OTHER)]
    assert take_over_rules(ClusterState(cluster=FIXED), mutable, sealed=False) == [ClusterConfigured(mutable)]


def test_site_settings_are_always_editable() -> None:
    site = Cluster(
        partitions=FIXED.partitions, mutable=False, urgent_jobs=2, backfill=Backfill(kind=BackfillKind.CONSERVATIVE)
    )
    assert take_over_rules(ClusterState(cluster=FIXED), site, sealed=False) == [ClusterConfigured(site)]


@pytest.mark.req("SC-16")
def test_the_accounts_of_the_file_are_imported_once() -> None:
    vision = Association(account="vision", parent="root")
    begin = Accounts()
    file = Accounts(
        associations=begin.associations | {vision.key: vision}, qos=begin.qos | {"high": Qos(name="high", priority=5)}
    )
    assert take_over_accounts(ClusterState(), file) == [AccountsChanged((vision,), (Qos(name="high", priority=5),))]
    own = Accounts(associations=begin.associations | {assoc_key("nlp"): Association(account="nlp", parent="root")})
    assert take_over_accounts(ClusterState(accounts=own), file) == []
    assert take_over_accounts(ClusterState(), begin) == []
