from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.errors import SpecErrors
from cockpit.launch.command import command_errors, expand, unset_names, wrapped
from cockpit.launch.shellform import shell_text
from tests.hostile import HOSTILE

ENV = {"LR": "0.1", "SLOTS": "4", "SPACES": "a b", "STAR": "*", "EMPTY": ""}


@pytest.mark.req("LA-01", "JT-16")
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("python3 train.py", ("python3", "train.py")),
        ("python3 t.py --sep ';'", ("python3", "t.py", "--sep", ";")),
        ("python3 t.py --sep \\;", ("python3", "t.py", "--sep", ";")),
        ("python3 t.py \"a && b\" 'c | d'", ("python3", "t.py", "a && b", "c | d")),
        ("python3 t.py --kv=A=1 B=2", ("python3", "t.py", "--kv=A=1", "B=2")),
        ("python3 \\\n  t.py \\\n  -v", ("python3", "t.py", "-v")),
        ("\n  python3 t.py \n\n", ("python3", "t.py")),
        ("\tpython3\tt.py", ("python3", "t.py")),
        ("python3 t.py '' \"\"", ("python3", "t.py", "", "")),
        ("python3 it\\'s a#b [x] {a,b} ~ * ?", ("python3", "it's", "a#b", "[x]", "{a,b}", "~", "*", "?")),
        ('echo "a\\b\\"c\\$d"', ("echo", 'a\\b"c$d')),
        ("echo cost 5$ 'a$'", ("echo", "cost", "5$", "a$")),
        ("echo \"it's $'5 or 5$\"", ("echo", "it's $'5 or 5$")),
        ("$PYTHON train.py", ("${PYTHON}", "train.py")),
        ('bash -c "KEY=V python3 t.py && x"', ("bash", "-c", "KEY=V python3 t.py && x")),
        ("'A=1' x", ("A=1", "x")),
        ("a\rb", ("a\rb",)),
    ],
)
def test_a_simple_command_is_split_as_a_shell_splits(command: str, words: tuple[str, ...]) -> None:
    assert command_errors(command) == []
    assert expand(command, {"PYTHON": "${PYTHON}"}) == words


@pytest.mark.req("LA-01", "JT-16")
@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("KEY=VALUE python3 train.py", "begins with KEY=…, which sets a variable"),
        ("KEY+=V x", "sets a variable"),
        ("a && b", '"&&", which joins'),
        ("a || b", '"||", which joins'),
        ("a; b", '";", which separates'),
        ("a & ", '"&", which starts a command in the background'),
        ("a|b", '"|", which pipes'),
        ("a <in", '"<", which redirects'),
        ("a 2>&1", '">", which redirects'),
        ("(a)", '"(", which begins a subshell'),
        ("a $(b)", '"$(", which would run'),
        ("a `b`", '"`", which would run'),
        ('a "`b`"', '"`", which would run'),
        ('a "$(b)"', '"$(", which would run'),
        ("a\nb", "several lines"),
        ("a # b", "comment"),
        ("a ${B:-c}", "no plain ${NAME}"),
        ("a $1", '"$1", which only a shell knows'),
        ("a $$", '"$$", which only a shell knows'),
        ("a $'b'", "only bash knows"),
        ("a $((1 <b))", "whole numbers"),
        ("cd /x", 'begins with "cd"'),
        ("exit 3", 'begins with "exit"'),
        ("{ a", 'begins with "{"'),
        (". ./env.sh", 'begins with "."'),
    ],
)
def test_more_than_a_simple_command_is_refused_with_the_wrapping(command: str, part: str) -> None:
    (error,) = command_errors(command)
    assert part in error
    assert "wrap it: bash -c " in error
    with pytest.raises(SpecErrors, match=r"^command: "):
        expand(command, ENV)


@pytest.mark.req("LA-01")
@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("a 'b", "never closed"),
        ('a "b', "never closed"),
        ("a \\", "backslash"),
        ("a $((1", '"))"'),
        ("a $((1)", '"))"'),
        ("a $(((1))", '"))"'),
        ("", "no word"),
        (" \t\n", "no word"),
        ("'' x", "empty word"),
        ('"" x', "empty word"),
    ],
)
def test_text_that_no_shell_accepts_is_refused_without_that_advice(command: str, part: str) -> None:
    (error,) = command_errors(command)
    assert part in error
    assert "bash -c" not in error


@pytest.mark.req("LA-01")
def test_the_advice_quotes_the_users_own_text() -> None:
    (error,) = command_errors("KEY=VALUE python3 train.py && echo done")
    assert error.endswith('wrap it: bash -c "KEY=VALUE python3 train.py && echo done"')
    (error,) = command_errors("A=1 python3 t.py \"$X\" 'y'")
    advice = error.partition("wrap it: ")[2]
    assert shlex.split(advice) == ["bash", "-c", "A=1 python3 t.py \"$X\" 'y'"]


@given(st.text())
def test_a_wrapped_command_is_passed_to_bash_unchanged(text: str) -> None:
    if text.strip(" \t\n"):
        assert expand(wrapped(text), {}) == ("bash", "-c", text.strip(" \t\n"))


@pytest.mark.req("TR-05")
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_commands_are_reported_in_one_escaped_line(text: str) -> None:
    for command in (text, f"a;{text}", f"{text};"):
        for error in command_errors(command):
            assert error.isprintable()
            assert len(error) < 500


