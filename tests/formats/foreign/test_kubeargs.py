"""`$(NAME)` in commands and variables, as Kubernetes expands it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.formats.foreign.kubeargs import arguments_of, command_of, escape, expand_references
from cockpit.launch.command import expand

ENV = {"LR": "0.1", "E": "", "SPACES": "a b"}


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("$(LR)", "0.1"),
        ("--lr=$(LR)/$(E)x", "--lr=0.1/x"),
        ("$$(LR)", "$(LR)"),
        ("$$$(LR)", "$0.1"),
        ("$$$$(LR)", "$$(LR)"),
        ("$(NONE) $( LR)", "$(NONE) $( LR)"),
        ("$LR ${LR} `a` $", "$LR ${LR} `a` $"),
        ("$(LR", "$(LR"),
        ("echo $$", "echo $"),
    ],
)
def test_known_names_are_replaced_and_two_dollars_are_one(text: str, result: str) -> None:
    assert expand_references(text, ENV) == result
    assert expand(command_of(["x", text], ENV), ENV) == ("x", result)


@pytest.mark.req("LA-70")
def test_an_empty_value_stays_an_argument_and_blanks_do_not_split_one() -> None:
    words = ["x", "$(E)", "$(SPACES)", "sh", "-c", 'echo "$(SPACES)" $HOME `date` \\ $i']
    assert expand(command_of(words, ENV), ENV) == ("x", "", "a b", "sh", "-c", 'echo "a b" $HOME `date` \\ $i')


TEXTS = st.text(st.sampled_from("$()a'\"\\ `{}LRE") | st.characters(min_codepoint=32, max_codepoint=300), max_size=20)


@pytest.mark.req("LA-70")
@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_any_arguments_start_the_command_as_kubernetes_would(words: list[str]) -> None:
    asked = ["x", *words]
    assert expand(command_of(asked, ENV), ENV) == tuple(expand_references(word, ENV) for word in asked)


@pytest.mark.req("LA-70")
@given(TEXTS)
def test_escaped_arguments_are_read_back_unchanged(text: str) -> None:
    assert expand_references(escape(text), ENV) == text


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("python t.py --lr=$LR '$(LR)' 'a $b'", ["python", "t.py", "--lr=$(LR)", "$$(LR)", "a $b"]),
        ("bash -c 'echo $i $(date) $$'", ["bash", "-c", "echo $i $$(date) $$$"]),
    ],
)
def test_a_command_becomes_arguments(command: str, words: list[str]) -> None:
    assert arguments_of(command, ENV) == words
    assert expand(command_of(words, ENV), ENV) == expand(command, ENV)


@pytest.mark.req("LA-70")
def test_variables_that_kubernetes_cannot_expand_are_expanded_by_a_shell() -> None:
    assert arguments_of("x $((SLOTS * 2))", ENV)[:2] == ["bash", "-c"]
    assert arguments_of("x $OTHER", ENV)[:2] == ["bash", "-c"]
