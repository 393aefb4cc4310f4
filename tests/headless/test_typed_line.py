from __future__ import annotations

from typing import ClassVar

import pytest

from cockpit.headless.arguments import UsageError
from cockpit.headless.node_words import NODES, node_requests
from cockpit.headless.typed_line import CHANGES, NOUN, completions, parse_line
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
def test_an_unknown_command_is_refused_with_a_suggestion(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        parse_line(NOUN, text, CHANGES)


@pytest.mark.req("UI-23")
def test_nodes_of_another_cluster_are_not_drained_here() -> None:
    with pytest.raises(UsageError, match="the cluster that is shown"):
        node_requests(NODES, "drain n07 --reason fan -c other", Millis(0))


@pytest.mark.req("UI-23", "JT-24")
@pytest.mark.parametrize(
    ("text", "reason", "within"),
    [
        ("drain n1 n2 --reason the fan isn't well", "the fan isn't well", None),
        ("drain n1 n2 --reason=-5 V rail is low --within 5m", "-5 V rail is low", 300),
        ("drain n1 n2 --reason 'new  memory' --within", "new  memory", 300),
        ("drain --reason fan n1 n2", "fan", None),
    ],
)
async def test_a_reason_at_the_end_of_the_line_needs_no_quotes(text: str, reason: str, within: int | None) -> None:
    class Drained:
        asked: ClassVar[list[tuple[object, ...]]] = []

        async def drain_node(self, *arguments: object) -> None:
            self.asked.append(arguments)

    for operation in node_requests(NODES, text, Millis(0)).operations:
        await operation(Drained())  # type: ignore[arg-type]  # all that it needs of a backend
    assert Drained.asked == [(node, reason, within) for node in ("n1", "n2")]


@pytest.mark.req("UI-23")
@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("accounts add-user bob --", ["--account", "--partition", "--shares", "--priority", "--qos", "--default-qos"]),
        ("accounts add vision --", ["--parent", "--shares", "--priority", "--qos", "--default-qos"]),
        ("accounts remove-user bob --", ["--account", "--partition"]),
        ("accounts add-qos high --", ["--priority"]),
        ("accounts remove vision --", []),
    ],
)
def test_the_options_of_each_command_are_completed(line: str, first: list[str]) -> None:
    head, _, _ = line.rpartition(" ")
    found = [each.removeprefix(f"{head} ") for each in completions(line, None)]
    assert {each for each in found if each != "--default"} == set(first)
    assert ("--default" in found) is ("add-user" in line)
