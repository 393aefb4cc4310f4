"""Projects, who is in them, and what of a job its owner may open to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine.access import is_owner
from cockpit.model.spec import Access
from cockpit.model.text import visible

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from cockpit.engine.access import Actor
    from cockpit.model.cluster import Cluster
    from cockpit.model.job import Job, Submitter
    from cockpit.model.spec import JobSpec

_REACH = ("home", "output", "algorithm", "datasets", "models", "volumes", "image")
"""What a job opens with its owner's credentials."""
_MOST_NAMED = 10


def projects_of(cluster: Cluster, user: str, groups: Collection[str]) -> frozenset[str]:
    """The projects that the user is in, by name or through a group of the system."""
    return frozenset(
        each.name for each in cluster.projects if user in each.users or not set(each.groups).isdisjoint(groups)
    )


def membership_errors(cluster: Cluster, actor: Actor, owner: Submitter, project: str) -> Iterator[str]:
    """A cluster that names projects takes jobs for those that one is in, and for one's own."""
    named = {each.name for each in cluster.projects}
    if not named or project in actor.projects or (project == owner.name and project not in named):
        return
    if actor.who.uid != owner.uid:  # the job is there already, and its project stays
        return
    own = ", ".join(sorted(map(visible, actor.projects))[:_MOST_NAMED])
    yield f"project: you are not in {visible(project)}; {f'you are in {own}' if own else 'leave it out, for your own'}"


def access_errors(cluster: Cluster, actor: Actor, spec: JobSpec, edited: Job | None) -> Iterator[str]:
    """Of a job as it is to be. A member who edits another's job opens nothing to themselves."""
    if spec.access is not Access.NONE and not cluster.sharing:
        yield "access: sharing is switched off on this cluster; write none, or leave it out"
    if edited is None or actor.admin or is_owner(actor, edited):
        return
    if spec.access is not edited.spec.access:
        yield f"access: only {visible(edited.submitter.name)}, whose job it is, or an administrator changes it"
    for field in _REACH:
        if getattr(spec, field) != getattr(edited.spec, field):
            yield f"{field}: only {visible(edited.submitter.name)} changes it: it is opened as that user; leave it"
