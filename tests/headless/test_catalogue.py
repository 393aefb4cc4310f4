"""`cockpit catalogue` at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.formats.catalogue.file import read_catalogue
from cockpit.headless.catalogue_words import completions
from cockpit.headless.exitcodes import ExitCode
from cockpit.model.catalogue import DatasetEntry, EntryChange, ModelEntry, ProjectEntry, SpecEntry
from cockpit.model.mounts import ModelSource
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import Access, NodeSpec
from tests.doubles.catalogue import ENTRIES, catalogue_shown
from tests.headless.conftest import Desk

CORPUS = ENTRIES[0]


@pytest.fixture
def desk() -> Desk:
    somebody = Desk()
    somebody.backend.catalogued = catalogue_shown()
    return somebody


@pytest.mark.req("JT-49", "UI-40")
def test_the_list_shows_the_value_of_each_name(desk: Desk) -> None:
    title, corpus, coco, *_ = (" ".join(line.split()) for line in desk("catalogue", columns=200).lines)
    assert title == "KIND NAME SOURCE PROJECT OWNER ACCESS YOU MAY STANDS FOR"
    assert corpus == "dataset corpus private nlp alice ro rw path=/data/corpus"
    assert coco == "dataset coco annotation – ro ro versions=v1:/data/coco/1,v2:/data/coco/2"
    assert len(desk("catalogue", "list", "pool").lines) == 3


@pytest.mark.req("JT-49", "UI-40")
def test_programs_get_the_fields(desk: Desk) -> None:
    (spec,) = json.loads(desk("catalogue", "list", "spec", "-o", "json").out)["rows"]
    assert spec["means"] == {"cpus": 8, "memory": "64G", "cards": 4, "card_models": ["A100", "H100"]}
    assert [line.split()[1] for line in desk("catalogue", "--filter", "owner:bob").lines[1:]] == ["vit", "scratch"]


def test_one_entry_is_a_page(desk: Desk) -> None:
    lines = desk("catalogue", "show", "model", "bert").lines
    assert lines[0] == "model bert"
    assert lines[-2:] == ["  path         /models/bert", "  file         catalogue.toml"]
    assert desk("catalogue", "show", "pool", "cpu").lines[-1] == "  file         cluster.toml"


@pytest.mark.req("JT-49", "UI-40")
@pytest.mark.parametrize(
    ("words", "added"),
    [
        (
            ("dataset", "web", "path=/data/web"),
            DatasetEntry(name="web", project="alice", owner="alice", path="/data/web"),
        ),
        (
            ("model", "/llama", "source=favorite", "versions.v1=/m/1", "access=ro"),
            ModelEntry(
                name="llama", owner="alice", access=Access.RO, source=ModelSource.FAVORITE, versions={"v1": "/m/1"}
            ),
        ),
        (
            ("spec", "nlp/half", "cards=0.5", "memory=8G"),
            SpecEntry(name="half", project="nlp", owner="alice", spec=NodeSpec(card_milli=500, memory_mib=8192)),
        ),
        (("project", "speech", "users=ann,bob"), ProjectEntry(name="speech", owner="alice", users=("ann", "bob"))),
    ],
)
def test_an_added_entry_belongs_to_the_user(desk: Desk, words: tuple[str, ...], added: object) -> None:
    done = desk("catalogue", "add", *words)
    assert done.code == ExitCode.OK, done.err
    assert desk.backend.asked == [("change_catalogue", EntryChange(None, added))]


@pytest.mark.req("JT-49", "UI-40")
def test_entries_are_changed_and_removed(desk: Desk) -> None:
    assert desk("catalogue", "set", "dataset", "corpus", "access=rw", "about=").lines == ["changed dataset nlp/corpus"]
    assert desk("catalogue", "remove", "dataset", "nlp/corpus").lines == ["removed dataset nlp/corpus"]
    assert [asked[1] for asked in desk.backend.asked] == [
        EntryChange(CORPUS, replace(CORPUS, access=Access.RW, about="")),
        EntryChange(CORPUS, None),
    ]


def test_an_ambiguous_name_is_refused_with_the_candidates(desk: Desk) -> None:
    desk.backend.catalogued = replace(
        desk.backend.catalogued,
        rows=(
            *desk.backend.catalogued.rows,
            replace(desk.backend.catalogued.rows[0], entry=replace(CORPUS, project="")),
        ),
    )
    done = desk("catalogue", "remove", "dataset", "corpus")
    assert done.code == ExitCode.USAGE
    assert "name one: nlp/corpus, /corpus" in done.err
    assert desk("catalogue", "remove", "dataset", "/corpus").code == ExitCode.OK
    assert "there is no dataset web" in desk("catalogue", "show", "dataset", "web").err
    assert "say what is to change" in desk("catalogue", "set", "dataset", "nlp/corpus").err
    assert "invalid choice" in desk("catalogue", "show", "data", "web").err


@pytest.mark.req("JT-49", "UI-40")
def test_applying_an_export_changes_no_entry(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "catalogue.toml"
    file.write_bytes(desk("catalogue", "export").out)
    assert len(read_catalogue(file.read_text())) == len(ENTRIES)
    assert desk("catalogue", "apply", str(file)).lines == ["applied 10 entries: 0 new or changed"]
    assert desk.backend.asked == []
    file.write_text(file.read_text().replace("texts of the web", "texts") + '\n[[volumes]]\nname = "v"\npath = "v"\n')
    assert desk("catalogue", "apply", str(file)).lines == ["applied 11 entries: 2 new or changed"]
    ((_, changed, new),) = desk.backend.asked
    assert changed == EntryChange(CORPUS, replace(CORPUS, about="texts"))
    assert new.after.path == str(tmp_path / "v")


@pytest.mark.req("TR-05")
def test_a_refusal_is_printed_completely(desk: Desk) -> None:
    desk.backend.refusal = Refusal(RefusalKind.DENIED, "pool fast: only an administrator adds a pool; ask one.\nmore")
    done = desk("catalogue", "add", "pool", "fast")
    assert done.code == ExitCode.REFUSED
    assert done.err == "pool fast: only an administrator adds a pool; ask one.\nmore\n"


def test_help_lists_the_settings_of_every_kind(desk: Desk) -> None:
    text = desk("catalogue", "add", "--help").out.decode()
    assert all(word in text for word in ("versions.v1=PATH", "card_types", "email", "cockpit catalogue add spec /big"))


@pytest.mark.req("JT-49")
@pytest.mark.parametrize(
    ("line", "some", "never"),
    [
        ("catalogue ", "catalogue add", "catalogue dataset"),
        ("catalogue set ", "catalogue set dataset", "catalogue set add"),
        ("catalogue set dataset ", "catalogue set dataset nlp/corpus", "catalogue set dataset path="),
        ("catalogue set dataset corpus ", "catalogue set dataset corpus path=", "catalogue set dataset corpus corpus"),
    ],
)
def test_a_typed_line_about_the_catalogue_is_completed_word_by_word(line: str, some: str, never: str) -> None:
    found = completions(line, catalogue_shown())
    assert some in found
    assert never not in found
    assert completions("catalogue remove dataset corpus ", catalogue_shown()) == []
    assert completions("catalogue set nothing corpus ", catalogue_shown()) == []
    assert completions("jobs ", catalogue_shown()) == []
