#include "cli/modules.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "cli/version.h"

namespace shadowprof::cli {

namespace {

namespace fs = std::filesystem;

// Those that come with shadowprof are in their place, or beside a binary that is not installed.
std::vector<fs::path> folders() {
    std::error_code error;
    const auto here = fs::read_symlink("/proc/self/exe", error).parent_path();
    return {here / "modules", module_folder};
}

std::string file_of(const std::string& name) {
    if (name.find('/') != name.npos || name.ends_with(".so")) {
        std::error_code error;
        if (!fs::exists(name, error))
            throw UserError(fmt::format("--module {}: there is no such file", name),
                            ExitStatus::bad_usage);
        if (!fs::is_regular_file(name, error))  // opening a pipe would wait for its writer
            throw UserError(fmt::format("--module {}: it is no file", name), ExitStatus::bad_usage);
        return fs::absolute(name, error).string();
    }
    for (const auto& folder : folders()) {
        std::error_code error;
        const auto file = folder / (name + ".so");
        if (fs::exists(file, error)) return file.string();
    }
    throw UserError(fmt::format("--module {}: there is no such module in {}; a file of your own "
                                "is named with its folder, as in ./{}.so",
                                name, module_folder, name),
                    ExitStatus::bad_usage);
}

}  // namespace

void load_modules(const std::vector<std::string>& texts, profile::ModuleSet& into) {
    for (const auto& text : texts) {
        const auto colon = text.find(':');
        const auto file = file_of(text.substr(0, colon));
        into.load(file, colon == text.npos ? "" : text.substr(colon + 1));
    }
}

}  // namespace shadowprof::cli
