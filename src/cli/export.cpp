#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/output_file.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/console.h"
#include "cli/input.h"
#include "cli/units.h"
#include "cli/weight.h"
#include "report/exports/exports.h"
#include "report/views/certainty.h"

namespace shadowprof::cli {

namespace {

struct ExportCommandOptions {
    std::string profile, format, output;
    report::ExportOptions more;
};

const report::Exporter& exporter_of(const std::string& format) {
    for (const auto& e : report::exporters())
        if (e.name == format) return e;
    std::string known;
    for (const auto& e : report::exporters()) known += fmt::format(" {}", e.name);
    throw UserError(fmt::format("there is no format {}; the formats are:{}", format, known),
                    ExitStatus::bad_usage);
}

int export_profile(const ExportCommandOptions& options) {
    const auto& exporter = exporter_of(options.format);
    if (options.more.weight && !exporter.has_weight)
        throw UserError(fmt::format("--weight is for formats of stacks; {} has counts of branches",
                                    exporter.name),
                        ExitStatus::bad_usage);
    if (!options.output.empty()) check_writable(options.output);
    const auto profile = read_profile(options.profile);
    const auto out = exporter.run(profile, options.more);
    if (options.output.empty())
        write_to_stdout(out.text);
    else
        write_file(options.output, out.text);
    for (const auto& note : out.notes) say("{}", note);
    if (const auto text = report::shortage_text(profile); !text.empty()) say("{}", text);
    return static_cast<int>(ExitStatus::fine);
}

}  // namespace

void add_export(CLI::App& app, Action& action) {
    auto options = std::make_shared<ExportCommandOptions>();
    auto* command = app.add_subcommand("export", "Convert a profile for other tools");
    std::string formats = "Formats:";
    for (const auto& e : report::exporters())
        formats += fmt::format("\n  {:<19}{}", e.name, e.about);
    command->footer(formats);
    std::vector<std::string> names;
    for (const auto& e : report::exporters()) names.emplace_back(e.name);
    command->add_option("--format", options->format, "A format, see below")
        ->required()
        ->type_name("FORMAT")
        ->check(suggest(names));
    command
        ->add_option("-o,--output", options->output,
                     "The converted file (standard output if there is none)")
        ->transform(output_name())
        ->type_name(file_type);
    command->add_option(
        "--module", options->more.module,
        "The program or library to convert, for formats that hold a single one (by default "
        "the program)");
    add_weight(*command, options->more.weight,
               "What stacks and functions cost: time (by default, where the clock looked) or "
               "instructions");
    command->add_option("PROFILE", options->profile, "The profile file")
        ->default_str("shadowprof.json")
        ->type_name(file_type);
    command->callback([&action, options] {
        if (options->profile.empty()) options->profile = "shadowprof.json";
        action = [options] { return export_profile(*options); };
    });
}

}  // namespace shadowprof::cli
