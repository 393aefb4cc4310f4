"""Contexts of kubeconfig files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cockpit.backends.kubernetes.wire.credentials import read_credentials
from cockpit.backends.kubernetes.wire.kubeconfig import Context, config_files, context_named, contexts
from cockpit.errors import CockpitError, Unreachable

FIRST = """
apiVersion: v1
kind: Config
clusters: [{name: lab, cluster: {server: "https://lab:6443"}}]
users: [{name: ann, user: {token: secret-of-ann}}]
contexts:
- {name: lab, context: {cluster: lab, user: ann, namespace: team-a}}
- {name: bare, context: {cluster: nowhere}}
"""
SECOND = """
clusters: [{name: lab, cluster: {server: "https://other"}}, {name: far, cluster: {server: "https://far"}}]
contexts:
- {name: lab, context: {cluster: far, user: ben}}
- {name: far, context: {cluster: far, user: ben}}
"""


@pytest.mark.req("KU-01")
def test_the_first_file_that_has_a_name_wins(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text(FIRST)
    second.write_text(SECOND)
    found = contexts({"KUBECONFIG": f"{first}:{tmp_path}/missing:{second}"})
    assert found == {
        "lab": Context("lab", "https://lab:6443", "ann", "team-a"),
        "bare": Context("bare", "", "", "default"),
        "far": Context("far", "https://far", "ben", "default"),
    }


@pytest.mark.req("KU-01")
def test_without_the_variable_the_usual_file_counts() -> None:
    (file,) = config_files({})
    assert file == str(Path("~/.kube/config").expanduser())


@pytest.mark.req("KU-01")
@pytest.mark.parametrize(
    ("text", "words"),
    [("a: [", "line 2 is no YAML"), ("- 1", "is no mapping"), ("\udce9", "is no text in UTF-8")],
)
def test_a_file_that_is_no_kubeconfig_is_named(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "config"
    file.write_bytes(text.encode(errors="surrogateescape") + b"\n")
    with pytest.raises(CockpitError, match=f"{file}.*{words}"):
        contexts({"KUBECONFIG": str(file)})


@pytest.mark.req("KU-01")
def test_an_unknown_context_is_told_with_those_that_there_are(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(FIRST)
    with pytest.raises(CockpitError, match="has no context 'prod'; it has bare, lab"):
        context_named("prod", {"KUBECONFIG": str(tmp_path / "config")})


@pytest.mark.req("KU-01", "TR-10")
def test_an_error_about_a_kubeconfig_shows_no_secret(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(FIRST.replace("contexts:", "contexts: ]"))
    with pytest.raises(CockpitError) as error:
        contexts({"KUBECONFIG": str(tmp_path / "config")})
    assert "secret-of-ann" not in str(error.value)


CLUSTERS = "clusters: [{name: lab, cluster: {server: 'http://127.0.0.1:9'}}]\n"
CONTEXTS = "contexts: [{name: lab, context: {cluster: lab, user: ann}}]\n"
ANN = "users: [{name: ann, user: {token: secret-of-ann}}]\n"


@pytest.mark.req("KU-01", "TR-10")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (CLUSTERS + CONTEXTS + "users: [{name: ann, token: secret-of-ann}]", "names the user 'ann', of which no"),
        (CLUSTERS + CONTEXTS + "users: [{name: ann, user: secret-of-ann}]", "has an entry with `user:`"),
        (CONTEXTS + ANN, "names the cluster 'lab', of which no"),
        (CLUSTERS + ANN, "has no context 'lab'"),
        (CLUSTERS + CONTEXTS + ANN + "- {", "line 4 is no YAML"),
        ("", "has no context 'lab'"),
    ],
)
async def test_what_a_context_lacks_is_named_without_a_secret(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(Unreachable, match=re.escape(words)) as error:
        await read_credentials("lab", (str(tmp_path / "config"),))
    assert "secret-of-ann" not in str(error.value)


@pytest.mark.req("KU-01")
async def test_a_context_may_be_spread_over_several_files(tmp_path: Path) -> None:
    texts = ("", CLUSTERS, CONTEXTS, ANN.replace("token: secret-of-ann", "tokenFile: token"))
    files = [tmp_path / str(number) / "config" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.parent.mkdir()
        file.write_text(text)
    # A relative path begins at the folder of the file that has it.
    (files[-1].parent / "token").write_text("secret-of-ann\n")
    missing = str(tmp_path / "missing")
    found = await read_credentials("lab", (missing, *map(str, files)))
    assert (found.configuration.host, found.authorization) == ("http://127.0.0.1:9", "Bearer secret-of-ann")
