#include "cli/weight.h"

#include "cli/completion.h"

namespace shadowprof::cli {

void add_weight(CLI::App& command, std::optional<report::Weight>& weight, const std::string& help) {
    std::vector<std::string> names;
    for (const auto& [kind, name] : names_of(report::Weight{})) names.emplace_back(name);
    command
        .add_option_function<std::string>(
            "--weight",
            [&weight](const std::string& text) {
                for (const auto& [kind, name] : names_of(report::Weight{}))
                    if (name == text) weight = kind;
                if (!weight)
                    throw CLI::ValidationError("'" + text + "' is neither time nor instructions");
            },
            help)
        ->type_name("WEIGHT")
        ->check(suggest(names));
}

}  // namespace shadowprof::cli
