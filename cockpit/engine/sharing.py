"""Projects, who is in them, and what of a job its owner may open to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine.access import is_owner
from cockpit.model.catalogue import ProjectEntry
from cockpit.model.cluster import Project
from cockpit.model.spec import Access
from cockpit.model.text import visible

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from cockpit.engine.access import Actor
    from cockpit.engine.state import ClusterState
    from cockpit.model.cluster import Cluster
    from cockpit.model.job import Job, Submitter
    from cockpit.model.spec import JobSpec

_REACH = ("home", "output", "algorithm", "tasks", "datasets", "models", "volumes", "image", "script")
"""Fields that name what the job reads or writes with its owner's credentials."""
_MOST_NAMED = 10


def named_projects(state: ClusterState) -> tuple[Project, ...]:
    """Return the projects of cluster.toml and of the catalogue."""
    return (*state.cluster.projects, *catalogued_projects(state))


def catalogued_projects(state: ClusterState) -> tuple[Project, ...]:
    entries = (each for each in state.catalogue.values() if isinstance(each, ProjectEntry))
    return tuple(Project(name=each.name, users=each.users, groups=each.groups) for each in entries)


def projects_of(projects: Iterable[Project], user: str, groups: Collection[str]) -> frozenset[str]:
    """Return the projects that the user is in, by name or through a group of the system."""
    return frozenset(each.name for each in projects if user in each.users or not set(each.groups).isdisjoint(groups))


def may_name(projects: Iterable[Project], actor: Actor, owner: str, project: str) -> bool:
    """Return whether the actor may use the project. Where the cluster defines projects, users may use those that they
    are in, and their own."""
    named = {each.name for each in projects}
    return not named or project in actor.projects or (project == owner and project not in named)


def membership_errors(projects: Iterable[Project], actor: Actor, owner: Submitter, project: str) -> Iterator[str]:
    """Return what is wrong with a job's project."""
    if may_name(projects, actor, owner.name, project):
        return
    # A member edits another user's job, which keeps its project: that was checked when its owner submitted it.
    if actor.who.uid != owner.uid:
        return
    own = ", ".join(sorted(map(visible, actor.projects))[:_MOST_NAMED])
    yield f"project: you are not in {visible(project)}; {f'you are in {own}' if own else 'leave it out, for your own'}"


def access_errors(cluster: Cluster, actor: Actor, spec: JobSpec, edited: Job | None) -> Iterator[str]:
    """Return what is wrong with the access that the new job opens. A member who edits another user's job may open
    nothing to themselves."""
    if spec.access is not Access.NONE and not cluster.sharing:
        yield "access: sharing is switched off on this cluster; write none, or leave it out"
    if edited is None or actor.admin or is_owner(actor, edited):
        return
    if spec.access is not edited.spec.access:
        yield f"access: only {visible(edited.submitter.name)}, whose job it is, or an administrator changes it"
    # The job runs as its owner: a member could otherwise read or write what only the owner may.
    for field in _REACH:
        if getattr(spec, field) != getattr(edited.spec, field):
            yield f"{field}: only {visible(edited.submitter.name)} changes it: it is opened as that user; leave it"
