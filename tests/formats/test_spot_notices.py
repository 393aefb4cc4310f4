"""The notices of providers, in the forms that their documentation shows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cockpit.formats.spot_notices import NotANotice, Notice, read_file, read_notices
from cockpit.model.ids import Millis
from cockpit.model.outside import Provider

AZURE = """{"DocumentIncarnation": 1, "Events": [{"EventId": "602d9444-d2cd-49c7-8624-8643e7171297",
"EventType": "%s", "ResourceType": "VirtualMachine", "Resources": ["FrontEnd_IN_0"], "EventStatus": "Scheduled",
"NotBefore": "%s", "Description": "", "EventSource": "Platform", "DurationInSeconds": -1}]}"""


def at(*moment: int) -> Millis:
    return Millis(round(datetime(*moment, tzinfo=UTC).timestamp() * 1000))


@pytest.mark.req("EL-02")
@pytest.mark.parametrize(
    ("provider", "text", "notice"),
    [
        ("aws", '{"action": "terminate", "time": "2017-09-18T08:22:00Z"}', Notice(at(2017, 9, 18, 8, 22))),
        ("aws", '{"action": "stop", "time": "2017-09-18T08:22:00Z"}', Notice(at(2017, 9, 18, 8, 22))),
        ("aws", '{"action": "none", "time": "2017-09-18T08:22:00Z"}', None),
        ("gcp", "TRUE", Notice(None)),
        ("gcp", "FALSE\n", None),
        (
            "azure",
            AZURE % ("Preempt", "Mon, 19 Sep 2016 18:29:47 GMT"),
            Notice(at(2016, 9, 19, 18, 29, 47), ("FrontEnd_IN_0",)),
        ),
        ("azure", AZURE % ("Preempt", ""), Notice(None, ("FrontEnd_IN_0",))),
        ("azure", AZURE % ("Reboot", "Mon, 19 Sep 2016 18:29:47 GMT"), None),
        ("azure", '{"DocumentIncarnation": 0, "Events": []}', None),
        ("alibaba", "2015-01-05T18:02:00Z", Notice(at(2015, 1, 5, 18, 2))),
    ],
)
def test_the_documented_answers_of_providers_are_read(provider: str, text: str, notice: Notice | None) -> None:
    assert read_notices(Provider(provider), text) == (() if notice is None else (notice,))


@pytest.mark.req("EL-02")
def test_azures_events_name_their_machines_and_the_earliest_comes_first() -> None:
    event = '{"EventType": "Preempt", "Resources": %s, "NotBefore": "%s"}'
    later = event % ('["vm-1", "vm-2"]', "Mon, 19 Sep 2016 18:29:47 GMT")
    begun = event % ('["vm-3"]', "")
    assert read_notices(Provider.AZURE, f'{{"Events": [{later}, {begun}]}}') == (
        Notice(None, ("vm-3",)),
        Notice(at(2016, 9, 19, 18, 29, 47), ("vm-1", "vm-2")),
    )


@pytest.mark.req("EL-02", "TR-10")
@pytest.mark.parametrize("provider", ["aws", "gcp", "azure", "alibaba"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "<html>",
        "{}",
        "[]",
        '{"action": 3}',
        '{"Events": [{}]}',
        "\x1b[31m",
        "9" * 9999,
        "9999-12-31T23:59:59-14:00",
    ],
)
def test_any_other_text_is_no_notice(provider: str, text: str) -> None:
    with pytest.raises(NotANotice) as error:
        read_notices(Provider(provider), text)
    assert len(str(error.value)) <= 80


@pytest.mark.req("EL-02")
def test_a_watched_file_has_a_line_for_each_node() -> None:
    text = "n07 300  # from the hook\n\n* 2026-11-28T08:00:00Z\nn08 2026-11-28T09:00:00+01:00\n"
    text += "n09 soon\nn10\nn11 99999999999999\n"
    wrong = "line {} is not a node with seconds or a time, such as `n07 300`"
    assert list(read_file(text, Millis(1000))) == [
        Notice(Millis(301_000), ("n07",)),
        Notice(at(2026, 11, 28, 8), ("*",)),
        Notice(at(2026, 11, 28, 8), ("n08",)),
        wrong.format(5),
        wrong.format(6),
        wrong.format(7),
    ]
