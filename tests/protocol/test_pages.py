"""Rows survive the wire, as pages and as changes of columns."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.engine.views.rows import job_row
from cockpit.model.asking import WantedLimit
from cockpit.model.cluster import PriorityKind, Weights
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job, JobState
from cockpit.model.jobrow import FIELDS, JobRow
from cockpit.model.reasons import Held, NotEnoughFree, Resource
from cockpit.model.view import Priorities, PriorityRow
from cockpit.protocol import messages
from cockpit.protocol.frames import MAX_FRAME, Answer, RequestFrame
from cockpit.protocol.messages import (
    AccountingArgs,
    CancelArgs,
    EventsArgs,
    JobArgs,
    PrioritiesArgs,
    SetPriorityArgs,
    SetTimeLimitArgs,
    StopArgs,
    WaitArgs,
)
from cockpit.protocol.pages import (
    PIECE_BYTES,
    JobsArgs,
    JobsPage,
    SubscribeArgs,
    Update,
    changed_columns,
    encoded_pages,
    fits,
    page_of,
    pieces,
    rows_of,
    start_over,
    whole_list,
    with_changes,
)
from tests.builders import ANN, NOON, a_spec

REASONS = [None, Held("ann", NOON), NotEnoughFree(Resource.CARDS, 4, ("A100",), 1, 0, ())]


def a_row(job: int, reason: int = 0, name: str = "job") -> JobRow:
    spec = a_spec(name, card_milli=500, card_models=("A100", "H100"))
    record = Job(id=JobId(job), spec=spec, submitter=ANN, project="p", submitted_at=NOON, state_since=NOON)
    return job_row(record, REASONS[reason])


rows = st.lists(st.builds(a_row, st.integers(1, 10**6), st.integers(0, 2), st.text(max_size=20)), max_size=30)


@pytest.mark.req("PF-10")
@given(rows, st.booleans())
@settings(max_examples=50)
def test_a_page_is_decoded_to_its_rows(sent: list[JobRow], brief: bool) -> None:
    encoded = msgspec.msgpack.encode(page_of(sent, {"queued": len(sent)}, brief=brief))
    page = msgspec.msgpack.decode(encoded, type=Update)
    assert isinstance(page, JobsPage)
    assert list(rows_of(page)) == sent
    assert page.counts == {"queued": len(sent)}


def test_a_reason_that_thousands_share_is_sent_once() -> None:
    assert len(page_of([a_row(job, 2) for job in range(1000)]).reasons) == 1


def test_values_common_to_all_rows_are_sent_once_to_brief_clients() -> None:
    sent = [a_row(job, name=f"job-{job}") for job in range(1000)]
    full, brief = (msgspec.structs.astuple(page_of(sent, brief=each).columns) for each in (False, True))
    assert {len(column) for column in full} == {1000}
    assert [field for field, column in zip(FIELDS, brief, strict=True) if len(column) == 1000] == ["id", "name"]


def test_only_changed_columns_are_sent() -> None:
    before = a_row(1, 1)
    after = replace(before, state=JobState.RUNNING, reason=None, started_at=Millis(NOON + 1), version=9)
    columns = changed_columns(before, after)
    assert len(columns) == 4
    decoded = msgspec.msgpack.decode(msgspec.msgpack.encode(columns), type=dict[int, object])
    assert with_changes(before, decoded) == after


def test_columns_missing_in_an_older_engine_have_their_defaults() -> None:
    page = page_of([a_row(1), a_row(2)])
    columns = list(msgspec.structs.astuple(page.columns))[:-2]
    older = msgspec.msgpack.encode({"type": "page", "columns": columns, "reasons": page.reasons})
    assert list(rows_of(msgspec.msgpack.decode(older, type=JobsPage))) == [a_row(1), a_row(2)]


def test_a_client_that_missed_changes_is_told_to_subscribe_again() -> None:
    told = msgspec.msgpack.decode(msgspec.msgpack.encode(start_over(7)), type=Update)
    assert (told.version, told.resync, list(rows_of(told.new))) == (7, True, [])


@pytest.mark.req("PF-10")
@pytest.mark.parametrize("brief", [False, True])
def test_rows_that_one_frame_cannot_hold_are_divided_and_others_are_one_page(brief: bool) -> None:
    few = [a_row(1), a_row(2)]
    assert len(list(encoded_pages(few, brief=brief))) == 1
    assert list(encoded_pages([], {"queued": 3}, brief=brief)) != []
    long = [a_row(job, name=str(job) * (MAX_FRAME // 5)) for job in range(1, 9)]
    pages = list(encoded_pages(long, {"queued": 8}, brief=brief))
    assert len(pages) > 1
    assert all(fits(page) and memoryview(page).nbytes < MAX_FRAME for page in pages)
    read = [msgspec.msgpack.decode(page, type=JobsPage) for page in pages]
    assert [row.id for page in read for row in rows_of(page)] == list(range(1, 9))
    assert [page.counts for page in read] == [{"queued": 8}] + [{}] * (len(pages) - 1)


@pytest.mark.req("PF-10")
def test_two_rows_of_which_a_frame_holds_one_are_two_pages() -> None:
    two = [a_row(job, name=str(job) * (MAX_FRAME // 2)) for job in (1, 2)]
    pages = [msgspec.msgpack.decode(page, type=JobsPage) for page in encoded_pages(two, brief=True)]
    assert [[row.id for row in rows_of(page)] for page in pages] == [[1], [2]]


@pytest.mark.req("PF-10")
def test_a_client_that_does_not_request_brief_pages_gets_full_ones() -> None:
    nothing = msgspec.msgpack.encode({})
    assert not msgspec.msgpack.decode(nothing, type=SubscribeArgs).brief
    assert not msgspec.msgpack.decode(nothing, type=JobsArgs).brief
    assert not msgspec.msgpack.decode(nothing, type=JobsArgs).ended


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        *(
            (each, {})
            for each in (JobsArgs(), SubscribeArgs(), StopArgs(), AccountingArgs(), EventsArgs(), PrioritiesArgs())
        ),
        *((each, {"job": 4}) for each in (JobArgs(4), CancelArgs(4), WaitArgs(4))),
        (SetPriorityArgs(4, 70), {"job": 4, "priority": 70}),
        (SetTimeLimitArgs(4, WantedLimit(60)), {"job": 4, "limit": {"seconds": 60, "beside": False}}),
    ],
)
def test_unset_arguments_are_not_sent(arguments: msgspec.Struct, sent: dict[str, object]) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(arguments)) == sent


def test_a_request_and_an_answer_without_more_are_their_numbers_and_the_operation() -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(RequestFrame(7, "jobs"))) == {"id": 7, "op": "jobs"}
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(Answer(7))) == {"id": 7}


@pytest.mark.req("PF-10")
def test_records_are_sent_in_as_few_pieces_as_their_size_allows() -> None:
    assert list(pieces([])) == [[]]
    few = [a_row(1), a_row(2), a_row(3)]
    assert [len(piece) for piece in pieces(few)] == [3]
    third = [a_row(job, name="x" * (PIECE_BYTES // 3)) for job in range(7)]
    sent = list(pieces(third))
    assert [len(piece) for piece in sent] == [2, 2, 2, 1]
    assert [msgspec.msgpack.decode(each, type=JobRow).id for piece in sent for each in piece] == list(range(7))
    assert [len(piece) for piece in pieces([a_row(1, name="x" * (2 * PIECE_BYTES)), a_row(2)])] == [1, 1]
    rest = PIECE_BYTES - len(msgspec.msgpack.encode(a_row(1, name="x" * 70_000))) + 70_000
    first = a_row(1, name="x" * (rest - len(msgspec.msgpack.encode(a_row(2)))))
    assert [len(piece) for piece in pieces([first, a_row(2)])] == [2], "together as long as a piece may be"
    assert [len(piece) for piece in pieces([first, a_row(2, name="job1")])] == [1, 1]
    assert [len(piece) for piece in pieces([first, a_row(2), first, a_row(2)])] == [2, 2], "each piece is as long"


@pytest.mark.req("PF-10")
def test_a_client_that_does_not_request_empty_changes_gets_none() -> None:
    assert not msgspec.msgpack.decode(msgspec.msgpack.encode({}), type=SubscribeArgs).anything


@pytest.mark.req("PF-10")
def test_a_stop_without_more_words_ends_neither_jobs_nor_holds() -> None:
    asked = msgspec.msgpack.decode(msgspec.msgpack.encode({}), type=StopArgs)
    assert (asked.jobs, asked.holds) == (False, False)


@pytest.mark.req("PF-10")
def test_a_value_as_long_as_a_frame_does_not_fit_since_the_answer_around_it_needs_room() -> None:
    assert fits(msgspec.Raw(bytes(MAX_FRAME - 1024)))
    assert not fits(msgspec.Raw(bytes(MAX_FRAME)))


@pytest.mark.req("PF-18")
def test_the_pieces_of_a_list_of_priorities_are_one_list_in_the_same_order() -> None:
    rows = [PriorityRow(JobId(job), "job", "ann", "lab", "normal", "", job, None) for job in (1, 2, 3)]
    whole = Priorities(PriorityKind.MULTIFACTOR, Weights(age=5), tuple(rows))
    assert whole_list([replace(whole, rows=(rows[0],)), replace(whole, rows=tuple(rows[1:]))]) == whole
    assert whole_list([whole]) == whole


DEFAULTS = {
    messages.EventsArgs: {"job": None, "after": -1, "limit": 1000, "rank": None},
    messages.AccountingArgs: {"since": None, "until": None, "user": None},
    messages.StopArgs: {"jobs": False, "holds": False},
    JobsArgs: {"ended": False, "brief": False},
    SubscribeArgs: {"first": 100, "brief": False, "anything": False},
}


@pytest.mark.req("PF-10")
@pytest.mark.parametrize("arguments", DEFAULTS)
def test_a_request_without_arguments_keeps_its_meaning(arguments: type[msgspec.Struct]) -> None:
    """Clients leave out what is the default, and may be older than the engine."""
    sent = msgspec.msgpack.encode({})
    assert msgspec.structs.asdict(msgspec.msgpack.decode(sent, type=arguments)) == DEFAULTS[arguments]


@pytest.mark.req("PF-10")
def test_a_page_is_an_array_of_columns_in_the_order_of_the_rows_fields() -> None:
    encoded = msgspec.msgpack.decode(msgspec.msgpack.encode(page_of([a_row(7, 1, name="train")])))
    columns = encoded["columns"]
    assert len(columns) == len(FIELDS)
    assert (columns[FIELDS.index("id")], columns[FIELDS.index("name")]) == ([7], ["train"])
    assert columns[FIELDS.index("reason")] == [0]


@pytest.mark.req("PF-10")
def test_a_column_with_values_of_another_type_is_refused() -> None:
    page = msgspec.msgpack.decode(msgspec.msgpack.encode(page_of([a_row(7, 1)])))
    page["columns"][FIELDS.index("name")] = [7]
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode(page), type=JobsPage)


@pytest.mark.req("PF-10")
def test_a_piece_is_a_small_part_of_the_largest_frame() -> None:
    """Other requests of a connection are answered between two pieces."""
    small = [msgspec.Raw(msgspec.msgpack.encode("x" * 65_000)) for _ in range(40)]
    assert [len(piece) for piece in pieces(small)] == [16, 16, 8]
