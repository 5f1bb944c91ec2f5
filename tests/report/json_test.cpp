#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "base/error.h"
#include "model/json_cursor.h"
#include "model/profile_file.h"
#include "profile/registry.h"
#include "sample_profile.h"
#include "temporary_directory.h"
#include "vocabulary.h"

namespace shadowprof::report {

namespace {

std::string why_not(const std::string& json) {
    TemporaryDirectory directory;
    const auto path = directory.file("p.json");
    std::ofstream(path) << json;
    try {
        profile::read_profile(path);
        return "it was read";
    } catch (const UserError& e) {
        const std::string line = e.what();
        CHECK(e.status() == ExitStatus::error);
        CHECK(line.starts_with(path + ": not a shadowprof profile: "));
        CHECK(line.find('\n') == line.npos);
        CHECK(line.size() < 400);
        return line.substr(line.find("profile: ") + 9);
    }
}

// The sample as a tree that a test can break.
nlohmann::json tree() {
    return nlohmann::json::parse(to_json(sample_profile()));
}

std::string why_not(const nlohmann::json& broken) {
    return why_not(broken.dump());
}

}  // namespace

TEST_CASE("what was written is read back") {
    const auto p = sample_profile();
    REQUIRE(defect_of(p) == std::nullopt);
    CHECK(profile::from_json(to_json(p)) == p);

    Profile least;
    least.run.started = "now";
    CHECK(profile::from_json(to_json(least)) == least);
}

// The first entry's values stand for twice as many executions, and the list for three more of an
// operand of which nothing was read.
Profile partly_read() {
    auto p = sample_profile();
    p.find<ValueSection>()->entries[0].unread = 100;
    p.find<ValueSection>()->unread = 103;
    return p;
}

TEST_CASE("values that were read in a part of all executions stand for all") {
    const auto p = partly_read();
    CHECK(profile::from_json(to_json(p)) == p);
    const auto json = nlohmann::json::parse(to_json(p))["values"];
    CHECK(json["total"] == 403);
    CHECK(json["read"] == 300);
    CHECK(json["unknown"] == 3);
    const auto& entry = json["entries"][0];
    CHECK(entry["executions"] == 200);
    CHECK(entry["stats"]["read"] == 100);
    CHECK(entry["unknown"] == 4);
    CHECK(entry["top"][0]["count"] == 180);
    CHECK(entry["top"][0]["stats"]["read"] == 90);
    CHECK(entry["top"][0]["share"] == doctest::Approx(0.9));
    CHECK(!json["entries"][1]["stats"].contains("read"));
}

TEST_CASE("what values stand for must follow from what was read") {
    const struct {
        const char* pointer;
        nlohmann::json value;
        const char* why;
    } all[]{
        {"/values/read", 404, "more values were read than there were"},
        {"/values/read", 299, "more values were read in the entries"},
        {"/values/unknown", 2, "do not add up"},
        {"/values/entries/0/stats/read", 201, "more values were read than there were executions"},
        {"/values/entries/0/stats/read", 97, "is not what was read of it stands for"},
        {"/values/entries/0/stats/exhaustive", true, "exhaustive entry"},
        {"/values/exhaustive", true, "exhaustive list"},
        {"/values/entries/0/top/0/count", 179, "is not what was read of it stands for"},
        {"/values/entries/0/unknown", 3, "do not add up"},
        {"/values/entries/0/executions", 202, "is not what was read of it stands for"},
    };
    for (const auto& wrong : all) {
        CAPTURE(wrong.pointer);
        auto json = nlohmann::json::parse(to_json(partly_read()));
        json.at(nlohmann::json::json_pointer(wrong.pointer)) = wrong.value;
        const auto why = why_not(json);
        CAPTURE(why);
        CHECK(contains(why, wrong.why));
    }
}

TEST_CASE("sections of former versions are skipped") {
    auto json = tree();
    json["stacks"] = nlohmann::json::parse(
        R"({"total": 1, "unknown": 0, "exhaustive": false, "samples": 1, "total_squares": "0x1",
            "entries": [{"frames": [1, 2], "count": 1}]})");
    CHECK(profile::from_json(json.dump()) == sample_profile());
}

TEST_CASE("numbers at their limits are read back") {
    auto p = sample_profile();
    p.run.seed = ~std::uint64_t{0};
    p.cost.stops = ~std::uint64_t{0};
    p.run.duration = 1.0 / 3;
    p.targets[0].pid = -1;
    p.find<ValueSection>()->entries[2].stride = Stride{
        std::numeric_limits<std::int64_t>::min(), 1e-300, ~std::uint64_t{0}, ~std::uint64_t{0}};
    p.find<ContextSection>()->entries[0].statistics.squares = ~Wide{0};
    CHECK(profile::from_json(to_json(p)) == p);
}

