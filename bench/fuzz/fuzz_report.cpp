// Profiles that nobody trusts: whatever bytes come, reading them either gives a Profile that keeps
// its invariants, survives being written and read again, and can be shown, or is refused.
//
// The first byte chooses the width of the report and whether a function is asked for; the rest is
// the file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "report/json_cursor.h"
#include "report/json_reader.h"
#include "report/json_writer.h"
#include "report/text_report.h"

using namespace shadowprof;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view json(reinterpret_cast<const char*>(data) + 1, size - 1);
    report::Profile profile;
    try {
        profile = report::from_json(json);
    } catch (const report::JsonError&) {
        return 0;
    }
    if (report::defect_of(profile)) std::abort();
    if (!(report::from_json(report::to_json(profile)) == profile)) std::abort();

    report::TextOptions options;
    options.width = data[0] % 128;
    options.color = data[0] % 2;
    options.symbols.root = "/no/such/root";  // no file of this machine is opened
    options.symbols.debug_directories.clear();
    if (data[0] >= 128) options.function = "*";
    try {
        static_cast<void>(report::render_text(profile, options));
    } catch (const UserError&) {  // it names no functions
    }
    return 0;
}
