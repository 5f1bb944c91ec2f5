# Completion of shadowprof's commands and options for bash.

_shadowprof() {
    local current=$2 previous=$3 command="" at
    local commands="run attach report compare diff check merge export doctor"
    local sampling="--output --mode --profile --sample-size --load --overhead --period --duration
        --max-samples --until-converged --exhaustive --aslr --cache --value-context --limit --seed --quiet --verbose --no-progress --help"
    COMPREPLY=()

    # The command, and for run the place where the program's own words begin.
    for ((at = 1; at < COMP_CWORD; at++)); do
        if [ -z "$command" ]; then
            case ${COMP_WORDS[at]} in
                -*) ;;
                *) command=${COMP_WORDS[at]} ;;
            esac
        elif [ "$command" = run ]; then
            case ${COMP_WORDS[at]} in
                --)
                    _shadowprof_program $((at + 1))
                    return
                    ;;
                -o | --output | -m | --mode | -p | --profile | --sample-size | --load | --overhead | --period | \
                    --duration | --max-samples | --until-converged | --limit | --seed) at=$((at + 1)) ;;
                -*) ;;
                *)
                    _shadowprof_program "$at"
                    return
                    ;;
            esac
        fi
    done

    case $previous in
        -o | --output)
            _shadowprof_files "$current"
            return
            ;;
        -m | --mode)
            mapfile -t COMPREPLY < <(compgen -W "shadow burst full step" -- "$current")
            return
            ;;
        -p | --profile)
            mapfile -t COMPREPLY < <(compgen -W "all path edge call method value latency" -- "$current")
            return
            ;;
    esac

    case $command in
        "") mapfile -t COMPREPLY < <(compgen -W "$commands --version --help" -- "$current") ;;
        run)
            case $current in
                -*) mapfile -t COMPREPLY < <(compgen -W "$sampling" -- "$current") ;;
                *) mapfile -t COMPREPLY < <(compgen -c -- "$current") ;;
            esac
            ;;
        attach)
            case $current in
                -*) mapfile -t COMPREPLY < <(compgen -W "$sampling" -- "$current") ;;
                *) mapfile -t COMPREPLY < <(cd /proc && compgen -G "${current:-[0-9]}*" | grep -x '[0-9]*') ;;
            esac
            ;;
        report)
            case $current in
                -*) mapfile -t COMPREPLY < <(compgen -W "--top --function --html --no-color --help" -- "$current") ;;
                *) _shadowprof_files "$current" ;;
            esac
            ;;
        compare)
            case $current in
                -*) mapfile -t COMPREPLY < <(compgen -W "--json --functions --top --no-color --help" -- "$current") ;;
                *) _shadowprof_files "$current" ;;
            esac
            ;;
        diff | check)
            case $previous in
                --format)
                    mapfile -t COMPREPLY < <(compgen -W "text markdown json github-action-benchmark bencher" -- "$current")
                    return
                    ;;
            esac
            case $current in
                -*) mapfile -t COMPREPLY < <(compgen -W "--format --markdown --json --top --min-share --any-machine
                    --no-color --help $([ "$command" = check ] &&
                        echo --max-instructions --max-function --max-any-function --max-latency)" -- "$current") ;;
                *) _shadowprof_files "$current" ;;
            esac
            ;;
        merge)
            case $current in
                -*) mapfile -t COMPREPLY < <(compgen -W "--output --help" -- "$current") ;;
                *) _shadowprof_files "$current" ;;
            esac
            ;;
        export)
            case $previous in
                --format)
                    mapfile -t COMPREPLY < <(compgen -W "collapsed speedscope pprof callgrind bolt bolt-preaggregated
                        autofdo llvm-profgen llvm" -- "$current")
                    return
                    ;;
            esac
            case $current in
                -*) mapfile -t COMPREPLY < <(compgen -W "--format --output --module --help" -- "$current") ;;
                *) _shadowprof_files "$current" ;;
            esac
            ;;
        doctor) mapfile -t COMPREPLY < <(compgen -W "--help" -- "$current") ;;
    esac
}

_shadowprof_files() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

# The rest of the line is another command's.
_shadowprof_program() {
    if declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    elif [ "$COMP_CWORD" = "$1" ]; then
        mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
    else
        _shadowprof_files "${COMP_WORDS[COMP_CWORD]}"
    fi
}

complete -F _shadowprof shadowprof
