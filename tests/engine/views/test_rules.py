"""Who is in what, as one user may see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cockpit.engine.access import Actor
from cockpit.engine.state import ClusterState
from cockpit.engine.views.accounts import shown_cluster, shown_rules
from cockpit.model.accounts import Accounts, Association, Qos, assoc_key
from cockpit.model.cluster import Cluster, Project
from cockpit.model.events import AccountsChanged, ClusterConfigured, EngineStopped
from tests.builders import ANN

if TYPE_CHECKING:
    from cockpit.model.events import EventBody

pytestmark = pytest.mark.req("TR-14")
CLUSTER = Cluster(
    projects=(
        Project(name="vision", users=("ann", "bob"), groups=("lab",)),
        Project(name="speech", users=("carol",), groups=("secret-group",)),
    )
)
OUTSIDER = Actor(replace(ANN, name="dave", uid=4242), admin=False)
MEMBER = Actor(ANN, admin=False, projects=frozenset({"vision"}))
ADMIN = Actor(ANN, admin=True)
ASSOCIATIONS = (
    Association(account="root"),
    Association(account="lab", parent="root", coordinators=("ann",)),
    Association(account="lab", user="bob"),
    Association(account="lab", user="dave"),
    Association(account="other", parent="root"),
    Association(account="other", user="carol"),
)
STATE = ClusterState(cluster=CLUSTER, accounts=Accounts(associations={each.key: each for each in ASSOCIATIONS}))


def names(actor: Actor) -> list[str]:
    return [each.name for each in shown_cluster(actor, CLUSTER).projects]


def test_the_rules_show_only_projects_of_the_user() -> None:
    assert names(OUTSIDER) == []
    assert names(MEMBER) == ["vision"]
    assert names(ADMIN) == ["vision", "speech"]


def test_an_event_about_the_rules_shows_only_projects_of_the_user() -> None:
    shown = shown_rules(STATE, OUTSIDER, ClusterConfigured(CLUSTER))
    assert isinstance(shown, ClusterConfigured)
    assert shown.cluster.projects == ()


def users(body: EventBody | None) -> set[str]:
    assert isinstance(body, AccountsChanged)
    told = {each.user for each in body.associations} | {key.split("/")[1] for key in body.removed_associations}
    return told - {""}


def test_an_event_about_accounts_shows_the_same_users_as_the_list_of_accounts() -> None:
    body = AccountsChanged(
        ASSOCIATIONS,
        (Qos(name="high"),),
        (assoc_key("other", "eve"), assoc_key("lab", "frank", "gpu"), assoc_key("old")),
    )
    assert users(shown_rules(STATE, OUTSIDER, body)) == {"dave"}
    assert users(shown_rules(STATE, MEMBER, body)) == {"bob", "dave", "frank"}, "ann coordinates lab"
    assert shown_rules(STATE, ADMIN, body) == body


def test_an_event_with_no_visible_content_is_not_shown() -> None:
    assert shown_rules(STATE, OUTSIDER, AccountsChanged((Association(account="other", user="carol"),))) is None
    assert shown_rules(STATE, OUTSIDER, EngineStopped("0.1.0")) == EngineStopped("0.1.0")
