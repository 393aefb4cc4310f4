from __future__ import annotations

from typing import ClassVar

import pytest

from cockpit.headless import catalogue_words
from cockpit.headless.arguments import UsageError
from cockpit.headless.node_words import NODES, RESERVATIONS, node_requests, reclaim_requests
from cockpit.headless.typed_line import CHANGES, NOUN, account_request, completions, parse_line
from cockpit.model.accounts import Association, Qos
from cockpit.model.ids import Millis
from cockpit.model.view import AccountRow, AccountsShown
from tests.doubles.catalogue import catalogue_shown


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


@pytest.mark.req("UI-23")
def test_another_nouns_line_is_not_completed() -> None:
    assert completions("nodes drain ", None) == []
    assert catalogue_words.completions("nodes drain ", None) == []


@pytest.mark.req("UI-23")
@pytest.mark.parametrize(
    ("text", "removes"),
    [
        ("add vision", False),
        ("modify vision MaxJobs=4", False),
        ("remove vision", True),
        ("remove-user ann --account nlp", True),
        ("remove-qos high", True),
        ("remove-coordinator nlp ann", True),
    ],
)
def test_only_a_removal_of_accounts_asks_first(text: str, removes: bool) -> None:
    assert account_request(text).removes is removes


@pytest.mark.req("UI-23", "JT-49")
def test_a_change_of_the_catalogue_is_read_from_a_typed_line() -> None:
    place = catalogue_words.Place("/home/ann", "/home/ann")
    shown = catalogue_shown()
    added = catalogue_words.requested_change("add volume scratch2 path=x", shown, place)
    assert added.before is None
    assert added.after is not None
    assert (added.after.name, added.after.path) == ("scratch2", "/home/ann/x")
    assert catalogue_words.requested_change("remove dataset corpus", shown, place).after is None
    with pytest.raises(UsageError, match="did you mean remove"):
        catalogue_words.requested_change("remov dataset corpus", shown, place)


@pytest.mark.req("UI-23")
def test_nodes_are_given_back_and_reclaimed_by_typed_lines() -> None:
    assert node_requests(NODES, "resume n1 n2", Millis(0)).done == "gave back n1, n2"
    assert len(node_requests(NODES, "resume n1 n2", Millis(0)).operations) == 2
    made = node_requests(RESERVATIONS, "create course --nodes n1 --duration 1h", Millis(0))
    assert (len(made.operations), made.done) == (1, "reserved course")
    ended = node_requests(RESERVATIONS, "end course exam", Millis(0))
    assert (len(ended.operations), ended.done) == (2, "ended course, exam")
    drained = node_requests(NODES, "drain n1 --reason fan --within 5m", Millis(0))
    assert drained.done == "drained n1: nothing more starts there, and what runs there has 5 min to go"
    reclaimed = reclaim_requests("n1 n2 --grace 5m")
    assert (len(reclaimed.operations), reclaimed.done) == (2, "reclaimed n1, n2: running jobs have 5 min to end")


@pytest.mark.req("UI-23")
@pytest.mark.parametrize(
    ("text", "message"),
    [("'n1", "a quote is not closed"), ("n1 -c lab", "the cluster that is shown"), ("--help", "reclaim")],
)
def test_an_invalid_line_reclaims_nothing(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        reclaim_requests(text)


@pytest.mark.req("UI-23")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("accounts remove-user a", ["ann"]),
        ("accounts add-user bob --account n", ["nlp"]),
        ("accounts add lab --parent n", ["nlp"]),
        ("accounts modify-user ann --qos h", ["high"]),
        ("accounts modify nlp --default-qos h", ["high"]),
        ("accounts remove-qos h", ["high"]),
        ("accounts remove-coordinator n", ["nlp"]),
        ("accounts remove-coordinator nlp a", ["ann"]),
        ("accounts add-qos slow Max", ["MaxWall="]),
    ],
)
def test_names_of_the_cluster_are_completed_where_they_may_stand(line: str, words: list[str]) -> None:
    nlp, ann = Association(account="nlp"), Association(account="nlp", user="ann")
    rows = tuple(AccountRow(each, 0, 0.0, 0, 0) for each in (nlp, ann))
    shown = AccountsShown(rows, (Qos(name="high"),))
    head, _, _ = line.rpartition(" ")
    found = completions(line, shown)
    assert [f"{head} {word}" for word in words] == [each for each in found if each.split()[-1] in words]
    assert found