TEST_CASE("another parser reads the same from it") {
    const auto json = tree();
    CHECK(json["schema"] == "shadowprof-profile");
    CHECK(json["version"] == 1);
    CHECK(json["host"]["cpu"] == "A \"CPU\"\\with\tall\x01");
    CHECK(json["run"]["seed"] == "0xfedcba9876543210");
    CHECK(json["paths"]["entries"][0]["instructions"] == 5);
    CHECK(json["paths"]["entries"][0]["share"] == doctest::Approx(0.7));
    CHECK(json["values"]["entries"][0]["invariance"] == doctest::Approx(0.9));
    for (const auto* list : {"contexts", "paths", "edges", "calls", "methods"}) {
        std::uint64_t sum = json[list]["unknown"];
        for (const auto& e : json[list]["entries"]) sum += e["count"].get<std::uint64_t>();
        CHECK(sum == json[list]["total"]);
    }
}

TEST_CASE("file names that are not UTF-8 become valid JSON") {
    auto p = sample_profile();
    p.modules[0].path = "/tmp/\xff\xfe/caf\xe9";
    p.targets[0].command = {"\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\xaf"};
    CHECK(nlohmann::json::accept(to_json(p)));
    CHECK(profile::from_json(to_json(p)).modules[0].path == "/tmp/\ufffd\ufffd/caf\ufffd");
}

TEST_CASE("keys of later versions are skipped, whatever is in them") {
    auto json = tree();
    json["zoo"] =
        nlohmann::json::parse(R"({"a": [1, -2.5e-3, {"b": null}, [], {}], "c": "\ud83d\ude00"})");
    json["locations"][0]["colour"] = true;
    CHECK(profile::from_json(json.dump(1)) == sample_profile());
}

TEST_CASE("hotlists that were not asked for are absent") {
    auto p = sample_profile();
    p.remove<EdgeSection>();
    p.remove<MethodSection>();
    const auto json = to_json(p);
    CHECK(!contains(json, "\"edges\""));
    CHECK(!contains(json, "\"methods\""));
    CHECK(profile::from_json(json) == p);
}

TEST_CASE("every prefix of a profile is refused in one line") {
    const auto json = to_json(sample_profile());
    for (std::size_t size = 0; size + 1 < json.size(); size += size < 600 ? 1 : 37)
        CHECK_THROWS_AS(profile::from_json(std::string_view(json).substr(0, size)), JsonError);
    CHECK(contains(why_not(json.substr(0, json.size() / 2)), "ends there"));
}

TEST_CASE("what is no profile is refused and named") {
    const auto depth = [](std::size_t n, const char* bracket) {
        std::string s;
        while (n-- > 0) s += bracket;
        return s;
    };
    CHECK(contains(why_not(std::string()), "expected an object, but the file ends there"));
    CHECK(contains(why_not(std::string("hello")), "line 1: expected an object"));
    CHECK(contains(why_not(std::string(4096, '\0')), "expected an object"));
    CHECK(contains(why_not(std::string("{}")), "\"schema\" is missing"));
    CHECK(contains(why_not(std::string(R"({"schema": "other"})")), "\"schema\" is not"));
    CHECK(contains(why_not(std::string(R"({"schema": "shadowprof-profile", "version": 2})")),
                   "version 2 of the format"));
    CHECK(contains(why_not("{\"x\": " + depth(2'000'000, "[")), "nested too deeply"));
    CHECK(contains(why_not("{\"x\": " + depth(2'000'000, "{\"a\":")), "nested too deeply"));
    CHECK(contains(why_not(depth(2'000'000, "[")), "expected an object"));
    CHECK(contains(why_not(std::string("{\"a\\ud800\": 1}")), "surrogate"));
    CHECK(contains(why_not(std::string("{\"\xff\": 1}")), "not UTF-8"));
    CHECK(contains(why_not(std::string("{\"a\x1b[31m\": 1}")), "end of a string"));
    CHECK(contains(why_not(std::string("{\"x\": 01}")), "leading zeros"));
    CHECK(contains(why_not(std::string("{\"x\": NaN}")), "expected a number"));
    CHECK(contains(why_not(std::string("{\"x\": [1 2]}")), "a comma or a closing bracket"));
    CHECK(contains(why_not(std::string("{\"x\": [1}}")), "a comma or a closing bracket"));
    CHECK(contains(why_not(to_json(sample_profile()) + "x"), "something follows"));
    CHECK(contains(why_not("{\"x\": \"" + std::string(20'000'000, 'a') + "\"}"),
                   "line 1: a text of more than 1 MiB"));
    CHECK(contains(why_not("{\"x\": \"" + std::string(1 << 20, 'a') + "\"}"), "is missing"));
}

