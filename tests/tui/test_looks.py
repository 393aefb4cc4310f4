"""How the cockpit looks and what it obeys, as a person meets it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.config.settings import Settings
from cockpit.errors import SpecErrors
from cockpit.model.ids import JobId
from cockpit.tui.opening import AppSettings, app_for
from cockpit.tui.screens.pick import Choice, Pick
from cockpit.tui.start_options import StartOptions, parse_start_options
from cockpit.tui.widgets.lines import LineView
from tests.tui.driver import column
from tests.tui.lab import a_lab, session_of, the_lab


@pytest.mark.req("UI-24")
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_ascii_mode_leaves_nothing_else_on_any_screen(size: tuple[int, int]) -> None:
    async with the_lab(ascii_only=True) as lab:
        cockpit = lab.cockpit
        await cockpit.resize(*size).sees("R running", "Q queued")
        for keys, words in ((("2",), "@ full"), (("?",), "Keys in"), (("Esc", "1", "x"), "Stop job")):
            screen = await cockpit.press(*keys).sees(words)
            assert screen.isascii()


@pytest.mark.req("UI-20")
async def test_chosen_keys_act_and_the_bottom_row_and_the_help_follow() -> None:
    async with the_lab(keys={"cancel": ["D"], "mine": ["M"]}) as lab:
        cockpit = lab.cockpit
        await cockpit.sees("D cancel", "M mine").misses("x cancel")
        await cockpit.press("x").misses("Stop job").press("D").sees("Stop job 1 train?").press("Esc")
        await cockpit.press("?").sees("Keys in the list of jobs", "  D ", "  M ")


@pytest.mark.req("UI-21", "UI-22")
async def test_an_invalid_filter_shows_its_error_and_keeps_the_text_and_the_rows() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await (
            cockpit.press("/").type("stat:queued").sees("stat:queued", "jobs have no column stat; did you mean state?")
        )
        await cockpit.press("Enter").sees("stat:queued", "did you mean state?")
        await (
            cockpit.press("Home", "Right", "Right", "Right", "Right")
            .type("e")
            .misses("did you mean")
            .sees("state:queued")
        )
        await cockpit.press("Enter").sees("/ state:queued", "wide").misses("train")


@pytest.mark.req("UI-21")
@pytest.mark.parametrize(("typed", "words"), [("/xnXHq", "/ xnXHq"), (":theme light", "train")])
async def test_text_typed_at_once_goes_into_the_line_that_it_opens(typed: str, words: str) -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.type(typed).press("Enter").sees(words).misses("Stop job", "Delete")
        assert not cockpit.player.over
        assert cockpit.app.state.role_theme().name == ("light" if "light" in typed else "dark")


@pytest.mark.req("UI-23")
async def test_the_cursor_returns_to_its_row_after_a_filter() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("j", "j").stands_on("done")
        await lab.cockpit.press("/").type("name:wide").stands_on("wide").press("Esc").stands_on("done")


async def test_a_list_emptied_by_a_filter_shows_how_to_clear_it() -> None:
    async with the_lab() as lab:
        screen = await lab.cockpit.press("/").type("name:nobody").press("Enter").sees("No job matches.")
        assert "Esc  show them all" in screen
        await lab.cockpit.press("Esc").sees("train")


async def test_the_first_run_says_what_to_do_first() -> None:
    async with a_lab() as lab:
        await lab.cockpit.sees("No jobs yet.", "n  submit one", "?  help")


@pytest.mark.req("UI-25")
async def test_the_theme_changes_in_an_open_cockpit() -> None:
    async with the_lab() as lab:
        for name in ("light", "ansi", "dark"):
            await lab.cockpit.press(":").type(f"theme {name}").press("Enter").sees("train")
            assert lab.cockpit.app.state.role_theme().name == name
        await lab.cockpit.press(":").type("theme drak").press("Enter").sees("no theme drak; did you mean dark?")


@pytest.mark.req("UI-26")
async def test_the_mouse_chooses_rows_views_and_keys() -> None:
    async with the_lab() as lab:
        cockpit, pilot = lab.cockpit, lab.cockpit.player._pilot
        await cockpit.stands_on("train")
        await pilot.click("#jobs", offset=(10, 4))
        await cockpit.stands_on("wide")
        await pilot.click("#views", offset=(13, 0))
        await cockpit.stands_on("n01")
        await pilot.click("#views", offset=(4, 0))
        await cockpit.stands_on("wide")
        screen = await cockpit
        await pilot.click("#keys", offset=(screen.splitlines()[-1].index("cancel"), 0))
        await cockpit.sees("Stop job 5 wide?")


@pytest.mark.req("UI-26")
async def test_the_right_button_copies_a_rows_id_and_a_line_of_a_page() -> None:
    async with the_lab() as lab:
        cockpit, pilot = lab.cockpit, lab.cockpit.player._pilot
        await cockpit.stands_on("train")
        await pilot.click("#jobs", offset=(10, 4), button=3)
        await cockpit.stands_on("wide").sees("copied 5")
        assert cockpit.app.clipboard == "5"
        await cockpit.press("Enter", "]", "]").sees("name: wide")
        await pilot.click("#body", offset=(4, 0), button=3)
        await cockpit.sees("copied the line")
        assert cockpit.app.clipboard == "name: wide"


@pytest.mark.req("UI-04")
async def test_a_nodes_page_shows_and_opens_its_cards_and_jobs() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        screen = await cockpit.press("2").stands_on("n01").press("Enter").sees("node n01", "Cards", "Jobs", "4/4")
        assert len([each for each in screen.splitlines() if "alice  train" in each]) == 4, "each card is train's"
        assert "● running" in screen
        await cockpit.press("Enter").sees('/ node:"n01"', "train").misses("wide").press("Esc").sees("wide")
        await cockpit.press("2", "Enter").sees("alice  train")
        await lab.backend.cancel(JobId(1))
        await (
            cockpit.lives(10)
            .misses("alice  train")
            .sees("No job that you may see", "4 whole cards free")
            .press("Esc")
            .stands_on("n01")
        )


@pytest.mark.req("UI-04", "JT-44")
async def test_nodes_are_judged_against_the_queued_job_under_the_cursor() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("2").sees("◉ full").misses("tight").press("1")
        await lab.cockpit.press("G", "k").stands_on("eval").sees("place ").press("2").sees("tight")


async def test_a_job_id_on_the_command_line_opens_the_job() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press(":").type("5").press("Enter").stands_on("wide")
        await lab.cockpit.press(":").type("99").press("Enter").sees("Job 99 is not on the list.")


async def test_changed_cells_are_highlighted_for_a_moment() -> None:
    async with the_lab() as lab:
        table = lab.cockpit.app.main_screen.tables.jobs
        await lab.cockpit.press("G", "k", "k").stands_on("wide").press("H").sees("held by alice")
        assert {row for row, _ in table._bright} >= {5}
        table._bright = dict.fromkeys(table._bright, 0.0)
        table.tick()
        assert table._bright == {}


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ([], StartOptions({}, None)),
        (["--read-only", "--ascii"], StartOptions({"read_only": True, "ascii": True}, None)),
        (["-c", "lab", "--theme=light"], StartOptions({"cluster": "lab", "theme": "light"}, None)),
        (["demo", "--seed", "7", "--read-only"], StartOptions({"read_only": True}, ["demo", "--seed", "7"])),
        (["jobs"], None),
        (["-c", "lab", "jobs", "--theme", "light"], None),
        (["demo", "--headless", "jobs"], None),
        (["--help"], None),
    ],
)
def test_the_command_line_that_opens_the_cockpit(words: list[str], options: StartOptions | None) -> None:
    assert parse_start_options(words) == options


@pytest.mark.req("UI-28", "UI-24")
async def test_settings_and_environment_apply_to_the_cockpit(tmp_path: Path) -> None:
    async with a_lab() as lab:
        session = session_of(lab.demo)
        app = app_for(
            session, {"LANG": "de_DE.ISO-8859-1"}, AppSettings(settings=Settings(read_only=True, theme="light"))
        )
        assert (app.options.ascii_only, app.state.role_theme().name) == (True, "light")
        assert "read-only" in app.options.read_only
        (tmp_path / "themes").mkdir()
        (tmp_path / "themes/own.toml").write_text('name = "own"\n')
        assert "own" in app_for(session, {}, AppSettings(settings=Settings(), folder=tmp_path)).options.themes
        assert app_for(session, {"NO_COLOR": "1"}).state.role_theme().ansi
        assert app_for(session, {"COCKPIT_ASCII": "1"}).options.ascii_only
        with pytest.raises(SpecErrors, match="did you mean light"):
            app_for(session, {"COCKPIT_THEME": "ligth"})


async def test_the_scroll_bar_of_a_followed_log_is_at_its_end() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.lives(600)
        await cockpit.press("Enter").sees("Spec").press("l").sees("stdout", "step")
        view = cockpit.app.screen.query_one(LineView)
        assert view.vertical_scrollbar.position == view.scroll_offset.y


@pytest.mark.req("UI-26")
async def test_a_click_on_a_title_sorts_by_its_column_and_another_the_other_way_round() -> None:
    async with the_lab(size=(120, 40)) as lab:
        pilot = lab.cockpit.player._pilot
        screen = await lab.cockpit.sees("train")
        titles = next(each for each in screen.splitlines() if "NAME" in each)
        await pilot.click("#titles", offset=(titles.index("NAME"), 0))
        names = column(await lab.cockpit.sees("by name ▲"), "NAME")[:7]
        assert names == sorted(names)
        await pilot.click("#titles", offset=(titles.index("NAME"), 0))
        assert column(await lab.cockpit.sees("by name ▼"), "NAME")[:7] == sorted(names, reverse=True)
        await lab.cockpit.press("2").sees("n01")
        await pilot.click("#titles", offset=(3, 0))
        await lab.cockpit.sees("always in the same order")


@pytest.mark.req("UI-24", "UI-21")
async def test_the_active_filter_is_shown_at_the_bottom_where_the_view_names_fill_the_top() -> None:
    async with the_lab(usual_order=True, size=(100, 30)) as lab:
        screen = await lab.cockpit.press("/").type("state:running user:alice").press("Enter").sees("train")
        assert "8 Clusters" in screen.splitlines()[1]
        assert screen.splitlines()[-1].startswith(" / state:running user:alice   ? help")


@pytest.mark.req("UI-02", "UI-24")
async def test_a_choice_is_cut_only_where_the_screen_is_too_narrow() -> None:
    name, about = "with 4 cards instead of 8 on each of 2 nodes", "starts about 13:40"
    async with the_lab(size=(120, 30)) as lab:
        pick = Pick("What if", [Choice("1", name, about)], lab.cockpit.app.state.role_theme, verb="asks for it")
        lab.cockpit.app.push_screen(pick)
        await lab.cockpit.sees(name, about).resize(60, 24).sees("with 4 cards instead", "starts about…")
