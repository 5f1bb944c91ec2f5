// Random programs, walked at random in samples of random weights: whatever a report, a page, an
// export, a diff or a comparison says of them, no share is above 100 %, parts sum to no more than
// their whole, and all of them say the same.
#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "page_rows.h"
#include "random_program.h"
#include "report/compare/compare.h"
#include "report/compare/compare_text.h"
#include "report/diff/diff.h"
#include "report/diff/diff_text.h"
#include "report/exports/exports.h"
#include "report/exports/weighted_stacks.h"
#include "report/model/assemble.h"
#include "report/opportunities/opportunities.h"
#include "report/page/page_data.h"
#include "report/text/text_report.h"
#include "report/views/shares.h"
#include "vocabulary.h"

namespace shadowprof::report {

namespace {

using profile::function_size;
using profile::RandomProgram;

constexpr double above_1_by_rounding = 1 + 1e-5;
const std::string program_path = "/no/such/program";

// One function each `function_size` bytes; in the library every place is one, as for the profilers.
void name_functions(Profile& p) {
    for (auto& l : p.locations) {
        const auto in_program = p.modules[l.module].path == program_path;
        l.function_offset = in_program ? l.offset - l.offset % function_size : l.offset;
        l.function = (in_program ? "f" : "g") + std::to_string(*l.function_offset / function_size) +
                     "_" + std::to_string(*l.function_offset % function_size);
    }
}

// `values`, if given, gets how many values all samples stand for.
Profile random_profile(const RandomProgram& program, Random& random, profile::Seen seen,
                       std::size_t limit = 0, std::uint64_t* values = nullptr) {
    profile::EvenlySpacedFunctions functions{function_size};
    auto profilers = make_profilers(profile::every_profile(), program.program.table, functions);
    RunFacts facts;
    facts.tool = "test";
    facts.run.mode = "shadow";
    facts.run.profiles = {"path", "edge", "call", "method", "value"};
    facts.targets.push_back({{program_path}, 1, 0, false});
    facts.coverage.weighted_instructions = 0;
    const auto samples = seen == profile::Seen::everything ? 1u : 3 + random.below(8);
    for (std::uint32_t n = 0; n < samples; ++n) {
        auto trace = random_trace(program, n, n, 200 + random.below(3000), random);
        const auto weight = seen == profile::Seen::samples ? 1 + random.below(1500) : 1;
        ++facts.coverage.samples;
        ++facts.coverage.ended[trace.end.reason];
        for (const auto id : trace.all.blocks) {
            if (id == trace::discontinuity) continue;
            const auto& block = program.program.table.at(id);
            const auto size = block.instructions.size();
            if (values) *values += block.slots.size() * weight;
            ++facts.coverage.blocks;
            facts.coverage.instructions += size;
            *facts.coverage.weighted_instructions += size * weight;
        }
        for (auto& profiler : profilers) {
            auto reader = profiler->open(trace.start);
            for (const auto& chunk : trace.chunks(program.program.table, 100, 100))
                reader->digest(chunk);
            reader->finish(trace.end);
        }
        for (auto& profiler : profilers) profiler->end_sample(trace.start.sample, weight);
    }
    profile::Hotlists lists;
    for (auto& profiler : profilers) profiler->yield(lists, seen);
    trace::ModuleTable modules;
    modules.intern({"/unused", "00"});
    REQUIRE(modules.intern({program_path, "11"}) == profile::program_module);
    modules.intern({"/no/such/library", "22"});
    Symbols symbols;
    KeepOptions options;
    options.limit = limit;
    auto p = assemble(facts, lists, program.program.table, modules, symbols, options);
    name_functions(p);
    return p;
}

void check_list(const nlohmann::json& list, const std::string& name) {
    CAPTURE(name);
    const auto total = list.at("total").get<double>();
    double count = 0, shares = 0;
    for (const auto& row : list.at("rows")) {
        count += row[0].get<double>();
        if (name == "values") continue;
        const auto estimate = cell_of(list, row, "share").get<std::vector<double>>();
        REQUIRE(estimate.size() == 3);
        shares += estimate[0];
        CHECK(estimate[0] == doctest::Approx(row[0].get<double>() / total));
        CHECK(estimate[1] <= estimate[0] * above_1_by_rounding);
        CHECK(estimate[0] <= estimate[2] * above_1_by_rounding);
        CHECK(estimate[2] <= 1);
    }
    if (name == "inclusive") return;  // an instruction is in all functions that lead to it
    CHECK(shares <= above_1_by_rounding);
    CHECK(count + list.at("rest").get<double>() + list.at("unknown").get<double>() <=
          total * above_1_by_rounding);
}

// No frame is wider than its caller, nor callees together than theirs.
void check_flame(const nlohmann::json& flame) {
    const auto& nodes = flame.at("nodes");
    std::vector<std::uint64_t> left{flame.at("total").get<std::uint64_t>()};
    CHECK(left[0] <= flame.at("whole").get<std::uint64_t>());
    for (std::size_t i = 0; i < nodes.size(); i += 3) {
        const auto depth = nodes[i].get<std::size_t>();
        const auto weight = nodes[i + 2].get<std::uint64_t>();
        left.resize(depth + 1);
        REQUIRE(weight <= left[depth]);
        left[depth] -= weight;
        left.push_back(weight);
    }
}

void check_page(const Profile& p) {
    const auto page = nlohmann::json::parse(page_data(p, {}));
    for (const auto& [name, list] : page.at("lists").items()) check_list(list, name);
    double work = 0;
    const auto& paths = page.at("lists").at("paths");
    for (const auto& row : paths.at("rows")) work += cell_of(paths, row, "work").get<double>();
    CHECK(work <= above_1_by_rounding);
    for (const auto& [name, flame] : page.at("flames").items()) check_flame(flame);
    for (const auto& finding : page.at("findings")) CHECK(finding.at("touches") <= 1);
    double code = 0;
    for (const auto& function : page.at("code")) code += function.at("share").get<double>();
    CHECK(code <= above_1_by_rounding);
    // The code of a function has the share that the list of functions has.
    std::multiset<double> listed, shown;
    const auto& functions = page.at("lists").at("functions");
    for (const auto& row : functions.at("rows"))
        if (row[0] != 0) listed.insert(cell_of(functions, row, "share")[0].get<double>());
    for (const auto& function : page.at("code")) shown.insert(function.at("share").get<double>());
    CHECK(std::includes(listed.begin(), listed.end(), shown.begin(), shown.end()));
    check_percentages(page.dump());
}

std::map<std::uint64_t, std::uint64_t> instructions_by_function(const Profile& p) {
    std::map<std::uint64_t, std::uint64_t> counts;
    for (const auto& e : p.find<MethodSection>()->entries)
        if (e.instructions.count != 0)
            counts[*p.at(e.function).function_offset] += e.instructions.count;
    return counts;
}

void check_exports(const Profile& p) {
    std::map<std::uint64_t, std::uint64_t> exported;
    for (const auto& stack : executed_instructions(p))
        exported[*p.at(*stack.frames.front().location).function_offset] += stack.weight;
    CHECK(exported == instructions_by_function(p));
    // What a call costs is no more than the program, and `totals` is what functions sum to.
    std::istringstream lines(export_callgrind(p, {}).text);
    const auto total = *p.coverage.weighted_instructions;
    bool is_call = false;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("totals: ")) CHECK(std::stoull(line.substr(8)) == total);
        if (is_call) CHECK(std::stoull(line.substr(line.find(' ') + 1)) <= total);
        is_call = line.starts_with("calls=");
    }
}