TEST_CASE("a key of a profile that is wrong is refused") {
    struct Wrong {
        const char* pointer;
        nlohmann::json value;
        const char* why;
    };
    const std::vector<Wrong> all{
        {"/version", "1", "expected a number"},
        {"/version", 1.5, "whole number"},
        {"/coverage/samples", -1, "whole number"},
        {"/coverage/samples", 1e3, "whole number"},
        {"/coverage/samples", nlohmann::json::parse("18446744073709551616"), "whole number"},
        {"/coverage/ended/exit", "no", "expected a number"},
        {"/host/cores", 4294967296, "at most 4294967295"},
        {"/targets", 3, "expected an array"},
        {"/targets/0/exit", -1, "whole number"},
        {"/targets/0/pid", nlohmann::json::parse("9223372036854775808"), "64 bits"},
        {"/targets/0/attached", 1, "true or false"},
        {"/run/seed", 12, "expected a string"},
        {"/run/seed", "12", "0x"},
        {"/run/seed", "0x", "0x"},
        {"/run/seed", "0x12345678123456789", "0x"},
        {"/run/seed", "0xg", "0x"},
        {"/run/warnings", nlohmann::json::array({1}), "expected a string"},
        {"/locations/0/module", 2, "refers to module 2, and there are 2"},
        {"/contexts/entries/0/frames/0", 99, "refers to location 99"},
        {"/contexts/entries/0/frames", nlohmann::json::array(), "without frames"},
        {"/contexts/entries/0/root", "nowhere", "unknown"},
        {"/callers/entries/0/inclusive/count", 101, "more in an entry than in all"},
        {"/contexts/entries/1/inclusive/count", 1, "more in a context itself than in all"},
        {"/callers/entries/2/caller", 99, "refers to location 99"},
        {"/paths/entries/0/blocks/0", 99, "refers to location 99"},
        {"/paths/entries/0/ends/0", 99, "refers to location 99"},
        {"/paths/entries/0/ends", nlohmann::json::array(), "not of one size"},
        {"/edges/entries/0/from", 10, "refers to location 10"},
        {"/edges/entries/0/kind", "sideways", "unknown kind"},
        {"/edges/entries/0/count", 31, "do not add up"},
        {"/edges/unknown", 1, "do not add up"},
        {"/edges/total_squares", "0x0", "contradict"},
        {"/edges/samples", 0, "contradict"},
        {"/calls/entries/0/to", 10, "refers to location 10"},
        {"/methods/entries/0/function", 10, "refers to location 10"},
        {"/methods/instructions/total", 101, "methods.instructions: entries"},
        {"/values/entries/0/location", 10, "refers to location 10"},
        {"/values/entries/0/context", 10, "refers to location 10"},
        {"/values/entries/0/bits", 65, "64 bits"},
        {"/values/entries/0/top/0/count", 1, "values.top: entries"},
        {"/values/entries/0/executions", 1, "do not add up"},
    };
    for (const auto& wrong : all) {
        CAPTURE(wrong.pointer);
        auto json = tree();
        json.at(nlohmann::json::json_pointer(wrong.pointer)) = wrong.value;
        const auto why = why_not(json);
        CAPTURE(why);
        CHECK(contains(why, wrong.why));
    }
    auto warnings = tree();
    warnings["run"]["warnings"] = std::vector<std::string>(2'000'000);
    CHECK(contains(why_not(warnings), "too many strings"));
    for (const auto* key : {"host", "targets", "run", "cost", "coverage", "modules", "locations"}) {
        auto json = tree();
        json.erase(key);
        CHECK(contains(why_not(json), std::string("\"") + key + "\" is missing"));
    }
}

TEST_CASE("counts whose sum overflows do not add up") {
    auto json = tree();
    json["edges"]["entries"][0]["count"] = ~std::uint64_t{0};
    json["edges"]["entries"][1]["count"] = 30 + 28 + 1;  // the sum modulo 2^64 is right
    CHECK(contains(why_not(json), "do not add up"));
}

TEST_CASE("a key given twice is refused") {
    auto json = to_json(sample_profile());
    json.insert(1, "\"schema\": \"shadowprof-profile\",");
    CHECK(contains(why_not(json), "\"schema\" twice"));
    CHECK(contains(why_not(std::string(R"({"coverage": {"ended": {"a": 1, "a": 2}}})")),
                   "\"a\" twice"));
}

TEST_CASE("random changes of a profile never do worse than be refused") {
    const auto json = to_json(sample_profile());
    std::mt19937 random(1);
    static constexpr std::string_view likely = "0123456789{}[],:\"\\abcx-.e \n\xff";
    std::size_t refused = 0, read = 0;
    for (int i = 0; i < 3000; ++i) {
        auto changed = json;
        changed[random() % changed.size()] = likely[random() % likely.size()];
        std::optional<Profile> p;
        try {
            p = profile::from_json(changed);
        } catch (const JsonError&) {
            ++refused;
            continue;
        }
        ++read;
        CHECK(defect_of(*p) == std::nullopt);
        CHECK(profile::from_json(to_json(*p)) == *p);
    }
    CHECK(refused > 500);
    CHECK(read > 500);
}

TEST_CASE("unreadable files") {
    TemporaryDirectory directory;
    CHECK_THROWS_WITH_AS(profile::read_profile("/no/such/file"),
                         "cannot read /no/such/file: No such file or directory", UserError);
    CHECK_THROWS_WITH_AS(profile::read_profile("/tmp"), "cannot read /tmp: Is a directory",
                         UserError);
    CHECK_THROWS_WITH_AS(profile::read_profile("/dev/zero"),
                         "cannot read /dev/zero: neither a file nor a pipe", UserError);
}

}  // namespace shadowprof::report
