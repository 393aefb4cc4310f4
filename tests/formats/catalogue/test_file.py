"""catalogue.toml, and the settings of commands."""

from __future__ import annotations

import json
import tomllib

import pytest
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from cockpit.errors import SpecErrors
from cockpit.formats.catalogue.file import (
    HEADINGS,
    TABLES,
    catalogue_schema,
    catalogue_text,
    entry_values,
    read_catalogue,
    with_settings,
)
from cockpit.model.catalogue import ENTRIES as KINDS
from cockpit.model.catalogue import AnyEntry, EntryKind, SpecEntry
from cockpit.model.spec import Access
from tests.doubles.catalogue import ENTRIES

BIG = next(each for each in ENTRIES if isinstance(each, SpecEntry))
BY_KIND = {each.kind: each for each in ENTRIES}


def errors_of(text: str) -> list[str]:
    with pytest.raises(SpecErrors) as wrong:
        read_catalogue(text, "c.toml")
    return list(wrong.value.errors)


@pytest.mark.req("JT-49")
def test_a_written_catalogue_is_read_back_unchanged() -> None:
    text = catalogue_text(ENTRIES)
    assert read_catalogue(text) == [replace(each, filed=False) for each in ENTRIES]
    Draft202012Validator(catalogue_schema()).validate(tomllib.loads(text))


def test_names_that_mean_something_in_toml_are_quoted() -> None:
    odd = replace(ENTRIES[0], name='a"]\n[[x', about="\x1b[31m", path="/a b/é")
    with pytest.raises(SpecErrors):
        read_catalogue(catalogue_text([odd]))
    fine = replace(odd, name='a"]# [[x')
    assert read_catalogue(catalogue_text([fine])) == [fine]


def test_relative_paths_start_at_the_folder_of_the_file() -> None:
    (entry,) = read_catalogue('[[volumes]]\nname = "v"\npath = "~/v"\n', folder="/lab", home="/home/ann")
    assert entry.path == "/home/ann/v"
    (entry,) = read_catalogue('[[datasets]]\nname = "d"\nsource = "favorite"\nversions = { v1 = "d/1" }', folder="/lab")
    assert entry.versions == {"v1": "/lab/d/1"}


@pytest.mark.req("JT-49")
def test_all_errors_of_a_file_are_reported_with_their_positions() -> None:
    assert errors_of('[[dataset]]\nname = "a"\n[users]\n[[specs]]\ncpus = "x"\n[[pools]]\nname = "p"\nnode = "n"') == [
        f"c.toml: dataset: is no part of a catalogue; there are {', '.join(HEADINGS)}",
        "c.toml: users: is a table; write [[users]]",
        "c.toml: specs[0].name: is missing; give the name that job files say",
        'c.toml: specs[0].cpus: is the text "x"; write a whole number from 1 on, without quotes',
        "c.toml: pools[0].node: is no field here; did you mean nodes?",
    ]
    assert errors_of('[[volumes]]\nname = "a/b"\npath = "/v"\n[[users]]\nname = "ann"\nemail = "ann"') == [
        'c.toml: volumes[0].name: "a/b" contains "/", but a name becomes a folder; use "-" or "_" instead',
        'c.toml: users[0].email: "ann" is no e-mail address; write name@host',
    ]
    twice = '[[volumes]]\nname = "a"\npath = "/v"\n' * 2
    assert errors_of(twice) == ["c.toml: volumes[1].name: a is the name of volumes[0] too; give another"]
    assert errors_of("volumes = 3") == ["c.toml: volumes: is the number 3; write [[volumes]]"]
    assert "is no TOML" in errors_of("[[")[0]


def test_every_field_has_a_sentence_for_the_schema() -> None:
    Draft202012Validator.check_schema(catalogue_schema())
    assert TABLES.keys() == KINDS.keys()
    items = catalogue_schema()["properties"].values()
    assert all(each["description"].endswith(".") for item in items for each in item["items"]["properties"].values())
    assert json.loads(json.dumps(catalogue_schema())) == catalogue_schema()


SETTINGS: list[tuple[EntryKind, str, dict[str, object]]] = [
    (EntryKind.DATASET, "access=rw", {"access": Access.RW}),
    (EntryKind.DATASET, "about=", {"about": ""}),
    (EntryKind.DATASET, "path=new", {"path": "/here/new"}),
    (EntryKind.IMAGE, "card_types=+mlu", {"card_types": ("nvidia", "cpu", "mlu")}),
    (EntryKind.IMAGE, "card_types=-cpu", {"card_types": ("nvidia",)}),
    (EntryKind.IMAGE, "image=tar:/x.tar", {"image": "tar:/x.tar"}),
    (EntryKind.PROJECT, "users=carol,dave", {"users": ("carol", "dave")}),
    (EntryKind.PROJECT, "users=-bob,+carol", {"users": ("alice", "carol")}),
    (EntryKind.SPEC, "cpus=2", {"spec": replace(BIG.spec, cpus=2)}),
    (EntryKind.USER, "email=", {"email": ""}),
]


@pytest.mark.req("JT-49")
@pytest.mark.parametrize(("kind", "word", "becomes"), SETTINGS)
def test_settings_change_one_field(kind: EntryKind, word: str, becomes: dict[str, object]) -> None:
    entry = BY_KIND[kind] if kind is not EntryKind.DATASET else ENTRIES[0]
    assert with_settings(kind, entry_values(entry), [word], "/here", "") == replace(entry, **becomes)


def test_versions_are_set_one_by_one() -> None:
    entry: AnyEntry = ENTRIES[1]
    words = ["versions.v3=three", "versions.v1="]
    changed = with_settings(entry.kind, entry_values(entry), words, "/here", "")
    assert changed == replace(entry, versions={"v2": "/data/coco/2", "v3": "/here/three"})


def test_all_invalid_settings_are_reported() -> None:
    with pytest.raises(SpecErrors) as wrong:
        with_settings(EntryKind.SPEC, {"name": "a"}, ["cpus=x", "card=2", "cards"], "/", "")
    assert [error.split(":")[0] for error in wrong.value.errors] == ["cards", "card", "cpus"]


@pytest.mark.parametrize("word", ["access", "=ro", "access=all", "colour=red"])
def test_one_invalid_setting_alone_is_refused(word: str) -> None:
    entry = BY_KIND[EntryKind.VOLUME]
    with pytest.raises(SpecErrors) as wrong:
        with_settings(entry.kind, entry_values(entry), [word], "/", "")
    assert len(wrong.value.errors) == 1


@pytest.mark.parametrize("table", sorted(catalogue_schema()["properties"]))
def test_the_schema_of_the_catalogue_refuses_unknown_fields_and_entries_without_a_name(table: str) -> None:
    entries = catalogue_schema()["properties"][table]["items"]
    assert not Draft202012Validator(entries).is_valid({"name": "a", "colour": "red"})
    assert not Draft202012Validator(entries).is_valid({})
