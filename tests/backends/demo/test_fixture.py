from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cockpit.backends.demo import fixture as fixture_module
from cockpit.backends.demo.fixture import (
    CardGroup,
    Fixture,
    NodeGroup,
    catalogue_of,
    fixture_names,
    grouped,
    nodes_of,
    quota_of,
    read_fixture,
)
from cockpit.backends.demo.simulated_users import actor_of
from cockpit.engine.access import Actor
from cockpit.errors import SpecErrors
from cockpit.launch.checks import submission_errors
from cockpit.model.catalogue import EntryKind
from cockpit.model.events import QuotaApplied
from cockpit.model.node import NodeState
from cockpit.model.spec import Algorithm, JobSpec
from tests.backends.demo.conftest import LAB, Open


@pytest.mark.parametrize("name", fixture_names())
@pytest.mark.req("UI-50")
def test_a_fixture_contains_no_start_and_no_reason(name: str) -> None:
    """Nothing in it says when a job starts, only what it asks for and what becomes of it."""
    fixture = read_fixture(name)
    fields = {field.name for template in fixture.templates for field in msgspec.structs.fields(template)}
    assert not {each for each in fields if "start" in each or "reason" in each or "placement" in each}
    assert {node.state for node in nodes_of(fixture)} <= set(NodeState)
    assert len({node.name for node in nodes_of(fixture)}) == len(nodes_of(fixture))


@pytest.mark.parametrize("name", fixture_names())
def test_every_template_is_used_and_makes_a_job_that_is_accepted(name: str) -> None:
    fixture = read_fixture(name)
    assert {each for user in fixture.users for each in user.templates} == {each.name for each in fixture.templates}
    for template in fixture.templates:
        spec = JobSpec(name=f"{template.name}-1", command=template.command, output="/o", algorithm=Algorithm(path="/a"))
        assert submission_errors(spec) == []
        assert fixture.template_of(spec.name) is template


@pytest.mark.req("JT-49", "UI-50")
def test_the_campus_has_names_for_its_data() -> None:
    kinds = {entry.kind for entry in catalogue_of(read_fixture("campus"))}
    assert kinds >= {EntryKind.DATASET, EntryKind.MODEL, EntryKind.IMAGE, EntryKind.SPEC}
    assert catalogue_of(read_fixture("elastic")) == ()


def test_an_unknown_fixture_is_reported_with_the_known_ones() -> None:
    with pytest.raises(SpecErrors, match=r"There is no demo 'nowhere'\. There are: campus"):
        read_fixture("nowhere")


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        ("name = ", "is no TOML"),
        ('name = "x"', "missing required field"),
        (Path(LAB).read_text().replace('person = "ann"', 'person = "zed"'), "person: zed is none of the users"),
        (Path(LAB).read_text().replace("train = 2,", "tarin = 2,"), "bob has the template tarin"),
        (Path(LAB).read_text().replace("[0.3, 0.2, 0.2,", "[0.3, 0.2,"), "by_hour: has 23 factors"),
    ],
)
def test_an_invalid_fixture_file_is_reported_with_its_error(tmp_path: Path, broken: str, error: str) -> None:
    file = tmp_path / "broken.toml"
    file.write_text(broken)
    with pytest.raises(SpecErrors, match=error):
        read_fixture(str(file))
    with pytest.raises(SpecErrors, match="cannot be read"):
        read_fixture(str(tmp_path / "absent.toml"))


def test_users_have_their_groups_and_no_rights_by_themselves() -> None:
    fixture = read_fixture(LAB)
    ann, bob, eve = (actor_of(fixture, name) for name in ("ann", "bob", "eve"))
    assert isinstance(ann, Actor)
    assert ann.who.gid == bob.who.gid == 3000
    assert eve.who.gid == 3001
    assert not ann.admin
    assert actor_of(fixture, "ann", admin=True).admin


STRUCTS = [
    each for each in vars(fixture_module).values() if isinstance(each, type) and each.__module__ == Fixture.__module__
]


@pytest.mark.parametrize("struct", [each for each in STRUCTS if issubclass(each, msgspec.Struct)])
def test_an_unknown_field_of_a_fixture_is_an_error(struct: type) -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field `nonsense`"):
        msgspec.convert({"nonsense": 1}, struct)


def test_nodes_of_a_group_are_numbered_from_its_first_and_have_its_cards_in_order() -> None:
    cards = (
        CardGroup(model="A100", count=1, memory_gib=80),
        CardGroup(model="L4", count=2, memory_gib=24, mig_slices=2),
    )
    first, second = grouped(
        [NodeGroup(prefix="n", count=2, first=9, cpus=8, memory_gib=2, cards=cards, drained="disk")]
    )
    assert (first.name, second.name) == ("n09", "n10")
    assert (first.cpus, first.memory_mib, first.state, first.state_reason) == (8, 2048, NodeState.DRAINED, "disk")
    assert [(card.index, card.model, card.memory_mib, card.uuid) for card in first.cards] == [
        (0, "A100", 80 * 1024, "GPU-n09-0"),
        (1, "L4", 24 * 1024, "GPU-n09-1"),
        (2, "L4", 24 * 1024, "GPU-n09-2"),
    ]
    assert [card.slice_uuids for card in first.cards] == [
        (),
        ("MIG-n09-1-0", "MIG-n09-1-1"),
        ("MIG-n09-2-0", "MIG-n09-2-1"),
    ]
    (up,) = grouped([NodeGroup(prefix="n", count=1, cpus=8, memory_gib=2)])
    assert (up.name, up.state, up.state_reason, up.cards) == ("n01", NodeState.UP, "", ())


def test_a_job_belongs_to_the_template_before_its_number() -> None:
    fixture = read_fixture(LAB)
    train = fixture.template_of("train-12")
    assert train is not None
    assert train.name == "train"
    assert [fixture.template_of(name) for name in ("train", "trains-1", "mine-1", "")] == [None] * 4


@pytest.mark.req("UI-50")
async def test_a_fixtures_quota_tree_is_the_demos(opened: Open) -> None:
    tree = quota_of(read_fixture("fleet"))
    assert tree is not None
    demo = await opened()
    assert not [each for each in demo._first_events(demo.host.machine) if isinstance(each, QuotaApplied)]
    demo._quota = tree
    assert demo._first_events(demo.host.machine)[-1] == QuotaApplied(tree)
    assert quota_of(read_fixture(LAB)) is None
