from __future__ import annotations

import pytest

from cockpit.headless.account_words import CHANGES, NOUN
from cockpit.headless.arguments import UsageError
from cockpit.headless.node_words import NODES, asked_of_nodes
from cockpit.headless.typed_line import typed
from cockpit.model.ids import Millis


@pytest.mark.req("UI-23")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "there are add"),
        ("remov vision", "did you mean remove?"),
        ('remove "vision', "a quote is not closed"),
        ("remove vision -c other", "--cluster: this is about the cluster that is shown"),
    ],
)
def test_a_line_that_is_no_command_is_refused_with_what_would_be_one(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        typed(NOUN, text, CHANGES)


@pytest.mark.req("UI-23")
def test_nodes_of_another_cluster_are_not_drained_here() -> None:
    with pytest.raises(UsageError, match="the cluster that is shown"):
        asked_of_nodes(NODES, "drain n07 --reason fan -c other", Millis(0))
