#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/output_file.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/input.h"
#include "cli/page.h"
#include "cli/units.h"
#include "report/compare/compare_json.h"
#include "report/compare/compare_text.h"

namespace shadowprof::cli {

namespace {

struct CompareOptions {
    std::string sampled;
    std::string perfect;
    bool json = false;
    bool functions = false;
    std::size_t top = 10;
    bool no_color = false;
};

int compare(const CompareOptions& options) {
    const auto comparison = report::compare({options.sampled, read_profile(options.sampled)},
                                            {options.perfect, read_profile(options.perfect)});
    report::CompareTextOptions text;
    text.width = page_width();
    text.color = wants_color(options.no_color);
    text.functions = options.functions;
    text.top = options.top;
    write_to_stdout(options.json ? report::to_json(comparison)
                                 : report::render_comparison(comparison, text));
    return static_cast<int>(ExitStatus::fine);
}

}  // namespace

void add_compare(CLI::App& app, Action& action) {
    auto options = std::make_shared<CompareOptions>();
    auto* command = app.add_subcommand("compare", "Measure how accurate a sampled profile is");
    command->add_option("SAMPLED", options->sampled, "The profile to judge")
        ->required()
        ->type_name(file_type);
    command
        ->add_option("PERFECT", options->perfect,
                     "A profile of the whole run, which is what really happened")
        ->required()
        ->type_name(file_type);
    command->add_flag("--json", options->json, "Print JSON, with all functions");
    command->add_flag("--functions", options->functions, "Show each function by itself as well");
    add_rows(*command, options->top, "Functions that are shown");
    command->add_flag("--no-color", options->no_color,
                      "Print plain text (so does NO_COLOR in the environment)");
    command->callback([&action, options] { action = [options] { return compare(*options); }; });
}

}  // namespace shadowprof::cli
