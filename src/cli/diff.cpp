#include "cli/diff.h"

#include "base/error.h"
#include "base/output_file.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/input.h"
#include "cli/page.h"
#include "cli/units.h"
#include "report/diff/diff_json.h"
#include "report/diff/diff_text.h"

namespace shadowprof::cli {

void DiffOutput::add_options(CLI::App& command) {
    command.add_option("--format", format, "How the differences are written")
        ->check(CLI::IsMember({"text", "markdown", "json", "github-action-benchmark", "bencher"}))
        ->capture_default_str();
    command.add_flag_callback(
        "--markdown", [this] { format = "markdown"; },
        "The same as --format markdown, for a comment on a pull request");
    command.add_flag_callback(
        "--json", [this] { format = "json"; }, "The same as --format json");
    add_rows(command, top, "Rows in each table");
    command
        .add_option("--min-share", least_share,
                    "Functions with a smaller share of the instructions are not judged one by one")
        ->transform([](const std::string& text) { return std::to_string(parse_share(text)); })
        ->default_str("0.1%");
    command.add_flag("--any-machine", any_machine, "Compare even if the processors differ");
    command.add_flag("--no-color", no_color,
                     "Print plain text (so does NO_COLOR in the environment)");
}

void DiffOutput::print(const report::Diff& diff, const report::GateResult* gate) const {
    if (format == "json") return write_to_stdout(report::to_json(diff, gate));
    if (format == "markdown") return write_to_stdout(report::render_diff_markdown(diff, gate, top));
    if (format == "github-action-benchmark")
        return write_to_stdout(report::to_github_action_benchmark(diff, least_share));
    if (format == "bencher") return write_to_stdout(report::to_bencher(diff, least_share));
    report::DiffTextOptions text;
    text.width = page_width();
    text.color = wants_color(no_color);
    text.top = top;
    write_to_stdout(report::render_diff(diff, gate, text));
}

model::NamedProfile named_profile(const std::string& file) {
    return {file, read_profile(file)};
}

namespace {

struct DiffOptions {
    std::string base, now;
    DiffOutput output;
};

int diff(const DiffOptions& options) {
    const std::vector<model::NamedProfile> bases{named_profile(options.base)};
    const auto now = named_profile(options.now);
    options.output.print(report::diff(bases, now, {options.output.any_machine}), nullptr);
    return static_cast<int>(ExitStatus::fine);
}

}  // namespace

void add_diff(CLI::App& app, Action& action) {
    auto options = std::make_shared<DiffOptions>();
    auto* command =
        app.add_subcommand("diff", "Show what changed between two profiles of a program");
    command->add_option("BASE", options->base, "The profile before the change")
        ->required()
        ->type_name(file_type);
    command->add_option("NEW", options->now, "The profile after the change")
        ->required()
        ->type_name(file_type);
    options->output.add_options(*command);
    command->callback([&action, options] { action = [options] { return diff(*options); }; });
}

}  // namespace shadowprof::cli
