#include "model/merge.h"

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/output_file.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/input.h"
#include "cli/units.h"
#include "model/profile_file.h"

namespace shadowprof::cli {

namespace {

struct MergeOptions {
    std::string output;
    std::vector<std::string> profiles;
};

int merge(const MergeOptions& options) {
    check_writable(options.output);
    model::Merger merger;
    for (const auto& file : options.profiles) merger.add({file, read_profile(file)});
    model::write_profile(merger.take(), options.output);
    return static_cast<int>(ExitStatus::fine);
}

}  // namespace

void add_merge(CLI::App& app, Action& action) {
    auto options = std::make_shared<MergeOptions>();
    auto* command = app.add_subcommand("merge", "Merge profiles of a program into one");
    command->add_option("-o,--output", options->output, "The merged profile")
        ->required()
        ->transform(output_name())
        ->type_name(file_type);
    command
        ->add_option("PROFILE", options->profiles,
                     "Profiles that were taken with the same options, on any machines")
        ->required()
        ->type_name(file_type);
    command->callback([&action, options] { action = [options] { return merge(*options); }; });
}

}  // namespace shadowprof::cli
