"""A command as a shell's text: what the shell makes of it is what cockpit itself would start."""

from __future__ import annotations

import subprocess

import pytest

from cockpit.launch.command import expand
from cockpit.launch.shellform import plain_arguments, shell_text, without_patterns

ENV = {"LR": "0.1", "SLOTS": "4", "EMPTY": "", "BLANKS": "a  b", "PATH": "/usr/bin:/bin"}


def started(text: str, shell: str) -> tuple[str, ...]:
    """The arguments with which a shell starts `printf` in place of the command."""
    script = f"x() {{ printf '%s\\0' x \"$@\"; }}\n{text}"
    found = subprocess.run([shell, "-c", script], env=ENV, capture_output=True, check=True).stdout.decode()
    return tuple(found.split("\0")[:-1])


@pytest.mark.req("LA-01")
@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize(
    "command",
    [
        "x train.py --lr=$LR --sep ';' \"a b\"",
        "x $UNSET ${UNSET} --a=$UNSET$LR 'q $LR'",
        'x $((SLOTS * 2)) $((SLOTS * none)) "n=$((none))" $EMPTY "$EMPTY"',
        'x "$BLANKS" $((1 + 2))$UNSET',
        'x "$UNSET \\"quoted\\" \\\\ \\$LR"',
        "x * ?est [a-z]* {a,b} {1..3} ~ ~root a=~ 'q'* \"$LR\"/*.csv \\*",
        "x *$UNSET {$LR,b} *$((1 + 2))*",
        'x bash -c "for i in 1 2; do echo $i $LR $((i * 2)) $1 ${i:-z} $(echo "hi there") `date`; done"',
    ],
)
def test_a_shell_starts_what_cockpit_would(shell: str, command: str) -> None:
    assert started(shell_text(command), shell) == expand(command, ENV)


@pytest.mark.req("LA-01")
def test_a_command_of_known_names_is_not_changed() -> None:
    command = "torchrun --nnodes ${WORLD_SIZE} \\\n $COCKPIT_OUTPUTS/t.py"
    assert shell_text(command, known={"WORLD_SIZE"}) == command
    of_cockpit = "x $COCKPIT_SLOTS $SLURM_JOB_ID $((SLURM_NTASKS + 1))"
    assert shell_text(of_cockpit) == of_cockpit


@pytest.mark.req("LA-01", "LA-70")
def test_a_program_that_expands_no_variables_is_wrapped_in_a_shell_where_needed() -> None:
    assert plain_arguments("python3 t.py 'a b'") == ("python3", "t.py", "a b")
    *shell, script = plain_arguments('bash -c "for i in 1 2; do echo $i; done"')
    assert shell == ["bash", "-c"]
    assert subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout == b"1\n2\n"


@pytest.mark.req("LA-01")
@pytest.mark.parametrize("command", ["x | y", "a && b > c", "for i in 1 2; do echo $i; done"])
def test_a_command_that_needs_a_shell_stays_as_it_is_written(command: str) -> None:
    assert shell_text(command) == command
    assert plain_arguments(command) == ("bash", "-c", command)


@pytest.mark.req("LA-01", "LA-70")
@pytest.mark.parametrize(
    ("command", "quoted"),
    [
        ("x t.py --include *.csv $LR/{a,b} 'q w'", 'x t.py --include "*.csv" "$LR/{a,b}" \'q w\''),
        ("x ${LR} $((1 + 2)) '*' \\*", "x ${LR} $((1 + 2)) '*' \\*"),
        ("x * | y", "x * | y"),
    ],
)
def test_patterns_of_a_shell_are_quoted_and_nothing_else(command: str, quoted: str) -> None:
    assert without_patterns(command) == quoted
    if quoted != command:
        assert started(quoted, "bash") == expand(command, ENV)
