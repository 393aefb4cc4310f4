"""Contexts of the user's kubeconfig files. The files are read without the Kubernetes client, whose import is slow."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from cockpit.errors import CockpitError, why_unreadable

# A kubeconfig of a hundred clusters has its certificates inside, which takes the loader in Python half a second.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DEFAULT_FILE = "~/.kube/config"


class Context(NamedTuple):
    """A context of the kubeconfig: a cluster, and the user and namespace to use there."""

    name: str
    server: str
    """The address of the API server."""
    user: str
    """The user's name in the kubeconfig, which need not be the name on the cluster."""
    namespace: str


def config_files(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the kubeconfig files in the order in which kubectl merges them, whether they exist or not."""
    named = [each for each in env.get("KUBECONFIG", "").split(os.pathsep) if each]
    return tuple(str(Path(each).expanduser()) for each in named or (DEFAULT_FILE,))


def contexts(env: Mapping[str, str]) -> dict[str, Context]:
    """Return the contexts by name; empty without a kubeconfig. Raises `CockpitError` for a file that is not one."""
    clusters: dict[str, Any] = {}
    found: dict[str, Any] = {}
    # The first file that has a name wins (kubectl, "Merging kubeconfig files").
    for file in config_files(env):
        config = _read(file)
        for section, names, field in (("clusters", clusters, "cluster"), ("contexts", found, "context")):
            for each in config.get(section) or ():
                if isinstance(each, dict) and isinstance(each.get(field), dict):
                    names.setdefault(str(each.get("name")), each[field])
    return {name: _context(name, fields, clusters) for name, fields in found.items()}


def context_named(name: str, env: Mapping[str, str]) -> Context:
    """Return one context. Raises `CockpitError` where no kubeconfig has it."""
    known = contexts(env)
    if name not in known:
        files = ", ".join(config_files(env))
        listed = f"; it has {', '.join(sorted(known))}" if known else ""
        raise CockpitError(f"The kubeconfig ({files}) has no context {name!r}{listed}.")
    return known[name]


def _context(name: str, fields: Mapping[str, Any], clusters: Mapping[str, Any]) -> Context:
    cluster = clusters.get(str(fields.get("cluster")), {})
    return Context(
        name, str(cluster.get("server", "")), str(fields.get("user", "")), str(fields.get("namespace") or "default")
    )


def _read(file: str) -> dict[str, Any]:
    try:
        config = yaml.load(Path(file).read_text(encoding="utf-8"), Loader=_LOADER)  # noqa: S506 - a safe loader
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise CockpitError(f"The kubeconfig {file} {why_unreadable(error)}.") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        raise CockpitError(f"The kubeconfig {file}{where} is no YAML; `kubectl config view` says more.") from error
    if config is not None and not isinstance(config, dict):
        raise CockpitError(f"The kubeconfig {file} is no mapping; `kubectl config view` says more.")
    return config or {}
