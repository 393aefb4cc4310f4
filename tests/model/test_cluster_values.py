"""What follows from the rules of a cluster, the state of a node and the capabilities of a backend."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from cockpit.model.asking import ShellRequest
from cockpit.model.capabilities import EMBEDDED, ENGINE, Ability, Capabilities
from cockpit.model.cluster import Cluster, Partition, Priority, PriorityFlag, Weights
from cockpit.model.directives import MoveToTop, SendSignal, SubmitScript, UpdateJob, needs_of
from cockpit.model.jobrow import JobRows
from cockpit.model.node import NodeState
from cockpit.model.priority import WeightChanges
from tests.builders import a_node
from tests.doubles.samples import queued_row

CPU, GPU = Partition(name="cpu"), Partition(name="gpu")


@pytest.mark.req("SC-03")
def test_the_default_partition_is_the_one_marked_so_else_the_first() -> None:
    marked = replace(GPU, default=True)
    assert Cluster(partitions=(CPU, marked)).default_partition is marked
    assert Cluster(partitions=(CPU, GPU)).default_partition is CPU
    assert Cluster().default_partition is None
    assert Cluster(partitions=(CPU, GPU)).partition("gpu") is GPU
    assert Cluster(partitions=(CPU, GPU)).partition("fat") is None


@pytest.mark.req("SC-02")
def test_fair_share_follows_fair_tree_unless_a_flag_says_otherwise() -> None:
    assert Priority(flags=(PriorityFlag.CALCULATE_RUNNING,)).fair_tree
    assert not Priority(flags=(PriorityFlag.NO_FAIR_TREE,)).fair_tree
    assert not Priority(flags=(PriorityFlag.DEPTH_OBLIVIOUS,)).fair_tree


@pytest.mark.req("SC-01")
def test_tried_weights_take_the_place_of_the_clusters_and_others_stay() -> None:
    weights = Weights(age=1, qos=2, tres={"cpu": 3, "mem": 4})
    assert WeightChanges(age=0, tres={"cpu": 9}).on(weights) == Weights(age=0, qos=2, tres={"cpu": 9, "mem": 4})
    assert WeightChanges().on(weights) == weights


@pytest.mark.req("SC-01")
@pytest.mark.parametrize(("weight", "valid"), [(0, True), ((1 << 32) - 1, True), (-1, False), (1 << 32, False)])
def test_a_weight_is_within_the_bounds_of_slurm(weight: int, valid: bool) -> None:
    for field in ({"age": weight}, {"tres": {"cpu": weight}}):
        if valid:
            assert msgspec.convert(field, WeightChanges)
        else:
            with pytest.raises(msgspec.ValidationError):
                msgspec.convert(field, WeightChanges)


@pytest.mark.req("JT-40")
@pytest.mark.parametrize(("rows", "valid"), [(0, True), (65_535, True), (-1, False), (65_536, False)])
def test_a_terminal_has_a_size_that_the_kernel_takes(rows: int, valid: bool) -> None:
    request = {"job": 1, "rows": rows}
    if valid:
        assert msgspec.convert(request, ShellRequest).rows == rows
    else:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(request, ShellRequest)


@pytest.mark.req("TR-04")
def test_a_node_out_of_service_is_shown_with_its_reason_if_there_is_one() -> None:
    assert a_node(state=NodeState.DRAINED, state_reason="fan broken").why_out == "drained: fan broken"
    assert a_node(state=NodeState.DOWN).why_out == "down"


@pytest.mark.req("UI-10")
def test_an_operation_is_there_unless_it_is_absent_with_its_reason() -> None:
    some = Capabilities({"hold": "not here"})
    assert (some.has("hold"), some.why_not("hold")) == (False, "not here")
    assert (some.has("release"), some.why_not("release")) == (True, "")
    fewer = some.without({"release": "nor this"})
    assert (fewer.why_not("hold"), fewer.why_not("release")) == ("not here", "nor this")
    assert some.without({}) == some
    assert ENGINE.has(Ability.REQUEST_IDS)
    assert not EMBEDDED.has(Ability.REQUEST_IDS)


@pytest.mark.req("SL-01")
def test_a_request_that_only_slurm_serves_names_the_abilities_that_it_needs() -> None:
    assert needs_of(SubmitScript("#!/bin/sh\n")) == (Ability.SCRIPTS, "submit")
    assert needs_of(SendSignal(1, "USR1")) == (Ability.SIGNALS,)
    assert needs_of(UpdateJob(1, {"Nice": "1"})) == (Ability.UPDATE,)
    assert needs_of(MoveToTop(("1",))) == (Ability.TOP,)


@pytest.mark.req("PF-18")
def test_the_only_part_of_a_list_is_the_list() -> None:
    rows = JobRows([[value] for value in msgspec.structs.astuple(queued_row(1))])
    assert JobRows.joined([rows]) is rows
