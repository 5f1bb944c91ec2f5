"""Completion in bash, zsh and fish: each shell is given the beginning of a command line, and offers what it should.

    completion.py SHADOWPROF"""

import os
import shutil
import subprocess
import sys
import tempfile

SHADOWPROF = os.path.abspath(sys.argv[1])

# The words of a command line, the last of which is to be completed; what must be offered, what must not.
CASES = [
    (["shadowprof", "re"], {"report"}, {"run", "merge"}),
    (["shadowprof", ""], {"run", "attach", "report", "compare", "diff", "check", "merge", "export", "doctor"}, set()),
    (["shadowprof", "--v"], {"--version"}, {"--help"}),
    (["shadowprof", "--completion", ""], {"bash", "zsh", "fish"}, {"run"}),
    (["shadowprof", "run", "--m"], {"--mode", "--max-samples"}, {"--top", "--overhead"}),
    (["shadowprof", "run", "--mode", ""], {"shadow", "auto", "instant", "burst", "full", "step"}, {"run"}),
    (["shadowprof", "run", "-m", "f"], {"full"}, {"step"}),
    (["shadowprof", "run", "--profile", "p"], {"path"}, {"edge"}),
    (["shadowprof", "attach", "-p", "path,e"], {"path,edge"}, {"path,value"}),
    (["shadowprof", "attach", str(os.getpid())[:-1]], {str(os.getpid())}, set()),
    (["shadowprof", "report", "pro"], {"profile.json"}, {"other.json"}),
    (["shadowprof", "report", "--html", "oth"], {"other.json"}, {"profile.json"}),
    (["shadowprof", "check", "--max-f"], {"--max-function"}, {"--max-latency"}),
    (["shadowprof", "check", "--format", "m"], {"markdown"}, {"text"}),
    (["shadowprof", "export", "--format", "call"], {"callgrind"}, {"pprof"}),
    (["shadowprof", "merge", "-o", "oth"], {"other.json"}, {"profile.json"}),
    (["shadowprof", "doctor", "--"], {"--help"}, {"--mode"}),
]
# The rest of the line is another command's, which gets no words of ours.
PROGRAM_CASES = [
    (["shadowprof", "run", "gzi"], {"gzip"}, {"--mode"}),
    (["shadowprof", "run", "-q", "--mode", "full", "gzi"], {"gzip"}, set()),
    (["shadowprof", "run", "--", "gzi"], {"gzip"}, set()),
    (["shadowprof", "run", "gzip", "--m"], set(), {"--mode", "--max-samples"}),
]
# bash takes "=" for a word of its own.
BASH_CASES = [
    (["shadowprof", "run", "--mode", "=", "b"], {"burst"}, {"full"}),
    (["shadowprof", "run", "--mode", "="], {"burst", "full"}, {"shadowprof"}),
    (["shadowprof", "run", "--mode", "=", "full", "gzi"], {"gzip"}, {"--mode"}),
]

BASH = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_shadowprof shadowprof "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
FISH = """
source $argv[1]
complete -C "$argv[2]"
"""
# zsh completes only where somebody types, so it gets a terminal. What is offered goes through compadd, which prints it
# between two lines of "--".
ZSH = r"""
zmodload zsh/zpty || exit 2
zpty shell zsh -f -i
zpty -w shell "PROMPT=; source $PWD/setup.zsh; source $1"
repeat 4; do zpty -r shell answer; [[ $answer == *ready* ]] && break; done
zpty -w shell "${@[2]}"$'\t'
integer marks=0
while zpty -r shell answer; do
    for line in ${(f)answer//$'\r'/}; do
        if [[ $line == "--mark" ]]; then
            (( marks++ )) && exit 0
        elif (( marks )); then
            print -r -- $line
        fi
    done
done
"""
ZSH_SETUP = r"""
autoload -Uz compinit
compinit -u -d $PWD/dump
bindkey '^M' undefined
bindkey '^J' undefined
bindkey '^I' complete-word
mark() { print -r -- $'\n--mark' }
compprefuncs=(mark)
comppostfuncs=(mark exit)
zstyle ':completion:*' insert-tab false
zstyle ':completion:*' verbose no
compadd() {
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
        builtin compadd "$@"
        return
    fi
    local -a hits
    builtin compadd -A hits "$@"
    (( $#hits )) && print -rl -- "" $IPREFIX$^hits
    builtin compadd "$@"
}
print ready
"""

def output(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False,
                          stdin=subprocess.DEVNULL, **more)
    return done.stdout, done.stderr


def offered_by_bash(script, words):
    said, errors = output(["bash", "--norc", "-c", BASH, "bash", script, *words])
    assert not errors, errors
    return set(said.split())


def offered_by_fish(script, words):
    line = " ".join(words)
    said, errors = output(["fish", "--no-config", "-c", FISH, script, line])
    assert not errors, errors
    return {offer.split("\t")[0] for offer in said.splitlines()}


def offered_by_zsh(script, words):
    said, errors = output(["zsh", "-f", "-c", ZSH, "zsh", script, " ".join(words)])
    assert not errors, errors
    return set(said.split())


def check(shell, words, offered, wanted, unwanted):
    lacking, wrong = wanted - offered, unwanted & offered
    if lacking or wrong:
        print(f"{shell}: {words}: not offered: {lacking}, wrongly offered: {wrong}; offered: {sorted(offered)[:20]}")
    return not lacking and not wrong


def main():
    right = True
    with tempfile.TemporaryDirectory(prefix="shadowprof-test-") as folder:
        os.chdir(folder)
        for name in ("profile.json", "other.json"):
            with open(name, "w", encoding="utf-8"):
                pass
        for shell in ("bash", "zsh", "fish"):
            script = os.path.join(folder, "script." + shell)
            text, errors = output([SHADOWPROF, "--completion", shell])
            assert text and not errors, errors
            with open(script, "w", encoding="utf-8") as file:
                file.write(text)
            if not shutil.which(shell):
                print(f"{shell} is not installed: its completion is not tested")
                continue
            mistakes = subprocess.run([shell, "-n", script], capture_output=True, text=True, check=False)
            assert mistakes.returncode == 0, mistakes.stderr
        for words, wanted, unwanted in CASES + PROGRAM_CASES + BASH_CASES:
            right &= check("bash", words, offered_by_bash(f"{folder}/script.bash", words), wanted, unwanted)
        with open("setup.zsh", "w", encoding="utf-8") as file:
            file.write(ZSH_SETUP)
        for shell, offered_by in (("fish", offered_by_fish), ("zsh", offered_by_zsh)):
            if not shutil.which(shell):
                continue
            for words, wanted, unwanted in CASES + PROGRAM_CASES:
                right &= check(shell, words, offered_by(f"{folder}/script.{shell}", words), wanted, unwanted)
        os.chdir("/")
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
