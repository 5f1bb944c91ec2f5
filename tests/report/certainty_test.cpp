// A profile of too few samples says so first, and what would help.
#include "report/views/certainty.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/compare/compare.h"
#include "report/page/page.h"
#include "report/page/page_data.h"
#include "report/text/text_report.h"
#include "sample_profile.h"

namespace shadowprof::report {

namespace {

// Samples of a thousand instructions, 733 of which are main's.
Profile profile_of(int samples) {
    auto p = sample_profile();
    p.remove<ContextSection>();
    p.remove<TimeSection>();
    p.remove<PathSection>();
    p.remove<EdgeSection>();
    p.remove<CallSection>();
    p.remove<ValueSection>();
    auto& methods = *p.find<MethodSection>();
    methods.totals = methods.instructions = {};
    methods.entries.resize(1);
    methods.entries[0] = {0, {}, 0, 0, 0, {}};
    for (int i = 0; i < samples; ++i) {
        methods.totals.add_sample(10);
        methods.instructions.add_sample(1000);
        methods.entries[0].statistics.add_sample(10, 10);
        methods.entries[0].instructions.add_sample(733, 1000);
    }
    methods.instructions.unknown = static_cast<std::uint64_t>(samples) * 267;
    p.coverage.samples = static_cast<std::uint64_t>(samples);
    p.coverage.instructions = static_cast<std::uint64_t>(samples) * 1000;
    p.coverage.weighted_instructions = p.coverage.instructions;
    p.run.mode = "shadow";
    p.run.budget = {0.01, 0};
    p.run.duration = 10;
    return p;
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
}

}  // namespace

TEST_CASE("three samples: no tables, but what is certain") {
    const auto p = profile_of(3);
    CHECK(certainty_of(p).is_noise());
    const auto text = render_text(p);
    CHECK(text.starts_with("Too few samples (3): shares are known to ±"));
    CHECK(has(text, "profile for longer: ±5 points need about"));
    CHECK(has(text, "--overhead"));
    CHECK(has(text, "-m burst"));
    CHECK(has(text, "-m full"));
    CHECK_FALSE(has(text, "has at least"));  // how quick it is nobody knows
    CHECK_FALSE(has(text, "Hot functions"));
    CHECK_FALSE(has(text, "73.3 %"));
    TextOptions options;
    options.anyway = true;
    CHECK(has(render_text(p, options), "Hot functions"));
}

TEST_CASE("no mode is advised that has stood in already") {
    auto p = profile_of(3);
    p.run.stood_in["burst"] = 7.5;
    CHECK_FALSE(has(render_text(p), "-m burst"));
    CHECK(has(render_text(p), "-m full"));
}

TEST_CASE("what is certain in spite of few samples is what the clock saw") {
    auto p = profile_of(3);
    auto& time = p.add<TimeSection>();
    time.entries.resize(2);
    time.entries[0].frames = {0};
    time.entries[1].state = profile::ThreadState::sleep;
    time.entries[1].frames = {1};
    for (int i = 0; i < 40; ++i) {
        time.totals.add_sample(5);
        if (i % 4 != 0) time.entries[0].statistics.add_sample(5, 5);
        time.waiting.add_sample(5);
        time.entries[1].waiting.add_sample(5, 5);
    }
    CHECK(certain_facts(p) == std::vector<std::string>{"main has at least 59.1 % of the time"});
}

TEST_CASE("a dozen samples: tables with their intervals, after the warning") {
    const auto p = profile_of(12);
    CHECK_FALSE(certainty_of(p).is_enough());
    CHECK_FALSE(certainty_of(p).is_noise());
    const auto text = render_text(p);
    CHECK(text.starts_with("Too few samples (12): shares are known to ±"));
    CHECK(has(text, "Hot functions"));
}

TEST_CASE("as many samples as it is said to need are enough") {
    const auto few = certainty_of(profile_of(10));
    REQUIRE(few.times_as_many);
    const auto many = static_cast<int>(10 * *few.times_as_many);
    CHECK(certainty_of(profile_of(many)).is_enough());
    CHECK(shortage_text(profile_of(many)).empty());
    CHECK(remedies_for(profile_of(many)).empty());
    CHECK_FALSE(certainty_of(profile_of(many / 2)).is_enough());
}

TEST_CASE("whole programs are never short of evidence") {
    auto p = profile_of(1);
    CHECK_FALSE(certainty_of(p).is_enough());
    CHECK(has(shortage_text(p), "nothing is known about shares"));
    p.run.mode = "full";
    p.run.is_whole = true;
    CHECK(certainty_of(p).is_enough());
    auto all = profile_of(1);
    all.find<MethodSection>()->instructions.exhaustive = true;
    all.find<MethodSection>()->totals.exhaustive = true;
    CHECK(certainty_of(all).reach == 0);
    CHECK_FALSE(has(render_text(all), "oo few"));
}

TEST_CASE("where nothing was seen, it is said why, and what to do") {
    auto p = profile_of(0);
    p.targets[0].exit = 0;
    p.run.duration = 0.02;
    CHECK(render_text(p).starts_with("Nothing was seen: the program ended after 20.0 ms"));
    CHECK(has(render_text(p), "give it more to do"));
    p.targets[0].exit = {};
    CHECK(has(shortage_text(p), "asleep"));
    CHECK(has(render_text(p), "to the process that does the work"));
}

TEST_CASE("the page and a comparison say it as well") {
    const auto p = profile_of(3);
    const auto data = nlohmann::json::parse(page_data(p, {}));
    CHECK(data["shortage"]["text"] == shortage_text(p));
    CHECK(data["shortage"]["is_noise"] == true);
    CHECK(data["shortage"]["remedies"].size() == remedies_for(p).size());
    CHECK_FALSE(data["everything"]);
    const auto c = compare({"few", p}, {"many", profile_of(1000)});
    CHECK(std::any_of(c.notes.begin(), c.notes.end(), [](const std::string& note) {
        return note.starts_with("few: too few samples (3)");
    }));
}

TEST_CASE("a profile of everything is perfect, although its values are of a share") {
    auto p = sample_profile();
    for (auto* totals : {&p.find<PathSection>()->totals, &p.find<EdgeSection>()->totals,
                         &p.find<CallSection>()->totals, &p.find<MethodSection>()->totals,
                         &p.find<MethodSection>()->instructions})
        totals->exhaustive = true;
    const auto c = compare({"sampled", partial_profile()}, {"full", p});
    CHECK(c.perfect.exhaustive);
    CHECK(std::none_of(c.notes.begin(), c.notes.end(),
                       [](const std::string& note) { return has(note, "is itself a sample"); }));
}

}  // namespace shadowprof::report
