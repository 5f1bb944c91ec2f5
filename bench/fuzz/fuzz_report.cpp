// Profiles that nobody trusts. Any bytes are either refused, or they give a Profile that keeps its
// invariants, is the same after writing and reading, and can be shown. Compared with itself it is
// perfect, merged with itself it is the same in any grouping, and it does not differ from itself.
//
// The first byte chooses the width of the report and whether one function is shown; the rest is the
// file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

#include "base/error.h"
#include "model/json_cursor.h"
#include "model/merge.h"
#include "model/profile_file.h"
#include "profile/doubts.h"
#include "profile/registry.h"
#include "report/compare/compare_json.h"
#include "report/compare/compare_text.h"
#include "report/diff/diff_json.h"
#include "report/diff/diff_text.h"
#include "report/exports/exports.h"
#include "report/text/text_report.h"

using namespace shadowprof;

namespace {

void compare_with_itself(const model::Profile& profile, std::size_t width) {
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

// Merged with itself in either grouping a profile is the same to the byte, and it does not differ
// from itself.
void merge_with_itself(const model::Profile& profile) {
    const auto merged = [](std::initializer_list<const model::Profile*> all) {
        model::Merger merger;
        for (const auto* p : all) merger.add({"a", *p});
        return merger.take();
    };
    const auto twice = merged({&profile, &profile});
    const auto left = merged({&twice, &profile}), right = merged({&profile, &twice});
    if (model::to_json(left) != model::to_json(right)) std::abort();
    if (model::to_json(merged({&profile, &profile, &profile})) != model::to_json(left))
        std::abort();
    if (!(profile::from_json(model::to_json(left)) == left)) std::abort();
}

void diff_with_itself(const model::Profile& profile, std::size_t width) {
    const auto d = report::diff({{"a", profile}}, {"b", profile});
    for (const auto& list : d.lists)
        for (const auto& c : list.changes)
            if (c.is_real()) std::abort();
    if (!d.values.empty()) std::abort();
    report::DiffTextOptions options;
    options.width = width;
    static_cast<void>(report::render_diff(d, nullptr, options));
    static_cast<void>(report::render_diff_markdown(d, nullptr));
    static_cast<void>(report::to_json(d, nullptr));
}

void export_all(const model::Profile& profile) {
    report::ExportOptions options;
    options.symbols.root = "/no/such/root";
    for (const auto& exporter : report::exporters()) {
        try {
            static_cast<void>(exporter.run(profile, options));
        } catch (const UserError&) {  // it lacks what the format needs
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view json(reinterpret_cast<const char*>(data) + 1, size - 1);
    model::Profile profile;
    try {
        profile = profile::from_json(json);
    } catch (const model::JsonError&) {
        return 0;
    }
    if (report::defect_of(profile)) std::abort();
    if (!(profile::from_json(model::to_json(profile)) == profile)) std::abort();
    static_cast<void>(profile::doubt_about(profile));

    report::TextOptions options;
    options.width = data[0] % 128;
    options.color = data[0] % 2;
    options.symbols.root = "/no/such/root";  // no file of this machine is opened
    options.symbols.debug_directories.clear();
    if (data[0] >= 128) options.function = "*";
    try {
        static_cast<void>(report::render_text(profile, options));
    } catch (const UserError&) {  // it has no names of functions
    }
    try {
        compare_with_itself(profile, options.width);
    } catch (const UserError&) {  // it is empty, or has an entry twice
    }
    try {
        merge_with_itself(profile);
    } catch (const UserError&) {  // counts grow too large
    }
    try {
        diff_with_itself(profile, options.width);
    } catch (const UserError&) {  // it is empty
    }
    export_all(profile);
    return 0;
}
