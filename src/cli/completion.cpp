#include "cli/completion.h"

#include <fmt/format.h>

#include <map>

namespace shadowprof::cli {

namespace {

enum class ValueKind { none, anything, file, process, words, command_line };

struct Option {
    std::vector<std::string> names;  // with their dashes; of an argument its only name
    std::string type;                // as --help shows it
    std::string help;                // one line
    ValueKind kind = ValueKind::none;
    std::vector<std::string> words;
    bool takes_list = false;  // of words, with commas between them
    bool repeats = false;
};

struct Command {
    std::string name, help;
    std::vector<Option> options;
    std::vector<Option> arguments;
};

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream all{text};
    for (std::string part; std::getline(all, part, separator);) parts.push_back(part);
    return parts;
}

std::string join(const std::vector<std::string>& parts, const std::string& separator) {
    return fmt::format("{}", fmt::join(parts, separator));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
    return text;
}

Option option_of(const CLI::App& command, const CLI::Option& declared) {
    Option option;
    option.help = replaced(declared.get_description(), "\n", " ");
    for (const auto& name : declared.get_lnames()) option.names.push_back("--" + name);
    for (const auto& name : declared.get_snames()) option.names.push_back("-" + name);
    const bool is_argument = declared.get_positional();
    if (is_argument) option.names = {declared.get_name(true)};
    if (declared.get_items_expected_max() == 0) return option;

    const auto type = declared.get_type_name();  // TYPE or TYPE:{word,word}
    option.type = type.substr(0, type.find(':'));
    option.takes_list = declared.get_delimiter() != '\0';
    option.repeats = declared.get_items_expected_max() > 1;
    const auto opening = type.find('{'), closing = type.find('}');
    if (closing != std::string::npos) {
        option.words = split(type.substr(opening + 1, closing - opening - 1), ',');
        option.kind = ValueKind::words;
    } else if (is_argument && command.get_positionals_at_end()) {
        option.kind = ValueKind::command_line;
    } else {
        option.kind = option.type == file_type      ? ValueKind::file
                      : option.type == process_type ? ValueKind::process
                                                    : ValueKind::anything;
    }
    return option;
}

Command command_of(const CLI::App& app) {
    Command command{app.get_name(), app.get_description(), {}, {}};
    for (const auto* declared : app.get_options())
        (declared->get_positional() ? command.arguments : command.options)
            .push_back(option_of(app, *declared));
    return command;
}

std::vector<Command> commands_of(const CLI::App& app) {
    std::vector<Command> commands;
    for (const auto* command : app.get_subcommands({})) commands.push_back(command_of(*command));
    return commands;
}

std::vector<std::string> option_names(const Command& command) {
    std::vector<std::string> names;
    for (const auto& option : command.options) names.push_back(option.names.front());
    return names;
}

std::string quoted(const std::string& text) {
    return "'" + replaced(text, "'", "'\\''") + "'";
}

// bash

// How a value is completed, in the words of _shadowprof_values.
std::string bash_values(const Option& option) {
    switch (option.kind) {
        case ValueKind::none:
            return "";
        case ValueKind::anything:
            return "anything";
        case ValueKind::file:
            return "file";
        case ValueKind::process:
            return "process";
        case ValueKind::command_line:
            return "command_line";
        case ValueKind::words:
            return (option.takes_list ? "list " : "words ") + join(option.words, " ");
    }
    return "";
}

std::string bash_case(const std::string& pattern, const std::string& answer) {
    return fmt::format("        {}) echo \"{}\" ;;\n", pattern, answer);
}

std::string bash_table(const std::string& function, const std::string& what,
                       const std::string& cases) {
    return fmt::format("{}() {{\n    case {} in\n{}    esac\n}}\n\n", function, what, cases);
}

constexpr const char* bash_rest = R"bash(# _shadowprof_values KIND WORD [WHAT...]
_shadowprof_values() {
    local kind=$1 current=$2 before=""
    shift 2
    case $kind in
        file)
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
            ;;
        process) mapfile -t COMPREPLY < <(cd /proc && compgen -G "$current*" | grep -x '[0-9]*') ;;
        words) mapfile -t COMPREPLY < <(compgen -W "$*" -- "$current") ;;
        list)
            case $current in *,*) before=${current%,*}, ;; esac
            mapfile -t COMPREPLY < <(compgen -P "$before" -W "$*" -- "${current##*,}")
            ;;
        command_line) mapfile -t COMPREPLY < <(compgen -c -- "$current") ;;
    esac
}

# The rest of the line, from that word on, is another command's.
_shadowprof_command_line() {
    if declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    elif [ "$COMP_CWORD" = "$1" ]; then
        _shadowprof_values command_line "${COMP_WORDS[COMP_CWORD]}"
    else
        _shadowprof_values file "${COMP_WORDS[COMP_CWORD]}"
    fi
}