@pytest.mark.req("LA-01")
@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("x --lr $LR", ("x", "--lr", "0.1")),
        ("x --lr=${LR}e", ("x", "--lr=0.1e")),
        ("x '$LR' \"$LR\" \\$LR", ("x", "$LR", "0.1", "$LR")),
        ("x $SPACES", ("x", "a b")),
        ("x $STAR", ("x", "*")),
        ("x $EMPTY y", ("x", "y")),
        ('x "$EMPTY" y', ("x", "", "y")),
        ("x $EMPTY''", ("x", "")),
        ("x --a=$EMPTY", ("x", "--a=")),
        ("x $((SLOTS * 2 + 1))", ("x", "9")),
        ('x "n=$(( (SLOTS) / 3 ))"', ("x", "n=1")),
        ("x $\\\nLR $L\\\nR", ("x", "0.1", "0.1")),
        ("$EMPTY x", ("", "x")),
        ("x $LRX $LR-X", ("x", "$LRX", "0.1-X")),
    ],
)
def test_variables_and_sums_are_expanded_and_nothing_else(command: str, argv: tuple[str, ...]) -> None:
    assert expand(command, ENV) == argv


@pytest.mark.req("LA-01")
@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("x $UNSET ${UNSET}y", ("x", "$UNSET", "${UNSET}y")),
        ('x --a="$UNSET-$LR"', ("x", "--a=$UNSET-0.1")),
        ("x $((UNSET + SLOTS)) $((SLOTS))", ("x", "$((UNSET + SLOTS))", "4")),
        ('bash -c "for i in 1 2; do echo $i; done"', ("bash", "-c", "for i in 1 2; do echo $i; done")),
        ('bash -c "echo $((SLOTS + 1)) $((cd x; pwd))"', ("bash", "-c", "echo 5 $((cd x; pwd))")),
        ('bash -c "n=2; echo $((n * 2)) $LR"', ("bash", "-c", "n=2; echo $((n * 2)) 0.1")),
    ],
)
def test_an_unset_variable_is_not_replaced(command: str, argv: tuple[str, ...]) -> None:
    assert command_errors(command) == []
    assert expand(command, ENV) == argv


@pytest.mark.req("LA-01")
@pytest.mark.parametrize("shell", ["bash -c", "/bin/sh -ec", "bash -e -o pipefail -c", "mpirun -np 2 bash -lc"])
@pytest.mark.parametrize(
    "script",
    [
        "echo $1 $? $$ $# $@ $* $!",
        "echo ${X:-y} ${X#a'b} ${#X}",
        'echo $(date "+%s" | wc -c) $(case x in (x) echo ");" ;; esac)',
        "echo `date` $((i++)) $((1 < 2)) $((2 ** 3))",
        'echo $(echo "a $(echo "b") ${c:-"d"}")',
    ],
)
def test_the_script_of_a_shell_keeps_the_syntax_that_only_a_shell_has(shell: str, script: str) -> None:
    command = f'{shell} "{script}"'
    assert command_errors(command) == []
    assert expand(command, ENV)[-1] == script


@pytest.mark.req("LA-01")
@pytest.mark.parametrize(
    "command", ['python -c "$1"', 'echo -c "$(a)"', 'bash x.sh "$1"', "bash -c $1", 'bash -c "$(a"']
)
def test_shell_syntax_is_refused_elsewhere(command: str) -> None:
    assert command_errors(command)


@pytest.mark.req("LA-01")
def test_names_that_no_shell_will_set_are_reported() -> None:
    assert unset_names('x $LR $A "${B}" $((C * 2)) $A', ENV) == ["$A", "${B}", "$((C * 2))"]
    assert unset_names('bash -c "for i in 1; do echo $i; done" $A', ENV) == ["$A"]


@pytest.mark.req("LA-01")
def test_arithmetic_that_fails_at_start_is_reported_with_its_field() -> None:
    with pytest.raises(SpecErrors) as caught:
        expand("x $((8 / NODES))", {"NODES": "0"})
    assert caught.value.errors == ("command: $((…)) divides by zero",)


PIECES = st.sampled_from(
    ["a", "b-c", "/x.y", "=", "'q $A'", "'\\'", '"d $A e"', '"\\$A\\\\"', "\\$", "\\ ", "\\\\", "$A", "${B}", "$NONE"]
) | st.sampled_from(
    ["$((A_N + 2))", '"$((3*A_N))"', "\\\n", '"x\\\ny"', "é", "训", "'\"'", '"\'"', "%", "@", ":", ",", "#"]
)
WORDS = (
    st.lists(PIECES, min_size=1, max_size=4)
    .map("".join)
    .filter(lambda word: not word.replace("\\\n", "").startswith("#"))
)


@pytest.mark.req("LA-01")
@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(WORDS, max_size=5).map(" ".join), min_size=20, max_size=20))
def test_a_real_shell_expands_in_the_same_way(commands: list[str]) -> None:
    env = {"A": "value", "B": "one", "A_N": "5", "NONE": ""}
    texts = (shell_text(f"x {words}", known=env) for words in commands)
    script = "".join(f"printf '<%s>' {text}\nprintf '\\n'\n" for text in texts)
    answer = subprocess.run(["sh", "-c", script], env=env, capture_output=True, check=True).stdout.decode()
    ours = "".join("".join(f"<{word}>" for word in expand(f"x {words}", env)) + "\n" for words in commands)
    assert ours == answer


@given(st.text(alphabet="ab=$\"'\\ \n;&|()`{}#1+", max_size=30))
def test_no_text_breaks_the_lexer(text: str) -> None:
    if command_errors(text):
        with pytest.raises(SpecErrors):
            expand(text, {})
    else:
        assert expand(text, {"a": "1"})
