"""Contexts of the user's kubeconfig files. The files are read without the Kubernetes client, whose import is slow."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from cockpit.errors import CockpitError, why_unreadable

# A kubeconfig of a hundred clusters has its certificates inside, which takes the loader in Python half a second.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DEFAULT_FILE = "~/.kube/config"
_PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
"""Fields of clusters and users that name files."""


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


class _Entries(NamedTuple):
    """The entries of all files by their names: the first file that has a name wins (kubectl, "Merging kubeconfig
    files")."""

    clusters: dict[str, Any]
    users: dict[str, Any]
    contexts: dict[str, Any]


def contexts(env: Mapping[str, str]) -> dict[str, Context]:
    """Return the contexts by name; empty without a kubeconfig. Raises `CockpitError` for a file that is not one."""
    found = _entries(config_files(env))
    return {name: _context(name, fields, found.clusters) for name, fields in found.contexts.items()}


def context_named(name: str, env: Mapping[str, str]) -> Context:
    """Return one context. Raises `CockpitError` where no kubeconfig has it."""
    known = contexts(env)
    if name not in known:
        raise _unknown(name, config_files(env), known)
    return known[name]


def context_alone(name: str, files: Sequence[str]) -> dict[str, Any]:
    """Return a kubeconfig of one context. Raises `CockpitError` where a file is damaged, or none has what it names.

    The client's own reading of files repeats whole entries in its errors, with tokens and passwords, and looks for a
    user's certificates in the folder of the cluster's file.
    """
    found = _entries(files)
    if name not in found.contexts:
        raise _unknown(name, files, found.contexts)
    context = found.contexts[name]
    config: dict[str, Any] = {"contexts": [{"name": name, "context": context}], "current-context": name}
    for section, known in (("clusters", found.clusters), ("users", found.users)):
        kind = section.removesuffix("s")
        wanted = str(context.get(kind) or "")
        if wanted and wanted not in known:
            raise CockpitError(
                f"The context {name!r} names the {kind} {wanted!r}, of which no kubeconfig ({', '.join(files)}) has an "
                f"entry with `{kind}:`; `kubectl config view` shows those that there are."
            )
        config[section] = [{"name": wanted, kind: known[wanted]}] if wanted else []
    return config


def _unknown(name: str, files: Sequence[str], known: Iterable[str]) -> CockpitError:
    listed = ", ".join(sorted(known))
    return CockpitError(
        f"The kubeconfig ({', '.join(files)}) has no context {name!r}{f'; it has {listed}' if listed else ''}."
    )


def _entries(files: Sequence[str]) -> _Entries:
    found = _Entries({}, {}, {})
    for file in files:
        config = _read(file)
        for names, section in zip(found, _Entries._fields, strict=True):
            for each in config.get(section) or ():
                fields = each.get(section.removesuffix("s")) if isinstance(each, dict) else None
                if isinstance(fields, dict):
                    names.setdefault(str(each.get("name")), _with_absolute_paths(fields, Path(file).parent))
    return found


def _with_absolute_paths(fields: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return an entry whose paths, which are relative to the folder of its file, are absolute."""
    paths: dict[str, Any] = {
        field: str(folder / path) for field in _PATHS if isinstance(path := fields.get(field), str) and path
    }
    plugin = fields.get("exec")
    # A program without a slash is looked for in PATH.
    if isinstance(plugin, dict) and "/" in str(plugin.get("command")):
        paths["exec"] = {**plugin, "command": str(folder / plugin["command"])}
    return {**fields, **paths}


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