_shadowprof() {
    local at command="" kind word
    COMPREPLY=()
    for ((at = 1; at < COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]}
        if [ -z "$command" ]; then
            case $word in -*) ;; *) command=$word ;; esac
        elif [ "$(_shadowprof_argument "$command")" = command_line ]; then
            case $word in
                --)
                    _shadowprof_command_line $((at + 1))
                    return
                    ;;
                -*)
                    [ -n "$(_shadowprof_value "$command $word")" ] && at=$((at + 1))
                    [ "${COMP_WORDS[at]}" = "=" ] && at=$((at + 1))
                    ;;
                *)
                    _shadowprof_command_line "$at"
                    return
                    ;;
            esac
        fi
    done

    # bash makes three words of --option=value.
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    if [ "$current" = "=" ]; then
        current=""
    elif [ "$previous" = "=" ]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    kind=$(_shadowprof_value "$command $previous")
    if [ -z "$kind" ]; then
        case $current in
            -*) kind="words $(_shadowprof_options "$command")" ;;
            *) kind=$(_shadowprof_argument "$command") ;;
        esac
    fi
    # shellcheck disable=SC2086  # a kind and its words
    set -- $kind
    [ $# = 0 ] || _shadowprof_values "$1" "$current" "${@:2}"
}

complete -F _shadowprof shadowprof
)bash";

std::string for_bash(const CLI::App& app) {
    const auto commands = commands_of(app);
    auto general = command_of(app);
    std::string options, values, arguments, names;
    const auto add = [&](const Command& command) {
        options += bash_case(quoted(command.name), join(option_names(command), " "));
        for (const auto& option : command.options) {
            if (option.kind == ValueKind::none) continue;
            std::string patterns;
            for (const auto& name : option.names)
                patterns += (patterns.empty() ? "" : " | ") + quoted(command.name + " " + name);
            values += bash_case(patterns, bash_values(option));
        }
        if (!command.arguments.empty())
            arguments += bash_case(quoted(command.name), bash_values(command.arguments.front()));
    };
    for (const auto& command : commands) {
        names += " " + command.name;
        add(command);
    }
    general.name.clear();
    add(general);
    arguments += bash_case("''", "words" + names);
    return "# Completion of shadowprof for bash, written by: shadowprof --completion bash\n\n" +
           bash_table("_shadowprof_options", "$1", options) +
           bash_table("_shadowprof_value", "$1", values) +
           bash_table("_shadowprof_argument", "$1", arguments) + bash_rest;
}

// zsh

std::string zsh_action(const Option& option) {
    switch (option.kind) {
        case ValueKind::none:
            return "";
        case ValueKind::anything:
            return " ";
        case ValueKind::file:
            return "_files";
        case ValueKind::process:
            return "{compadd -- /proc/<1->(\\:t)}";  // _pids would list few processes
        case ValueKind::command_line:
            return "_normal";
        case ValueKind::words:
            return option.takes_list ? "_values -s , " + option.type + " " + join(option.words, " ")
                                     : "(" + join(option.words, " ") + ")";
    }
    return "";
}

std::string zsh_option(const Option& option) {
    auto help = option.help;
    for (const char* special : {"\\", "[", "]", ":"})
        help = replaced(help, special, std::string{"\\"} + special);
    auto what = "[" + help + "]";
    if (option.kind != ValueKind::none) what += ":" + option.type + ":" + zsh_action(option);
    const auto prefix = option.repeats ? "*" : "(" + join(option.names, " ") + ")";
    std::string text;
    for (const auto& name : option.names) {
        const auto joins = option.kind != ValueKind::none && name.starts_with("--") ? "=" : "";
        text += " \\\n                " + quoted(prefix + name + joins + what);
    }
    return text;
}

std::string zsh_argument(const Option& argument) {
    if (argument.kind == ValueKind::command_line)
        return " \\\n                '(-)1:program: _command_names -e' '*::arguments: _normal'";
    return " \\\n                " + quoted((argument.repeats ? "*:" : ":") +
                                            argument.names.front() + ":" + zsh_action(argument));
}

