#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "report/json_reader.h"
#include "report/text_report.h"

namespace shadowprof::cli {

namespace {

struct ReportOptions {
    std::string profile;
    std::size_t top = 10;
    std::optional<std::string> function;
    bool no_color = false;
};

// Wide enough for the tables even where no terminal says how wide it is.
std::size_t terminal_width() {
    if (const char* columns = std::getenv("COLUMNS"))
        if (const auto width = std::strtoul(columns, nullptr, 10); width >= 20) return width;
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) return size.ws_col;
    return 100;
}

bool wants_color(bool forbidden) {
    const char* no_color = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    return !forbidden && !(no_color && *no_color) && isatty(STDOUT_FILENO) &&
           !(term && std::string{term} == "dumb");
}

int report(const ReportOptions& options) {
    const auto profile = report::read_profile(options.profile);
    report::TextOptions text;
    text.top = options.top;
    text.width = terminal_width();
    text.color = wants_color(options.no_color);
    text.function = options.function;
    const auto page = report::render_text(profile, text);
    // A reader that goes away (report | head) is not an error.
    std::fwrite(page.data(), 1, page.size(), stdout);
    std::fflush(stdout);
    return static_cast<int>(ExitStatus::fine);
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
    auto options = std::make_shared<ReportOptions>();
    auto* command = app.add_subcommand("report", "Read a profile as a person");
    command->add_option("PROFILE", options->profile, "The profile file")
        ->default_str("shadowprof.json");
    command->add_option("--top", options->top, "Rows in each table")->capture_default_str();
    command->add_option("--function", options->function,
                        "Annotated listing of one function: its name, a part of it, or a pattern");
    command->add_flag("--no-color", options->no_color, "Plain text (also: NO_COLOR)");
    command->callback([&action, options] {
        if (options->profile.empty()) options->profile = "shadowprof.json";
        action = [options] { return report(*options); };
    });
}

}  // namespace shadowprof::cli
