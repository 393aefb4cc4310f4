"""Commands under an id of the user's: a repeat that has become impossible, and what became of a request."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.errors import RequestRefused
from cockpit.headless.exitcodes import ExitCode
from cockpit.model.accountchange import AccountChange
from cockpit.model.capabilities import Capabilities
from cockpit.model.ids import JobId, Millis
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.requests import RequestIds, RequestOutcome
from tests.doubles.memory_backend import MemoryBackend
from tests.doubles.samples import HOUR, NOW, small_cluster
from tests.headless.conftest import Desk

ACCEPTED = RequestOutcome(known=True, op="delete", at=Millis(NOW - HOUR))
REFUSED = Refusal(RefusalKind.DENIED, "nlp is not yours")


class Remembering(MemoryBackend):
    """A cluster that remembers requests: the outcomes by their id, and the words that the client sent last."""

    capabilities = Capabilities()

    def __init__(self) -> None:
        super().__init__()
        self.__dict__ |= vars(small_cluster())
        self.outcomes: dict[str, RequestOutcome] = {}
        self.ids: RequestIds | None = None
        self.silent: tuple[tuple[str, str], ...] = ()

    def identify(self, ids: RequestIds) -> None:
        self.ids = ids

    @property
    def silent_members(self) -> tuple[tuple[str, str], ...]:
        return self.silent

    async def request(self, request: str) -> RequestOutcome:
        return self.outcomes.get(request, RequestOutcome(known=False))

    async def change_accounts(self, change: AccountChange) -> None:
        assert self.ids is not None
        self.ids.next()
        await super().change_accounts(change)


@pytest.fixture
def cluster(desk: Desk) -> Remembering:
    desk.backend = Remembering()
    return desk.backend


def accepted_before(desk: Desk, cluster: Remembering, *argv: str, **changes: object) -> None:
    """The very command was accepted an hour ago, under its id."""
    desk(*argv)
    assert cluster.ids is not None
    cluster.outcomes["mine"] = replace(ACCEPTED, words=cluster.ids.words(), **changes)


GONE = ("cancel", "--yes", "--request-id", "mine", "gone-by-now")


@pytest.mark.req("TR-01")
def test_a_repeat_that_its_first_run_made_impossible_gives_the_first_answer(desk: Desk, cluster: Remembering) -> None:
    assert desk(*GONE).code not in {None, ExitCode.OK}
    accepted_before(desk, cluster, *GONE)
    done = desk(*GONE)
    assert (done.code, done.out, done.err) == (ExitCode.OK, b"cancelled gone-by-now\n", "")


@pytest.mark.req("TR-01")
def test_a_repeated_clone_of_a_job_that_is_gone_names_the_job_that_it_made(desk: Desk, cluster: Remembering) -> None:
    clone = ("clone", "gone-by-now", "--request-id", "mine")
    accepted_before(desk, cluster, *clone, op="submit", jobs=(JobId(4720),))
    cluster.asked.clear()
    done = desk(*clone)
    (name,) = (row.name for row in cluster.job_rows if row.id == 4720)
    assert done.lines == [f"submitted {name} as 4720"]
    assert done.err == "Request mine (submit) was accepted at 11:00.\n"
    assert "submit" not in [each[0] for each in cluster.asked]


@pytest.mark.req("TR-01")
def test_a_repeated_clone_submits_under_the_name_that_it_chose_before(desk: Desk, cluster: Remembering) -> None:
    cluster.job_rows = [replace(row, ended_at=NOW) if row.id == 4720 else row for row in cluster.job_rows]
    cluster.outcomes["mine"] = replace(ACCEPTED, op="submit", jobs=(JobId(4720),))
    desk("clone", "4715", "--request-id", "mine")
    ((_, spec),) = (each for each in cluster.asked if each[0] == "submit")
    assert [spec.name] == [row.name for row in cluster.job_rows if row.id == 4720]


@pytest.mark.req("TR-01")
def test_another_command_under_the_same_id_is_not_taken_for_a_repeat(desk: Desk, cluster: Remembering) -> None:
    accepted_before(desk, cluster, *GONE)
    other = desk("cancel", "--yes", "--request-id", "mine", "never-there")
    assert other.code not in {None, ExitCode.OK}
    assert "accepted" not in other.err


@pytest.mark.req("TR-01")
def test_a_refused_first_run_is_no_acceptance(desk: Desk, cluster: Remembering) -> None:
    accepted_before(desk, cluster, *GONE, refusal=REFUSED)
    assert desk(*GONE).code not in {None, ExitCode.OK}


@pytest.mark.req("TR-01")
def test_without_an_id_of_the_user_a_failure_stays_a_failure(desk: Desk, cluster: Remembering) -> None:
    accepted_before(desk, cluster, *GONE)
    assert desk("cancel", "--yes", "gone-by-now").code not in {None, ExitCode.OK}


@pytest.mark.req("TR-01")
def test_the_jobs_of_a_request_are_listed_with_what_became_of_the_others(desk: Desk, cluster: Remembering) -> None:
    cluster.outcomes["mine"] = replace(ACCEPTED, op="submit_jobs", jobs=(JobId(4711), JobId(4720), JobId(1)))
    done = desk("jobs", "--request", "mine")
    assert done.code == ExitCode.OK
    assert [line.split()[0] for line in done.lines[1:]] == ["4711", "4720"]
    assert done.err == "1 job of request mine are no longer listed.\n"
    cluster.outcomes["mine"] = replace(ACCEPTED, op="submit_jobs", jobs=(JobId(4711),))
    assert desk("jobs", "--request", "mine").err == ""


@pytest.mark.req("TR-01")
def test_a_request_without_jobs_says_how_it_was_answered(desk: Desk, cluster: Remembering) -> None:
    unknown = desk("jobs", "--request", "mine")
    assert (unknown.code, unknown.out) == (ExitCode.NOT_FOUND, b"")
    assert "has been accepted so far" in unknown.err
    cluster.outcomes["mine"] = ACCEPTED
    accepted = desk("jobs", "--request", "mine")
    assert (accepted.code, accepted.err) == (ExitCode.OK, "Request mine (delete) was accepted at 11:00.\n")
    cluster.outcomes["mine"] = replace(ACCEPTED, refusal=REFUSED)
    refused = desk("jobs", "--request", "mine")
    assert refused.code == ExitCode.REFUSED
    assert refused.err == "Request mine (delete) was refused at 11:00: nlp is not yours\n"
    assert desk("jobs", "--request", "mine", "--watch").code == ExitCode.USAGE


@pytest.mark.req("TR-04")
@pytest.mark.parametrize("words", [("jobs",), ("nodes",), ("holds",), ("starts",), ("accounting",)])
def test_a_list_names_the_clusters_of_a_merged_view_that_did_not_answer(
    desk: Desk, cluster: Remembering, words: tuple[str, ...]
) -> None:
    assert "does not answer" not in desk(*words).err
    cluster.silent = (("lab\x07", "no route to host"),)
    assert "lab\\x07 does not answer, so what it has is not here: no route to host\n" in desk(*words).err


@pytest.mark.req("TR-01")
@pytest.mark.parametrize(
    ("words", "op"),
    [
        (("holds", "extend", "bert-eval", "--by", "2h"), "extend_hold"),
        (("unblock", "bert-eval", "n07"), "unblock"),
        (("edit", "bert-eval", "-"), "edit"),
    ],
)
def test_a_repeat_changes_no_other_job_that_has_the_name_by_now(
    desk: Desk, cluster: Remembering, words: tuple[str, ...], op: str
) -> None:
    words = (*words, "--request-id", "mine")
    accepted_before(desk, cluster, *words, op=op)
    cluster.asked.clear()
    done = desk(*words)
    assert (done.code, done.err) == (ExitCode.OK, f"Request mine ({op.replace('_', ' ')}) was accepted at 11:00.\n")
    assert [each for each in cluster.asked if each[0] == op] == []


@pytest.mark.req("TR-01")
def test_each_change_of_a_repeat_has_the_id_that_it_had_before(desk: Desk, cluster: Remembering) -> None:
    """The first job is gone by now, and its cancellation was accepted; the second one's was not sent."""
    both = ("cancel", "--yes", "--request-id", "mine", "gone-by-now", "4711")
    sent: list[str] = []

    async def cancel(job: JobId, *_: object, **__: object) -> None:
        assert cluster.ids is not None
        sent.append(cluster.ids.next())

    cluster.cancel = cancel
    desk(*both)
    assert cluster.ids is not None
    cluster.outcomes["mine"] = replace(ACCEPTED, words=cluster.ids.words())
    sent.clear()
    done = desk(*both)
    assert (done.code, done.lines) == (ExitCode.OK, ["cancelled gone-by-now", "cancelled 4711"])
    assert sent == ["mine#2"]


