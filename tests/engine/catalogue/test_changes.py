"""Who may see, add, change and remove what in the catalogue, and what of a request is wrong."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from cockpit.engine.access import Actor
from cockpit.engine.catalogue.changes import change_catalogue, take_over_catalogue
from cockpit.engine.submission.submit import submit
from cockpit.engine.views.catalogue import catalogue_shown, shown_change
from cockpit.model import events
from cockpit.model.attempt import EndCause
from cockpit.model.catalogue import (
    ENTRIES,
    AlgorithmEntry,
    AnyEntry,
    DatasetEntry,
    EntryChange,
    ImageEntry,
    ModelEntry,
    PoolEntry,
    ProjectEntry,
    SpecEntry,
    UserEntry,
    VolumeEntry,
)
from cockpit.model.cluster import Cluster, Project
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.mounts import DatasetSource
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import Access, NodeSpec
from tests.builders import ANN, BOB, a_node, a_spec
from tests.engine.driver import EngineDriver
from tests.hostile import HOSTILE

RULES = Cluster(projects=(Project(name="nlp", users=("ann", "bob")), Project(name="vision", users=("ann",))))
OWNER, MEMBER = Actor(ANN, False, frozenset({"nlp", "vision"})), Actor(BOB, False, frozenset({"nlp"}))
STRANGER, ADMIN = Actor(replace(BOB, name="eve"), admin=False), Actor(replace(BOB, name="root"), admin=True)
CORPUS = DatasetEntry(name="corpus", project="nlp", owner="ann", access=Access.RO, path="/data/corpus")


def an_engine(*entries: AnyEntry) -> EngineDriver:
    engine = EngineDriver(a_node("n1", pool="fast"), a_node("n2"))
    engine.tell(events.ClusterConfigured(RULES), events.CatalogueChanged(entries))
    return engine


def changed(engine: EngineDriver, actor: Actor, *changes: tuple[AnyEntry | None, AnyEntry | None]) -> Refusal | None:
    wanted = [EntryChange(before, after) for before, after in changes]
    return engine.act(change_catalogue(engine.machine.state, actor, wanted))


def seen(engine: EngineDriver, actor: Actor) -> list[tuple[str, Access]]:
    rows = catalogue_shown(engine.machine.state, actor).rows
    return [(row.entry.name, row.may) for row in rows if not row.entry.filed]


@pytest.mark.req("JT-49")
def test_an_entry_is_added_changed_and_removed_by_its_owner() -> None:
    engine = an_engine()
    assert changed(engine, OWNER, (None, CORPUS)) is None
    open_to_all = replace(CORPUS, access=Access.RW, about="texts of the web")
    assert changed(engine, OWNER, (CORPUS, open_to_all)) is None
    assert engine.machine.state.catalogue == {"dataset/nlp/corpus": open_to_all}
    assert changed(engine, OWNER, (open_to_all, None)) is None
    assert engine.machine.state.catalogue == {}


@pytest.mark.req("JT-49")
@pytest.mark.parametrize("access", Access)
def test_members_have_the_rights_of_an_entrys_access_and_others_none(access: Access) -> None:
    entry = replace(CORPUS, access=access)
    engine = an_engine(entry)
    assert seen(engine, OWNER) == seen(engine, ADMIN) == [("corpus", Access.RW)]
    assert seen(engine, MEMBER) == ([("corpus", access)] if access is not Access.NONE else [])
    assert seen(engine, STRANGER) == []
    kinds = {Access.RW: None, Access.RO: RefusalKind.DENIED, Access.NONE: RefusalKind.NOT_FOUND}
    for wanted in (replace(entry, path="/data/other"), None):
        refused = changed(an_engine(entry), MEMBER, (entry, wanted))
        assert (refused.kind if refused else None) is kinds[access]
        refused = changed(an_engine(entry), STRANGER, (entry, wanted))
        assert refused is not None
        assert refused.kind is RefusalKind.NOT_FOUND


@pytest.mark.req("JT-49")
def test_a_member_who_may_change_an_entry_changes_neither_its_access_nor_its_owner() -> None:
    entry = replace(CORPUS, access=Access.RW)
    for taken in (replace(entry, owner="bob"), replace(entry, access=Access.NONE)):
        refused = changed(an_engine(entry), MEMBER, (entry, taken))
        assert refused is not None
        assert refused.kind is RefusalKind.DENIED
    assert changed(an_engine(entry), ADMIN, (entry, replace(entry, owner="bob", access=Access.NONE))) is None


@pytest.mark.req("JT-49")
@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (replace(CORPUS, owner="bob"), "owner: only an administrator adds what is another's; write ann"),
        (replace(CORPUS, project=""), "project: only an administrator adds what is the whole cluster's"),
        (replace(CORPUS, project="bob"), "project: you are not in bob"),
        (PoolEntry(name="mine", owner="ann"), "only an administrator adds a pool"),
        (ProjectEntry(name="mine", owner="ann"), "only an administrator adds a project"),
        (UserEntry(name="bob", owner="ann", email="ann@lab"), "only an administrator adds a user"),
        (replace(CORPUS, filed=True), "filed: only catalogue.toml says so"),
    ],
)
def test_an_entry_outside_the_users_rights_is_not_added(entry: AnyEntry, said: str) -> None:
    refused = changed(an_engine(), OWNER, (None, entry))
    assert refused is not None
    assert said in refused.message
    if not entry.filed:
        assert changed(an_engine(), ADMIN, (None, entry)) is None


def test_every_user_sets_their_own_address() -> None:
    engine = an_engine()
    assert changed(engine, OWNER, (None, UserEntry(name="ann", owner="ann", email="ann@lab.example"))) is None


@pytest.mark.req("JT-49")
def test_all_errors_of_a_request_are_reported_and_no_change_is_made() -> None:
    engine = an_engine()
    wrong = (
        replace(CORPUS, path="relative"),
        replace(CORPUS, name="b", source=DatasetSource.FAVORITE, path=""),
        ModelEntry(name="a/b", project="nlp", owner="ann", path="/m"),
        SpecEntry(name="big", project="nlp", owner="ann", spec=NodeSpec(cpus=0, card_models=("A100",))),
        ImageEntry(name="torch", project="nlp", owner="ann", image="-v", scopes=()),
    )
    refused = changed(engine, OWNER, *((None, each) for each in wrong), (None, replace(CORPUS, name="fine")))
    assert refused is not None
    lines = refused.message.splitlines()
    assert [line.split(": ")[:2] for line in lines] == [
        ["dataset nlp/corpus", "path"],
        ["dataset nlp/b", "versions"],
        ["model nlp/a/b", "name"],
        ["spec nlp/big", "cpus"],
        ["spec nlp/big", "card_models"],
        ["image nlp/torch", "image"],
        ["image nlp/torch", "scopes"],
    ]
    assert engine.machine.state.catalogue == {}


def test_a_change_based_on_an_old_version_is_refused() -> None:
    engine = an_engine(CORPUS)
    refused = changed(engine, OWNER, (None, CORPUS))
    assert refused is not None
    assert refused.kind is RefusalKind.CONFLICT
    late = changed(engine, OWNER, (replace(CORPUS, about="before"), replace(CORPUS, about="after")))
    assert late is not None
    assert "has changed since" in late.message
    hidden = changed(an_engine(replace(CORPUS, access=Access.NONE)), MEMBER, (None, replace(CORPUS, owner="bob")))
    assert hidden is not None
    assert hidden.message == "dataset nlp/corpus: the name is taken there; choose another."


@pytest.mark.req("JT-49")
def test_an_entry_of_a_file_is_changed_only_in_the_file() -> None:
    engine = an_engine()
    engine.tell(*take_over_catalogue(engine.machine.state, [CORPUS]))
    (filed,) = engine.machine.state.catalogue.values()
    for actor in (OWNER, ADMIN):
        refused = changed(engine, actor, (filed, replace(filed, about="x")))
        assert refused is not None
        assert refused.message == "dataset nlp/corpus: is defined in catalogue.toml; change it there."
    rules = changed(engine, ADMIN, (None, ProjectEntry(name="nlp", users=("eve",))))
    assert rules is not None
    assert "is defined in cluster.toml" in rules.message
    assert take_over_catalogue(engine.machine.state, [CORPUS]) == []
    engine.tell(*take_over_catalogue(engine.machine.state, []))
    assert engine.machine.state.catalogue == {}


def test_loading_a_file_keeps_entries_that_users_added() -> None:
    own = VolumeEntry(name="scratch", project="nlp", owner="bob", path="/scratch")
    engine = an_engine(own)
    engine.tell(*take_over_catalogue(engine.machine.state, [CORPUS]))
    engine.tell(*take_over_catalogue(engine.machine.state, []))
    assert list(engine.machine.state.catalogue.values()) == [own]


@pytest.mark.req("JT-49")
def test_a_project_accepts_entries_of_its_members_and_is_removed_last() -> None:
    engine = an_engine()
    speech = ProjectEntry(name="speech", owner="ann", access=Access.RO, users=("bob",))
    assert changed(engine, ADMIN, (None, speech)) is None
    member = replace(MEMBER, projects=frozenset({"speech"}))
    own = replace(CORPUS, project="speech", owner="bob")
    assert changed(engine, member, (None, own)) is None
    refused = changed(engine, ADMIN, (speech, None))
    assert refused is not None
    assert "it has the dataset corpus" in refused.message
    assert changed(engine, ADMIN, (own, None), (speech, None)) is None


@pytest.mark.req("JT-49")
def test_a_project_with_a_job_that_has_not_ended_stays() -> None:
    engine = an_engine()
    speech = ProjectEntry(name="speech", owner="ann", users=("ann",))
    assert changed(engine, ADMIN, (None, speech)) is None
    actor = Actor(ANN, admin=False, projects=frozenset({"speech"}))
    assert engine.act(submit(engine.machine, [a_spec("train", project="speech")], actor, now=engine.now)) is None
    refused = changed(engine, ADMIN, (speech, None))
    assert refused is not None
    assert "it has job 1, which has not ended" in refused.message
    engine.tell(events.JobEnded(JobId(1), JobState.STOPPED, EndCause.STOP))
    assert changed(engine, ADMIN, (speech, None)) is None


@pytest.mark.req("JT-60")
@pytest.mark.parametrize("name", ["speech", "vision"])
def test_a_project_of_others_is_refused_like_one_that_does_not_exist(name: str) -> None:
    """Those of the catalogue, and those of cluster.toml."""
    engine = an_engine(ProjectEntry(name="speech", owner="ann", users=("ann",)))

    def said(project: str, *, is_forged: bool) -> tuple[RefusalKind, str]:
        entry = ProjectEntry(name=project, owner="eve", users=("eve",))
        refused = changed(engine, STRANGER, (entry if is_forged else None, entry))
        assert refused is not None
        return refused.kind, refused.message.replace(project, "NAME")

    for is_forged in (False, True):
        assert said(name, is_forged=is_forged) == said("nothing", is_forged=is_forged)


def test_members_see_which_projects_they_are_in() -> None:
    engine = an_engine(ProjectEntry(name="speech", owner="ann", users=("bob",)))
    assert seen(engine, replace(MEMBER, projects=frozenset({"speech"}))) == [("speech", Access.RO)]
    assert seen(engine, STRANGER) == []


def test_projects_and_pools_of_cluster_toml_are_listed_too() -> None:
    rows = catalogue_shown(an_engine().machine.state, MEMBER).rows
    assert [(row.entry.kind, row.entry.name, row.may) for row in rows] == [
        ("pool", "fast", Access.RO),
        ("project", "nlp", Access.RO),
    ]


@pytest.mark.req("JT-49", "TR-05")
@pytest.mark.parametrize("kind", ENTRIES)
def test_hostile_names_are_refused_with_a_printable_message(kind: str) -> None:
    for what, text in HOSTILE.items():
        refused = changed(an_engine(), ADMIN, (None, ENTRIES[kind](name=text, owner=text, project=text, about="\0")))
        assert refused is not None, what
        assert all(line.isprintable() for line in refused.message.splitlines()), what


def test_the_event_list_shows_only_entries_that_the_user_may_see() -> None:
    hidden = AlgorithmEntry(name="secret", project="nlp", owner="ann", path="/a")
    body = events.CatalogueChanged((CORPUS,), (hidden,))
    assert shown_change(MEMBER, body) == events.CatalogueChanged((CORPUS,))
    assert shown_change(STRANGER, body) is None
    assert shown_change(OWNER, body) == shown_change(ADMIN, body) == body


def test_a_pool_consists_of_existing_nodes() -> None:
    refused = changed(an_engine(), ADMIN, (None, PoolEntry(name="pair", nodes=("n1", "n9"))))
    assert refused is not None
    assert refused.message == "pool pair: nodes: there is no node n9."


def test_the_journal_records_every_field_of_every_kind_of_entry() -> None:
    for kind, entry in ENTRIES.items():
        decoded = msgspec.json.decode(msgspec.json.encode(entry(name="a")), type=AnyEntry)
        assert (decoded.kind, decoded) == (kind, entry(name="a"))
