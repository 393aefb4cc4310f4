"""What names in job files stand for: a person looks at the catalogue and changes it."""

from __future__ import annotations

import pytest

from cockpit.model.catalogue import DatasetEntry, EntryChange, VolumeEntry
from cockpit.model.spec import Access
from tests.tui.lab import Lab, the_lab

CORPUS = DatasetEntry(name="corpus", project="alice", owner="alice", about="texts of the web", path="/data/corpus")
SCRATCH = VolumeEntry(name="scratch", owner="bob", access=Access.RO, path="/scratch")


async def with_names(lab: Lab) -> None:
    for entry in (CORPUS, SCRATCH):
        await lab.backend.change_catalogue([EntryChange(None, entry)])


async def there(lab: Lab) -> list[object]:
    return [row.entry for row in (await lab.backend.catalogue()).rows if not row.of_rules]


@pytest.mark.req("JT-49")
async def test_each_entry_shows_its_value_and_its_access() -> None:
    async with the_lab() as lab:
        await with_names(lab)
        cockpit = lab.cockpit.press("7").sees("STANDS FOR", "path=/data/corpus", "all users").stands_on("corpus")
        await cockpit.sees("dataset corpus · texts of the web", "alice · alice's · others do not see it")
        await cockpit.press("/").type("owner:bob").press("Enter").sees("scratch").misses("corpus")


@pytest.mark.req("JT-49", "UI-23")
async def test_an_entry_is_added_changed_and_removed() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit.press("7").sees("gpu", "in cluster.toml")
        await (
            cockpit.press(":")
            .type("catalogue add dataset corpus path=/data/corpus access=ro")
            .press("Enter")
            .sees("added dataset")
        )
        await (
            cockpit.press("g")
            .stands_on("corpus")
            .press("e")
            .sees("catalogue set dataset alice/corpus")
            .type("access=rw")
        )
        await cockpit.press("Enter").sees("changed dataset alice/corpus", "others may change it")
        assert await there(lab) == [DatasetEntry(**FIELDS, access=Access.RW)]
        await cockpit.press("X").sees("Remove the dataset alice/corpus from the catalogue?").press("n")
        assert len(await there(lab)) == 1
        await cockpit.press("X").sees("from the catalogue?").press("y").sees("removed dataset alice/corpus")
        assert await there(lab) == []


FIELDS = {"name": "corpus", "project": "alice", "owner": "alice", "path": "/data/corpus"}


@pytest.mark.req("JT-49")
async def test_an_invalid_entry_is_reported_and_changes_nothing() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit.press("7").sees("in cluster.toml")
        await cockpit.press(":").type("catalogue add dataset a source=x").press("Enter").sees("source: is the text")
        await cockpit.press(":").type("catalogue ad dataset a").press("Enter").sees("did you mean add?")
        await cockpit.press(":").type("catalogue remove dataset b").press("Enter").sees("there is no dataset b")
        assert await there(lab) == []


@pytest.mark.req("JT-49", "UI-21")
async def test_an_entry_of_a_file_cannot_be_changed_and_shows_the_reason() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit.press("7").sees("in cluster.toml").press("X")
        await cockpit.sees("It is defined in cluster.toml; change it there.")


@pytest.mark.req("JT-49", "UI-23")
async def test_an_empty_view_says_what_to_do_first() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("7").sees("gpu").press("/").type("name:nothing").press("Enter").sees("Nothing matches.")


@pytest.mark.req("JT-49")
async def test_tab_completes_kinds_names_and_settings() -> None:
    async with the_lab() as lab:
        await with_names(lab)
        cockpit = lab.cockpit.press("7").sees("corpus").press(":").type("catalogue s").press("Tab")
        await (
            cockpit.sees("catalogue set").type(" vol").press("Tab").sees("catalogue set volume").type(" ").press("Tab")
        )
        await cockpit.sees("catalogue set volume /scratch").type(" ab").press("Tab").sees("/scratch about=")


@pytest.mark.req("UI-24")
async def test_the_catalogue_view_fits_a_small_screen() -> None:
    async with the_lab(size=(80, 24)) as lab:
        await with_names(lab)
        await lab.cockpit.press("7").sees("7 Catalogue", "STANDS FOR", "path=/data/", "dataset corpus", "e changes it")