@pytest.mark.req("TR-01")
def test_only_an_id_of_the_user_needs_a_cluster_that_remembers_it(desk: Desk, cluster: Remembering) -> None:
    desk("hold", "4711", "--request-id", "mine")
    assert cluster.ids is not None
    assert (cluster.ids.required, cluster.ids.numbered(1), cluster.ids.numbered(2)) == (True, "mine", "mine#2")
    desk("hold", "4711")
    first = cluster.ids.numbered(1)
    assert (cluster.ids.required, len(first)) == (False, 32)
    desk("hold", "4711")
    assert cluster.ids.numbered(1) != first


@pytest.mark.req("TR-01")
def test_the_request_id_is_no_part_of_the_command_however_it_is_written(desk: Desk, cluster: Remembering) -> None:
    said = []
    for words in (
        ("hold", "4711", "--request-id", "mine"),
        ("hold", "--request-id=yours", "4711"),
        ("hold", "4711"),
        ("hold", "4720"),
    ):
        desk(*words)
        assert cluster.ids is not None
        said.append(cluster.ids.words())
    assert said[0] == said[1] == said[2] != said[3]


@pytest.mark.req("TR-01")
def test_a_change_that_its_own_first_run_made_impossible_is_reported_as_done(
    desk: Desk, cluster: Remembering, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def delete(*_: object, **__: object) -> None:
        raise RequestRefused(Refusal(RefusalKind.NOT_FOUND, "there is no job"))

    monkeypatch.setattr(cluster, "delete", delete)
    words = ("delete", "--yes", "4715", "4711", "--request-id", "mine")
    refused = desk(*words)
    assert (refused.code, refused.out, refused.err) == (ExitCode.NOT_FOUND, b"", "there is no job\n" * 2)
    assert cluster.ids is not None
    for request in ("mine", "mine#2"):
        cluster.outcomes[request] = replace(ACCEPTED, words=cluster.ids.words())
    done = desk(*words)
    assert (done.code, done.lines, done.err) == (ExitCode.OK, ["deleted 4715", "deleted 4711"], "")
    cluster.outcomes["mine#2"] = replace(ACCEPTED, words=cluster.ids.words(), refusal=REFUSED)
    assert desk(*words).lines == ["deleted 4715"]


@pytest.mark.req("TR-01")
@pytest.mark.parametrize(
    ("request_id", "code"), [("mine", ExitCode.OK), ("mine#2", ExitCode.OK), ("no id", ExitCode.USAGE)]
)
def test_a_request_is_looked_up_by_its_id_or_a_change_of_it(
    desk: Desk, cluster: Remembering, request_id: str, code: ExitCode
) -> None:
    cluster.outcomes = {"mine": ACCEPTED, "mine#2": ACCEPTED}
    assert desk("jobs", "--request", request_id).code == code


@pytest.mark.req("TR-01")
def test_the_first_of_several_changes_says_nothing_about_the_others(desk: Desk, cluster: Remembering) -> None:
    accepted_before(desk, cluster, "cancel", "--yes", "--request-id", "mine", "gone-by-now", "never-there")
    done = desk("cancel", "--yes", "--request-id", "mine", "gone-by-now", "never-there")
    assert done.code == ExitCode.NOT_FOUND
    assert "No job is named never-there" in done.err
    assert "accepted" not in done.err
