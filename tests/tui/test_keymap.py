from __future__ import annotations

from itertools import pairwise

import pytest

from cockpit.errors import SpecErrors
from cockpit.tui.actions.all import ACTIONS, BY_ID, action_named, command_name
from cockpit.tui.keymap import MOVING, key_name, key_of, with_keys


def errors(**chosen: list[str]) -> tuple[str, ...]:
    with pytest.raises(SpecErrors) as raised:
        with_keys(chosen)
    return raised.value.errors


@pytest.mark.req("UI-20")
def test_the_keys_that_ship_are_consistent() -> None:
    assert with_keys({}) == ACTIONS
    assert len(BY_ID) == len(ACTIONS)
    assert not {key for action in ACTIONS for key in action.keys} & MOVING


@pytest.mark.req("UI-20")
def test_a_former_id_of_an_action_is_accepted() -> None:
    (action,) = (each for each in with_keys({"look_inside": ["F9"]}) if each.id == "open_shell")
    assert action.keys == ("f9",)
    (action,) = (each for each in with_keys({"open_shell": ["F8"], "look_inside": ["F9"]}) if each.id == "open_shell")
    assert action.keys == ("f8",)
    assert action_named("look-inside") is action_named("open-shell") is BY_ID["open_shell"]


@pytest.mark.req("UI-20")
def test_no_destructive_action_has_a_default_chord() -> None:
    dangerous = [action for action in ACTIONS if action.danger]
    assert {action.id for action in dangerous} == {
        *("cancel", "requeue", "delete", "end_hold"),
        *("apply_weights", "remove", "remove_entry"),
    }
    assert not [key for action in dangerous for key in action.keys if "ctrl" in key]


@pytest.mark.req("UI-20")
def test_a_user_may_bind_other_keys() -> None:
    keys = {action.id: action.keys for action in with_keys({"cancel": ["D"], "help": ["?", "F12"], "copy": []})}
    assert keys["cancel"] == ("D",)
    assert keys["help"] == ("question_mark", "f12")
    assert keys["copy"] == ()
    assert keys["new"] == ("n",)


def test_a_key_may_have_different_actions_in_two_views() -> None:
    opening = {action.id: action.keys for action in ACTIONS if "enter" in action.keys}
    assert set(opening) == {
        *("open", "open_node", "open_cluster", "node_jobs", "queue_jobs", "unfold_fleet"),
        *("unfold", "held_jobs", "set_entry"),
    }


@pytest.mark.req("UI-20")
@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({"cancle": ["D"]}, "keys.cancle: is no action; did you mean cancel?"),
        ({"cancel": ["Entre"]}, 'keys.cancel: "Entre" is no key; write one as x, X, ?, F5, Enter, Space or Ctrl-x'),
        ({"logs": ["j"]}, 'keys.logs: "j" moves the cursor or marks rows in every list; choose another key'),
        ({"logs": ["Ctrl-D"]}, 'keys.logs: "Ctrl-D" moves the cursor or marks rows in every list; choose another key'),
        (
            {"delete": ["ctrl-k"]},
            'keys.delete: "ctrl-k" is a chord of tmux, vim or the shell, and this destroys; choose another',
        ),
        ({"logs": ["x"]}, 'keys: cancel and logs both want "x"; choose another for one of them'),
    ],
)
def test_an_invalid_key_binding_is_reported(chosen: dict[str, list[str]], sentence: str) -> None:
    assert errors(**chosen) == (sentence,)


def test_all_errors_of_a_keymap_are_reported_together() -> None:
    assert len(errors(nothing=["x"], cancel=["Entre", "j"])) == 3


@pytest.mark.parametrize(
    ("written", "name"),
    [("?", "question_mark"), ("Ctrl-x", "ctrl+x"), ("ctrl+X", "ctrl+x"), ("F5", "f5"), ("Esc", "escape")],
)
def test_keys_are_parsed_in_common_spellings(written: str, name: str) -> None:
    assert key_of(written) == name


@pytest.mark.parametrize("key", sorted({key for action in ACTIONS for key in action.keys}))
def test_a_shown_key_name_can_be_written_in_the_keymap(key: str) -> None:
    assert key_of(key_name(key)) == key


def test_commands_are_named_with_hyphens_underscores_or_blanks() -> None:
    for text in ("extend-hold", "extend_hold", "Extend hold", " extend  hold "):
        assert action_named(text) is BY_ID["extend_hold"]
    assert action_named("extendhold") is None
    assert command_name("extend_hold") == "extend-hold"


def test_the_bottom_row_starts_with_help_and_actions() -> None:
    row = [action.id for action in ACTIONS if action.in_row]
    assert row[:3] == ["help", "new", "edit"]
    assert all(a != b for a, b in pairwise(row))


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.id)
def test_help_fits_eighty_columns(action) -> None:
    assert len(action.help) <= 40
    assert len(action.label) <= 13
