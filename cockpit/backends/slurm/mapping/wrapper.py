"""The few lines around a command that keep a failed job's allocation for a while, so that it can be entered.

The lines are POSIX sh. SIGTERM ends them as it ends any job. SIGUSR1 ends the hold, and SIGUSR2 lets them read again
until when it lasts. A time-out and the failure of a node end the script itself, and these lines with it.
"""

from __future__ import annotations

from collections.abc import Iterator

WRAPPED = "cockpit:"
"""The beginning of the comments of wrapped jobs."""
SLACK_SECONDS = 60
"""How long before the end of the time limit the allocation is released, since afterwards there is no exit code."""
# `sleep` runs in the background, because a shell runs a trap only after its foreground command has ended; `wait` is
# interrupted by a signal. squeue's %k is the comment, whose new end `scontrol update` wrote before USR2.
_KEEPING = """\
trap 'cockpit_let_go=1' USR1
trap 'cockpit_look=1' USR2
cockpit_run
rc=$?
if [ "$rc" -ne 0 ]; then
    until=$(($(date +%s) + {seconds}))
    [ "$until" -lt "$cockpit_end" ] || until=$cockpit_end
    scontrol update JobId="$SLURM_JOB_ID" Comment="cockpit:held rc=$rc until=$until" || :
    echo "cockpit: ended with $rc; this allocation is held; cockpit shell $SLURM_JOB_ID enters it" >&2
    while [ -z "$cockpit_let_go" ] && [ "$(date +%s)" -lt "$until" ]; do
        sleep 5 &
        wait $!
        if [ -n "$cockpit_look" ]; then
            cockpit_look=
            said=$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%k)
            case $said in cockpit:held*until=*[0-9]) until=${{said##*=}} ;; esac
        fi
    done
    scontrol update JobId="$SLURM_JOB_ID" Comment="cockpit:released rc=$rc" || :
fi
exit "$rc\""""


# The copy leaves out earlier copies, and patterns that match nothing, which sh leaves as they are. --reflink: on file
# systems that can share blocks the copy takes no space.
_COPYING = """\
cockpit_run
rc=$?
if [ "$rc" -ne 0 ]; then
    copy="$COCKPIT_OUTPUTS/.cockpit-copy-$SLURM_JOB_ID-${SLURM_RESTART_COUNT:-0}"
    mkdir -p "$copy"
    for each in * .[!.]*; do
        case $each in .cockpit-* | '*' | '.[!.]*') continue ;; esac
        cp -a --reflink=auto -- "$each" "$copy/"
    done
    scontrol update JobId="$SLURM_JOB_ID" Comment="cockpit:copied rc=$rc folder=$copy" || :
    echo "cockpit: ended with $rc; its folder is copied to $copy, its nodes are released, and it waits" >&2
    echo "cockpit: cockpit shell $SLURM_JOB_ID enters the copy, cockpit release $SLURM_JOB_ID starts the job again" >&2
    scontrol requeuehold State=SpecialExit "$SLURM_JOB_ID"
fi
exit "$rc\""""


def copy_after_failure() -> Iterator[str]:
    """Yield lines that run `cockpit_run`, and keep the files of a run that fails.

    They copy the working folder, give the nodes back, and have the job wait.
    """
    yield from _COPYING.splitlines()


def hold_after_failure(seconds: int) -> Iterator[str]:
    """Yield lines that run `cockpit_run`, and hold the allocation of a run that fails for `seconds`."""
    yield from _KEEPING.format(seconds=seconds).splitlines()


def script_head(asked_seconds: int) -> str:
    """Return the head of the script. `asked_seconds`: the time limit including the hold."""
    note = "# A command that fails is kept. A time-out, lack of memory or a failing node end this script with it."
    return f"{note}\ncockpit_end=$(($(date +%s) + {asked_seconds - SLACK_SECONDS})) cockpit_let_go= cockpit_look="