void check_functions(const Profile& p) {
    const auto& methods = *p.find<MethodSection>();
    CHECK(methods.instructions.total == *p.coverage.weighted_instructions);
    std::uint64_t sum = methods.instructions.unknown;
    for (const auto& e : methods.entries) sum += e.instructions.count;
    CHECK(sum == methods.instructions.total);
    double work = 0;
    for (const auto& e : p.find<PathSection>()->entries) work += *work_of(e, p);
    CHECK(work <= above_1_by_rounding);
}

void check_text(const Profile& p) {
    TextOptions options;
    options.top = 100;
    options.width = 200;
    check_percentages(all_text(p, options));
    options.function = p.at(p.find<MethodSection>()->entries.front().function).function;
    check_percentages(all_text(p, options));
}

void check_diff(const Profile& before, const Profile& after) {
    const auto d = diff({{"before", before}}, {"after", after});
    for (const auto& list : d.lists) {
        double base = 0, now = 0;
        for (const auto& change : list.changes) {
            base += list.base_share(change);
            now += list.now_share(change);
        }
        CAPTURE(list.name);
        CHECK(base <= above_1_by_rounding);
        CHECK(now <= above_1_by_rounding);
    }
}

void check_comparison(const Profile& sampled, Profile perfect) {
    perfect.coverage.instructions += sampled.coverage.instructions;  // it saw all that there was
    const auto c = compare({"sampled", sampled}, {"perfect", perfect});
    check_percentages(render_comparison(c));
    const auto& methods = *sampled.find<MethodSection>();
    std::map<std::string, double> shares;
    for (const auto& e : methods.entries)
        shares[sampled.at(e.function).function] +=
            share_of(e.instructions, methods.instructions).share;
    for (const auto& f : c.functions)
        if (f.sampled_share) CHECK(*f.sampled_share == doctest::Approx(shares[f.name]));
}

}  // namespace

TEST_CASE("shares of weighted counts: none above 100 %, and all agree") {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        CAPTURE(seed);
        Random random{seed};
        const RandomProgram program{random};
        std::uint64_t values = 0;
        const auto p = random_profile(program, random, profile::Seen::samples, 0, &values);
        REQUIRE(!defect_of(p));
        CHECK(p.find<ValueSection>()->all_executions().total == values);
        check_functions(p);
        check_text(p);
        check_page(p);
        check_exports(p);
        check_diff(p, random_profile(program, random, profile::Seen::samples));
        check_comparison(p, random_profile(program, random, profile::Seen::everything));
        // Entries that --limit drops are part of the whole all the same.
        const auto cut = random_profile(program, random, profile::Seen::samples, 5);
        check_functions(cut);
        check_text(cut);
        check_page(cut);
    }
}

TEST_CASE("shares of profiles that do not say what their counts are shares of") {
    Random random{7};
    const RandomProgram program{random};
    auto p = random_profile(program, random, profile::Seen::samples);
    p.coverage.weighted_instructions.reset();
    CHECK(weighted_instructions(p) == p.find<MethodSection>()->instructions.total);
    check_text(p);
    p.remove<MethodSection>();
    CHECK_FALSE(weighted_instructions(p));
    const auto text = all_text(p, {});
    CHECK(text.find("of all instructions") == text.npos);
    CHECK(text.find("not known: the profile does not say") != text.npos);
    Symbols symbols;
    CHECK(find_opportunities(p, symbols).empty());
}

}  // namespace shadowprof::report
