"""`cockpit completion`: the scripts by which shells complete cockpit's words, and the words themselves."""

from __future__ import annotations

import re
import shlex
from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Final

from cockpit.headless.arguments import Verb
from cockpit.headless.completing import Completion
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.services import Call
from cockpit.present.safe import safe

BASH, ZSH, FISH = "bash", "zsh", "fish"

_BASH = """\
# Completion of cockpit for bash. Once: cockpit completion bash > ~/.local/share/bash-completion/completions/cockpit
# or, without the package bash-completion, in ~/.bashrc: eval "$(cockpit completion bash)"
_cockpit() {
    mapfile -t COMPREPLY < <("${1/#\\~/$HOME}" completion bash "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    compopt -o nosort
    case ${COMPREPLY[*]} in
        *'<files>') compopt -o filenames; COMPREPLY=(${COMPREPLY[@]::${#COMPREPLY[@]}-1}); _cockpit_paths -f "$2" ;;
        *'<folders>') compopt -o filenames; COMPREPLY=(${COMPREPLY[@]::${#COMPREPLY[@]}-1}); _cockpit_paths -d "$2" ;;
        *=) compopt -o nospace ;;
    esac
}
_cockpit_paths() {
    local path
    while IFS= read -r path; do COMPREPLY+=("$path"); done < <(compgen "$1" -- "$2")
}
complete -F _cockpit cockpit
"""
_ZSH = """\
#compdef cockpit
# Completion of cockpit for zsh. Once: cockpit completion zsh > a folder of your $fpath/_cockpit
# or in ~/.zshrc, after compinit: source <(cockpit completion zsh)
_cockpit() {
    local -a found ended
    found=("${(@f)$(${~words[1]} completion zsh "${(j: :)words[1,CURRENT]}" 2>/dev/null)}")
    [[ $words[CURRENT] == --*=* && ${found[-1]} == '<'* ]] && compset -P '*='
    if [[ ${found[-1]} == '<files>' ]]; then _files; found=(${found[1,-2]}); fi
    if [[ ${found[-1]} == '<folders>' ]]; then _files -/; found=(${found[1,-2]}); fi
    ended=(${(M)found:#*=}) found=(${found:#*=})
    (( $#found )) && _describe -V cockpit found
    (( $#ended )) && compadd -S '' -- $ended
}
if [[ $funcstack[1] == _cockpit ]]; then _cockpit "$@"; else compdef _cockpit cockpit; fi
"""
_FISH = """\
# Completion of cockpit for fish. Once: cockpit completion fish > ~/.config/fish/completions/cockpit.fish
function __cockpit
    set -l command (commandline -opc)[1]
    for each in (eval $command completion fish (string escape -- (commandline -cp)) 2>/dev/null)
        switch $each
            case '<files>'
                __fish_complete_path (commandline -ct)
            case '<folders>'
                __fish_complete_directories (commandline -ct)
            case '*'
                echo $each
        end
    end
end
complete -c cockpit -f -k -a '(__cockpit)'
"""
SCRIPTS: Final = {BASH: _BASH, ZSH: _ZSH, FISH: _FISH}

_PLAIN: Final = re.compile(r"<?[\w@%+=:,./#-]+>?", re.ASCII)
"""Words that no shell reads as anything but themselves. Others are not offered: names come from outside."""
_LONGEST = 60
"""The largest number of characters in the description of a word."""


def words_on(line: str) -> tuple[list[str], str]:
    """Return the whole words of a line up to the cursor, and the word that is being typed."""
    # As the shell splits it, but an incomplete last word is no error.
    reader = shlex.shlex(line, posix=True, punctuation_chars=False)
    reader.whitespace_split, reader.commenters = True, ""
    words: list[str] = []
    try:
        while (word := reader.get_token()) is not None:
            words.append(word)
    except ValueError:  # a quote that is still open
        return words, reader.token
    # After a blank, the next word is still empty.
    if not words or line[-1:].isspace():
        return words, ""
    return words[:-1], words[-1]


def lines_for(shell: str, offers: Iterable[Completion], last: str) -> list[str]:
    """Return the offered words as the shell's script reads them."""
    # Others are left out, since the shell would interpret them when the line is run.
    plain = [each for each in offers if _PLAIN.fullmatch(each.word)]
    if shell == BASH:
        return [_behind_breaks(each.word, last) for each in plain]
    if shell == ZSH:
        return [_with_description(each.word.replace(":", "\\:"), each.about, ":") for each in plain]
    return [_with_description(each.word, each.about, "\t") for each in plain]


def _behind_breaks(word: str, last: str) -> str:
    """Return the part of a word behind `:` and `=`, where bash begins a new word."""
    # bash replaces only this part of the line by the completion.
    broken = re.match(r".*[:=]", last)
    return word.removeprefix(broken.group()) if broken else word


def _with_description(word: str, about: str, mark: str) -> str:
    text = safe(about).strip()
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return f"{word}{mark}{text}" if text and not word.startswith("<") else word


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=list(SCRIPTS), metavar="SHELL", help=", ".join(SCRIPTS))
    parser.add_argument("line", nargs="?", metavar="LINE", help="instead of the script: what may follow in this line")


async def run(call: Call) -> int:
    if call.args.line is None:
        call.streams.text(SCRIPTS[call.args.shell])
    else:
        await _complete(call)
    return ExitCode.OK


async def _complete(call: Call) -> None:
    from cockpit.headless.completing import place_behind
    from cockpit.headless.offers import BY_SHELL, Offers

    words, last = words_on(call.args.line)
    option, equals, value = last.partition("=")
    joined = bool(equals) and option.startswith("--")
    offers = Offers(place_behind([*words[1:], option] if joined else words[1:]), call.services)
    # Of `--option=value`, the value is completed as if it were a word of its own, and joined again below.
    try:
        completions = await offers.fitting(value if joined else last)
    finally:
        await offers.close()
    if joined:
        completions = [
            each if each in BY_SHELL else Completion(f"{option}={each.word}", each.about) for each in completions
        ]
    call.streams.lines(lines_for(call.args.shell, completions, last))


COMPLETION = Verb(
    arguments,
    run,
    (
        "cockpit completion bash > ~/.local/share/bash-completion/completions/cockpit",
        "cockpit completion fish > ~/.config/fish/completions/cockpit.fish",
        "cockpit completion fish 'cockpit cancel '",
    ),
)
