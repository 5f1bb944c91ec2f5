// Profiles that nobody trusts: whatever bytes come, reading them either gives a Profile that keeps
// its invariants, survives being written and read again, can be shown, and compared with itself is
// perfect; or it is refused.
//
// The first byte chooses the width of the report and whether a function is asked for; the rest is
// the file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "report/compare_json.h"
#include "report/compare_text.h"
#include "report/json_cursor.h"
#include "report/json_reader.h"
#include "report/json_writer.h"
#include "report/text_report.h"

using namespace shadowprof;

namespace {

void compare_with_itself(const report::Profile& profile, std::size_t width) {
    const auto c = report::compare({"a", profile}, {"b", profile});
    const bool perfect = (!c.paths.measure || c.paths.measure->accuracy.value == 1) &&
                         (!c.calls.measure || c.calls.measure->accuracy.value == 1) &&
                         (!c.values.measure || c.values.measure->difference.value == 0);
    if (!perfect) std::abort();
    report::CompareTextOptions options;
    options.width = width;
    options.functions = true;
    static_cast<void>(report::render_comparison(c, options));
    static_cast<void>(report::to_json(c));
}

}  // namespace

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
    try {
        compare_with_itself(profile, options.width);
    } catch (const UserError&) {  // it is empty, or has an entry twice
    }
    return 0;
}
