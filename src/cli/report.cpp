#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/output_file.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/input.h"
#include "cli/page.h"
#include "cli/units.h"
#include "cli/weight.h"
#include "report/page/page.h"
#include "report/text/text_report.h"
#include "report/views/processes.h"

namespace shadowprof::cli {

namespace {

struct ReportOptions {
    std::string profile;
    std::size_t top = 10;
    std::optional<std::string> function, process;
    std::string html;
    bool no_color = false;
    bool anyway = false;
    bool all_code = false;
    std::optional<report::Weight> weight;
};

int report(const ReportOptions& options) {
    if (!options.html.empty()) check_writable(options.html);
    auto profile = read_profile(options.profile);
    if (options.process) profile = report::cut_to_process(std::move(profile), *options.process);
    if (!options.html.empty()) {
        write_file(options.html,
                   report::render_page(profile, {},
                                       {.all_code = options.all_code, .weight = options.weight}));
        return static_cast<int>(ExitStatus::fine);
    }
    report::TextOptions text;
    text.top = options.top;
    text.width = page_width();
    text.color = wants_color(options.no_color);
    text.function = options.function;
    text.anyway = options.anyway;
    text.all_code = options.all_code;
    text.weight = options.weight;
    write_to_stdout(report::render_text(profile, text));
    return static_cast<int>(ExitStatus::fine);
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
    auto options = std::make_shared<ReportOptions>();
    auto* command = app.add_subcommand("report", "Show a profile");
    command->add_option("PROFILE", options->profile, "The profile file")
        ->default_str("shadowprof.json")
        ->type_name(file_type);
    add_rows(*command, options->top, "Rows in each table");
    command->add_flag("--all-code", options->all_code,
                      "Opportunities also in libraries of the system");
    command->add_flag("--anyway", options->anyway,
                      "Show tables even if there are too few samples for any share in them");
    command->add_option(
        "--function", options->function,
        "Show the annotated code of one function: its name, a part of it, or a pattern");
    command->add_option(
        "--process", options->process,
        "Show what was seen of one process: its number, or the name of its program");
    add_weight(*command, options->weight,
               "What comes first: time (by default, where the clock looked) or instructions");
    command
        ->add_option("--html", options->html,
                     "Write the report as one HTML file that needs no network")
        ->transform(output_name())
        ->type_name(file_type);
    command->add_flag("--no-color", options->no_color,
                      "Print plain text (so does NO_COLOR in the environment)");
    command->callback([&action, options] {
        if (options->profile.empty()) options->profile = "shadowprof.json";
        action = [options] { return report(*options); };
    });
}

}  // namespace shadowprof::cli
