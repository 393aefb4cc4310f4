"""Entries of the catalogue: each error names its field, and an entry without errors has none."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.model.catalogue import (
    AlgorithmEntry,
    AnyEntry,
    DatasetEntry,
    ImageEntry,
    ModelEntry,
    PoolEntry,
    ProjectEntry,
    SpecEntry,
    UserEntry,
    VolumeEntry,
    entry_key,
)
from cockpit.model.mounts import DatasetSource, ModelSource
from cockpit.model.rules.catalogue import entry_errors
from cockpit.model.spec import Access, NodeSpec

OWN = DatasetEntry(name="corpus", project="nlp", owner="ann", path="/data/corpus")
SHARED = DatasetEntry(name="corpus", source=DatasetSource.FAVORITE, versions={"1": "/data/1"})
MODEL = ModelEntry(name="bert", source=ModelSource.PRETRAINED, path="/models/bert")
CODE = AlgorithmEntry(name="train", path="/code")
VOLUME = VolumeEntry(name="scratch", path="/scratch")
IMAGE = ImageEntry(name="torch", image="docker.io/torch:2", card_types=("nvidia",))
SPEC = SpecEntry(name="big", spec=NodeSpec(card_milli=1000, card_models=("A100",)))
POOL = PoolEntry(name="gpu", nodes=("n1",))
PROJECT = ProjectEntry(name="nlp", users=("ann",), groups=("staff",))
USER = UserEntry(name="ann", email="ann@lab.example")


@pytest.mark.req("JT-49")
@pytest.mark.parametrize("entry", [OWN, SHARED, MODEL, CODE, VOLUME, IMAGE, SPEC, POOL, PROJECT, USER])
def test_a_plain_entry_has_no_errors(entry: AnyEntry) -> None:
    assert entry_errors(entry) == []


@pytest.mark.req("JT-49")
@pytest.mark.parametrize(
    ("entry", "within", "beyond", "error"),
    [
        (OWN, {}, {"name": "a/b"}, 'name: "a/b" contains "/"'),
        (OWN, {"project": ""}, {"project": ".."}, 'project: ".." begins with "."'),
        (OWN, {"owner": ""}, {"owner": "a b"}, 'owner: "a b" is no user name'),
        (OWN, {"about": "x" * 1000}, {"about": "x" * 1001}, "about: has 1001 bytes; use at most 1000"),
        (OWN, {"path": "/"}, {"path": ""}, "path: is empty; give one"),
        (OWN, {}, {"versions": {"1": "/d"}}, "versions: are none of a private one's; write path, or another source"),
        (SHARED, {}, {"path": "/d"}, "path: is none of a favorite one's; write versions, or another source"),
        (SHARED, {}, {"versions": {}}, "versions: has 0 entries; give 1 to 1000"),
        (SHARED, {}, {"versions": {"1": "d"}}, 'versions.1: "d" is not absolute; write it from /'),
        (SHARED, {}, {"versions": {"a/b": "/d"}}, 'versions.a/b: "a/b" contains "/"'),
        (
            SHARED,
            {"versions": {str(number): "/d" for number in range(1000)}},
            {"versions": {str(number): "/d" for number in range(1001)}},
            "versions: has 1001 entries; give 1 to 1000",
        ),
        (MODEL, {}, {"path": "m"}, 'path: "m" is not absolute; write it from /'),
        (CODE, {}, {"path": "c"}, 'path: "c" is not absolute; write it from /'),
        (VOLUME, {}, {"path": "v"}, 'path: "v" is not absolute; write it from /'),
        (IMAGE, {"image": "host"}, {"image": "-i"}, 'image: "-i" begins with "-"'),
        (IMAGE, {}, {"scopes": ()}, "scopes: has 0 entries; give 1 to 4096"),
        (IMAGE, {"card_types": ()}, {"card_types": ("a\n",)}, 'card_types: "a\\n" contains characters'),
        (SPEC, {}, {"spec": NodeSpec(name="other")}, "name: cannot refer to another spec; write its fields"),
        (SPEC, {}, {"spec": NodeSpec(cpus=0)}, "cpus: 0 is not between 1 and 65536"),
        (SPEC, {}, {"spec": NodeSpec(card_models=("A100",))}, "card_models: needs cards; add cards: 1 (or more)"),
        (POOL, {"nodes": ()}, {"name": "a b"}, 'name: "a b" is no name here'),
        (POOL, {"nodes": ("n",) * 4096}, {"nodes": ("n",) * 4097}, "nodes: has 4097 entries; give 0 to 4096"),
        (POOL, {}, {"project": "nlp"}, "project: is of no pool; leave it out"),
        (PROJECT, {"users": ("u",) * 4096}, {"users": ("u",) * 4097}, "users: has 4097 entries; give 0 to 4096"),
        (PROJECT, {"users": ()}, {"users": ("a b",)}, 'users: "a b" is no user name'),
        (PROJECT, {"groups": ()}, {"groups": ("",)}, "groups: has 0 characters; give 1 to 253"),
        (USER, {"name": "ann@lab"}, {"name": "a/b"}, 'name: "a/b" is no user name'),
        (USER, {"email": ""}, {"email": "ann"}, 'email: "ann" is no e-mail address; write name@host'),
        (USER, {"email": "a@" + "b" * 252}, {"email": "a@" + "b" * 253}, 'email: "a@bbb'),
        (USER, {}, {"email": "a\u200b@b"}, 'email: "a\\u200b@b" is no e-mail address'),
    ],
)
def test_an_error_of_an_entry_names_its_field(
    entry: AnyEntry, within: dict[str, Any], beyond: dict[str, Any], error: str
) -> None:
    assert entry_errors(replace(entry, **within)) == []
    found = entry_errors(replace(entry, **beyond))
    assert len(found) == 1, found
    assert found[0].startswith(error)


@pytest.mark.req("JT-49")
def test_an_entry_is_found_by_kind_project_and_name() -> None:
    assert OWN.key == entry_key(OWN.kind, "nlp", "corpus") == "dataset/nlp/corpus"
    assert [each.kind for each in (IMAGE, POOL)] == ["image", "pool"]


@pytest.mark.req("JT-49", "JT-02")
def test_the_access_of_an_entry_is_for_its_project_and_members_see_at_least_their_own_project() -> None:
    assert (OWN.home, OWN.to_members) == ("nlp", Access.NONE)
    assert (PROJECT.home, PROJECT.to_members) == ("nlp", Access.RO)
    assert replace(PROJECT, access=Access.RW).to_members is Access.RW
