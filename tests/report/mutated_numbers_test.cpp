// Profiles whose numbers somebody has changed: they are refused, or the contradiction is reported,
// or what is shown of them is at least possible.
#include <doctest/doctest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "model/json_cursor.h"
#include "model/merge.h"
#include "model/profile_file.h"
#include "profile/doubts.h"
#include "profile/registry.h"
#include "report/compare/compare_text.h"
#include "report/diff/diff_text.h"
#include "report/exports/exports.h"
#include "report/page/page_data.h"
#include "report/text/text_report.h"
#include "sample_profile.h"
#include "vocabulary.h"

namespace shadowprof::report {

namespace {

// The sample with loads of two places.
Profile with_latencies() {
    auto p = sample_profile();
    auto& list = p.add<LatencySection>();
    list.scale.clock_is_usable = true;
    list.scale.nanoseconds_per_tick = 0.5;
    list.scale.overhead_ticks = 8;
    list.scale.typical_ns = {1, 4, 20, 95};
    list.scale.limits_ns = {2, 9, 40};
    list.scale.longest_ns = 1000;
    for (const LocationIndex at : {5, 6}) {
        LatencyEntry e;
        e.location = at;
        e.operand = "[rdi+0x8]";
        e.operand_index = 1;
        e.pattern = AddressPattern::stride;
        e.step = 8;
        e.timed = 40;
        e.disturbed = 2;
        e.loads = 1000;
        e.modelled = 50;
        e.by_model = {10, 20, 10, 10};
        e.page_walks = 3;
        e.histogram[20] = e.timed;
        e.by_time[3] = e.timed;
        e.picoseconds = 40 * 100'000;
        e.square_nanoseconds = 40 * 100 * 100;
        e.statistics.add_sample(4000, 8500);
        list.entries.push_back(e);
    }
    list.totals.add_sample(8500);
    list.totals.unknown = 500;
    list.loads = 2500;
    REQUIRE(!defect_of(p));
    return p;
}

nlohmann::json tree() {
    return nlohmann::json::parse(to_json(with_latencies()));
}

// Why the profile is refused or doubted; empty if neither.
std::string complaint_about(const nlohmann::json& json, std::optional<Profile>& read) {
    try {
        read = profile::from_json(json.dump());
    } catch (const model::JsonError& error) {
        read.reset();
        return error.what();
    }
    return profile::doubt_about(*read).value_or("");
}

// No shares of more than all, and neither counts nor times that cannot be.
void check_sane(const std::string& text) {
    check_percentages(text);
    static const std::regex impossible("(^|[ (–])(-?nan|-?inf|-[0-9.]+[kMGT]? (%|s|ms|µs|ns))");
    std::smatch found;
    const bool is_impossible = std::regex_search(text, found, impossible);
    CAPTURE(found.str());
    CHECK(!is_impossible);
}

void check_all_sane(const Profile& p) {
    TextOptions options;
    options.top = 100;
    options.width = 200;
    options.symbols.root = "/no/such/root";
    try {
        check_sane(all_text(p, options));
        options.function = "*";
        check_percentages(all_text(p, options));
        check_percentages(render_comparison(compare({"a", p}, {"b", p})));
        static_cast<void>(render_diff(diff({{"a", p}}, {"b", p}), nullptr));
        check_percentages(page_data(p, options.symbols));
        model::Merger merger;
        merger.add({"a", p});
        merger.add({"b", p});
        const auto sum = merger.take();
        CHECK(!defect_of(sum));
    } catch (const UserError& error) {
        const std::string why = error.what();
        CAPTURE(why);
        // Two places that became one may have more in an entry than in all.
        CHECK((contains(why, "beyond 64 bits") || contains(why, "the same entry twice") ||
               contains(why, "more in an entry than in all")));
    }
}

// Each number of the tree in turn. Numbers that were derived from others are not read.
void each_number(nlohmann::json& root, const std::function<void(nlohmann::json&)>& use) {
    const std::function<void(nlohmann::json&)> visit = [&](nlohmann::json& node) {
        const bool is_hex =
            node.is_string() && node.get_ref<const std::string&>().starts_with("0x");
        if (node.is_number() || is_hex) {
            const auto before = node;
            use(node);
            node = before;
        } else if (node.is_array() || node.is_object()) {
            for (auto& item : node) visit(item);
        }
    };
    visit(root);
}

}  // namespace

TEST_CASE("numbers that contradict each other are refused or reported") {
    const struct {
        const char* pointer;
        nlohmann::json value;
        const char* why;
    } all[]{
        {"/paths/total", 99, "paths: entries and unknown do not add up to the total"},
        {"/paths/total", -1, "whole number"},
        {"/paths/total", ~std::uint64_t{0}, "do not add up"},
        {"/paths/unknown", ~std::uint64_t{0}, "do not add up"},
        {"/paths/entries/0/count", ~std::uint64_t{0}, "do not add up"},
        {"/paths/entries/0/lengths/0", 4294967295, "paths: more instructions than in the run"},
        {"/paths/samples", 1, "samples, total and total_squares contradict each other"},
        {"/paths/entries/0/stats/samples", 3, "paths: an entry's statistics"},
        {"/paths/entries/0/stats/samples", 0, "paths: an entry's statistics"},
        {"/edges/entries/0/stats/squares", "0x0", "edges: an entry's statistics"},
        {"/edges/entries/0/stats/squares", "0xffffffffffffffff", "edges: an entry's statistics"},
        {"/edges/entries/0/stats/products", "0x1", "edges: an entry's statistics"},
        {"/calls/entries/0/stats/products", "0xffffffffffffffffffffffffffffffff",
         "calls: an entry's statistics"},
        {"/methods/entries/0/calls", 59, "calls and loops are not its count"},
        {"/methods/entries/0/back_edges", ~std::uint64_t{0}, "calls and loops are not its count"},
        {"/methods/entries/0/instructions/stats/samples", 9, "methods: an entry's statistics"},
        {"/coverage/weighted_instructions", 90, "more instructions than in the run"},
        {"/coverage/weighted_instructions", 0, "more instructions than in the run"},
        {"/coverage/instructions", 3, "more blocks than instructions"},
        {"/coverage/samples", 0, "instructions in no sample"},
        {"/latencies/clock/longest_ns", -1, "cannot be"},
        {"/values/entries/2/stride/share", 1.01, "a share of strides"},
        {"/run/duration", -1, "a time that cannot be"},
        {"/cost/stop_time", -1e300, "a time that cannot be"},
        {"/cost/slowdown", 1e300, "a slowdown that cannot be"},
    };
    std::optional<Profile> read;
    CHECK(complaint_about(tree(), read) == "");
    for (const auto& wrong : all) {
        CAPTURE(wrong.pointer);
        auto json = tree();
        json.at(nlohmann::json::json_pointer(wrong.pointer)) = wrong.value;
        const auto why = complaint_about(json, read);
        CAPTURE(why);
        CHECK(contains(why, wrong.why));
    }
}

TEST_CASE("a number that is changed is refused, reported or does no harm") {
    auto json = tree();
    std::size_t tried = 0, complained = 0;
    each_number(json, [&](nlohmann::json& number) {
        std::vector<nlohmann::json> values;
        if (number.is_string()) {
            values = {"0x0", "0x1", "0x7fffffffffffffff", "0xffffffffffffffff",
                      "0xffffffffffffffffffffffffffffffff"};
        } else {
            values = {0, 1, -1, std::uint64_t{1} << 63, ~std::uint64_t{0}, 1e300, -0.5};
            if (number.is_number_integer())
                for (const auto change : {-1, 1, 1000})
                    values.emplace_back(number.get<std::int64_t>() + change);
        }
        for (const auto& value : values) {
            if (value == number) continue;
            CAPTURE(number);
            CAPTURE(value);
            number = value;
            std::optional<Profile> read;
            ++tried;
            if (!complaint_about(json, read).empty())
                ++complained;
            else if (!(*read == with_latencies()))
                check_all_sane(*read);
        }
    });
    CHECK(tried > 2000);
    CHECK(complained > 1000);
}

}  // namespace shadowprof::report