std::string for_zsh(const CLI::App& app) {
    std::string commands, cases, options;
    for (const auto& command : commands_of(app)) {
        commands += "                " +
                    quoted(command.name + ":" + replaced(command.help, ":", "\\:")) + "\n";
        cases += "                " + command.name + ")\n            _arguments -s -S";
        for (const auto& option : command.options) cases += zsh_option(option);
        for (const auto& argument : command.arguments) cases += zsh_argument(argument);
        cases += "\n            ;;\n";
    }
    for (const auto& option : command_of(app).options) options += zsh_option(option);
    return "#compdef shadowprof\n"
           "# Completion of shadowprof for zsh, written by: shadowprof --completion zsh\n\n"
           "_shadowprof() {\n"
           "    local curcontext=$curcontext state line\n"
           "    typeset -A opt_args\n"
           "    _arguments -C" +
           options +
           " \\\n                ': :->command' '*:: :->arguments'\n"
           "    case $state in\n"
           "        command)\n"
           "            local -a commands=(\n" +
           commands +
           "            )\n"
           "            _describe command commands\n"
           "            ;;\n"
           "        arguments)\n"
           "            case $words[1] in\n" +
           cases +
           "            esac\n"
           "            ;;\n"
           "    esac\n"
           "}\n\n"
           "if [ \"$funcstack[1]\" = _shadowprof ]; then\n"
           "    _shadowprof \"$@\"\n"
           "else\n"
           "    compdef _shadowprof shadowprof\n"
           "fi\n";
}

// fish

std::string fish_quoted(const std::string& text) {
    return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

std::string fish_value(const Option& option) {
    switch (option.kind) {
        case ValueKind::none:
            return "";
        case ValueKind::anything:
            return " -x";
        case ValueKind::file:
            return " -r -F";
        case ValueKind::process:
            return " -x -a '(__fish_complete_pids)'";
        case ValueKind::command_line:
            return "";
        case ValueKind::words:
            return " -x -a " + fish_quoted(option.takes_list
                                               ? "(__fish_complete_list , 'printf \"%s\\n\" " +
                                                     join(option.words, " ") + "')"
                                               : join(option.words, " "));
    }
    return "";
}

std::string fish_option(const std::string& condition, const Option& option) {
    auto text = "complete -c shadowprof -n " + condition;
    for (const auto& name : option.names)
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    return text + fish_value(option) + " -d " + fish_quoted(option.help) + "\n";
}

constexpr const char* fish_begin =
    R"fish(# Completion of shadowprof for fish, written by: shadowprof --completion fish

# __shadowprof_before_program COMMAND OPTION...: the command's program is still to come. These options have values.
function __shadowprof_before_program
    set -l words (commandline -opc)
    set -e words[1]
    test "$words[1]" = $argv[1]; or return 1
    set -e words[1]
    while set -q words[1]
        if contains -- $words[1] $argv
            set -e words[1]
        else if test $words[1] = --; or not string match -q -- '-*' $words[1]
            return 1
        end
        set -e words[1]
    end
end

complete -c shadowprof -f
)fish";

std::string for_fish(const CLI::App& app) {
    std::string text = fish_begin;
    for (const auto& option : command_of(app).options)
        text += fish_option("__fish_use_subcommand", option);
    for (const auto& command : commands_of(app)) {
        std::string with_values;
        for (const auto& option : command.options)
            if (option.kind != ValueKind::none) with_values += " " + join(option.names, " ");
        const bool runs_program =
            !command.arguments.empty() && command.arguments.front().kind == ValueKind::command_line;
        const auto seen = fish_quoted("__fish_seen_subcommand_from " + command.name);
        const auto chosen =
            runs_program ? fish_quoted("__shadowprof_before_program " + command.name + with_values)
                         : seen;
        text += "\ncomplete -c shadowprof -n __fish_use_subcommand -a " + command.name + " -d " +
                fish_quoted(command.help) + "\n";
        for (const auto& option : command.options) text += fish_option(chosen, option);
        if (command.arguments.empty()) continue;
        text +=
            "complete -c shadowprof -n " + seen +
            (runs_program ? " -x -a '(__fish_complete_subcommand --fcs-skip=2" + with_values + ")'"
                          : fish_value(command.arguments.front())) +
            "\n";
    }
    return text;
}

const std::map<std::string, std::string (*)(const CLI::App&)> shells{
    {"bash", for_bash}, {"fish", for_fish}, {"zsh", for_zsh}};

}  // namespace

CLI::Validator suggest(const std::vector<std::string>& words) {
    return {[](std::string&) { return std::string{}; }, "{" + join(words, ",") + "}"};
}

void add_completion(CLI::App& app) {
    std::vector<std::string> names;
    for (const auto& [name, write] : shells) names.push_back(name);
    app.add_option_function<std::string>(
           "--completion",
           [&app](const std::string& shell) {
               auto script = shells.at(shell)(app);
               script.pop_back();                     // its last line is ended when it is printed
               throw CLI::CallForVersion{script, 0};  // printed as --version is: no command follows
           },
           "Print what makes this shell complete shadowprof's command lines")
        ->check(CLI::IsMember(names))
        ->type_name("SHELL");
}

}  // namespace shadowprof::cli
