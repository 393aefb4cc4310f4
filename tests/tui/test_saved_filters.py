"""Filters kept under names: saved, applied, listed and deleted without leaving the list."""

from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.config.filters import SavedFilters
from tests.tui.lab import the_lab


@pytest.mark.req("UI-22")
async def test_a_filter_is_saved_applied_and_deleted(tmp_path: Path) -> None:
    path = tmp_path / "filters.toml"
    async with the_lab(filters=SavedFilters(path, "lab")) as lab:
        cockpit = lab.cockpit
        await cockpit.press("W").sees("Nothing is filtered").press("F").sees("No filter of jobs is saved yet")
        await cockpit.press("/").type("user:bob").press("Enter").misses("train")
        await cockpit.press("W").sees("a name for this filter: user:bob").type("bobs").press("Enter")
        await cockpit.sees("saved as @bobs").press("Esc").sees("train")
        assert SavedFilters(path, "lab").of("jobs") == {"bobs": "user:bob"}
        await cockpit.press("/").type("@bobs cards>=2").press("Enter").sees("eval").misses("train", "训练").press("Esc")
        await cockpit.press(":").type("filter @bobs").press("Enter").sees("训练").misses("train").press("Esc")
        await cockpit.press("F").sees("Saved filters of jobs", "user:bob").press("Enter").misses("train").press("Esc")
        await cockpit.press("F", "X").sees("Delete the filter bobs?").press("Enter")  # No is the default
        assert SavedFilters(path, "lab").of("jobs") == {"bobs": "user:bob"}
        await cockpit.press("F", "X").sees("Delete the filter bobs?").press("y").misses("Delete the filter")
        await cockpit.press("F").sees("No filter of jobs is saved yet")
        assert SavedFilters(path, "lab").of("jobs") == {}


@pytest.mark.req("UI-22")
async def test_each_list_has_its_own_filters_in_the_palette_and_the_command_line() -> None:
    filters = SavedFilters()
    filters.save("jobs", "bobs", "user:bob")
    filters.save("nodes", "first", "name:n01")
    async with the_lab(filters=filters) as lab:
        cockpit = lab.cockpit
        await cockpit.press("Ctrl-p").type("filter @bobs").sees("user:bob").press("Enter").misses("train").press("Esc")
        await cockpit.press("2").press("/").type("@bobs").sees("no filter of nodes is saved as @bobs; there are @first")
        await cockpit.press("Esc").press(":").type("filter @f").press("Tab", "Enter").sees("n01").misses("n02")
        await cockpit.press(":").type("save-filter one").press("Enter").sees("saved as @one")
        await cockpit.press(":").type("delete-filter fisrt").press("Enter").sees("did you mean first?")
        await cockpit.press(":").type("delete-filter first").press("Enter").sees("deleted @first: name:n01")
    assert filters.of("nodes") == {"one": "@first"}


@pytest.mark.req("UI-22")
async def test_an_invalid_filter_name_and_an_unreadable_file_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "filters.toml"
    async with the_lab(filters=SavedFilters(path, "lab")) as lab:
        cockpit = lab.cockpit
        await cockpit.press("/").type("user:bob").press("Enter", "W").type("two words").press("Enter").sees("is none")
        await cockpit.press("W").type("loop").press("Enter").press("/").press("Ctrl-u").type("@loop").press("Enter")
        await cockpit.press("W").type("loop").press("Enter").sees("contains itself")
        path.write_text("[lab")
        await cockpit.press("/").press("Ctrl-u").type("@loop").sees("filters.toml: is no TOML").press("Esc")
        await cockpit.press("F").sees("filters.toml: is no TOML").sees("train")
