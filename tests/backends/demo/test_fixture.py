from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cockpit.backends.demo.fixture import catalogue_of, fixture_names, nodes_of, read_fixture
from cockpit.backends.demo.simulated_users import actor_of
from cockpit.engine.access import Actor
from cockpit.errors import SpecErrors
from cockpit.launch.checks import submission_errors
from cockpit.model.catalogue import EntryKind
from cockpit.model.node import NodeState
from cockpit.model.spec import Algorithm, JobSpec
from tests.backends.demo.conftest import LAB


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
