#include "report/page/page.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "page_rows.h"
#include "sample_profile.h"

namespace shadowprof::report {

namespace {

nlohmann::json data_of(const Profile& p, const PageLimits& limits = {}) {
    return nlohmann::json::parse(page_data(p, {}, limits));
}

}  // namespace

TEST_CASE("the page's data has every list, and refers to what is there") {
    const auto p = sample_profile();
    const auto data = data_of(p);
    const auto strings = data["strings"].size(), locations = data["locations"].size();
    for (const auto& l : data["locations"]) {
        for (int column = 0; column < 3; ++column) CHECK(l[column].get<std::size_t>() < strings);
        CHECK(l[3].get<std::size_t>() < data["modules"].size());
    }
    const auto& lists = data["lists"];
    CHECK(lists["paths"]["rows"].size() == p.find<PathSection>()->entries.size());
    CHECK(lists["edges"]["rows"].size() == p.find<EdgeSection>()->entries.size());
    CHECK(lists["calls"]["rows"].size() == p.find<CallSection>()->entries.size());
    CHECK(lists["inclusive"]["rows"].size() == 2);  // main, and what it calls
    for (const auto& row : lists["edges"]["rows"]) {
        for (const auto* key : {"from", "to"})
            CHECK(cell_of(lists["edges"], row, key).get<std::size_t>() < locations);
        CHECK(cell_of(lists["edges"], row, "kind").get<std::size_t>() < strings);
    }
    for (const auto& [name, flame] : data["flames"].items())
        for (std::size_t i = 0; i < flame["nodes"].size(); i += 3)
            CHECK(2 * flame["nodes"][i + 1].get<std::size_t>() < flame["frames"].size());
}

TEST_CASE("the page has the chapters of the report, in its order") {
    const auto data = data_of(sample_profile());
    std::vector<std::string> keys;
    for (const auto& chapter : data["chapters"]) {
        keys.push_back(chapter["key"]);
        for (const auto& list : chapter["lists"])
            for (const auto& row : data["lists"].at(list)["rows"])
                CHECK(row.size() == data["lists"].at(list)["columns"].size() + 1);
    }
    CHECK(keys == std::vector<std::string>{"time", "functions", "inclusive", "paths", "edges",
                                           "calls", "values"});
    CHECK(data["chapters"][0]["lists"] == std::vector<std::string>{"time", "threads"});
    CHECK(data["chapters"][0]["notes"][0] ==
          "user code 70.0 %, kernel 25.0 % (read 25.0 %), not known 5.0 %");
}

TEST_CASE("what does not fit into the page is summed up") {
    const auto p = sample_profile();
    PageLimits limits;
    limits.rows = 1;
    limits.path_blocks = 1;
    limits.functions = 0;
    const auto data = data_of(p, limits);
    CHECK(data["code"].empty());
    for (const auto& [name, list] : data["lists"].items()) {
        CAPTURE(name);
        CHECK(list["rows"].size() <= 1);
        if (name == "values" || name == "inclusive" || list["rows"].empty()) continue;
        // Rows begin with their count.
        CHECK(list["rows"][0][0].get<std::uint64_t>() + list["rest"].get<std::uint64_t>() +
                  list["unknown"].get<std::uint64_t>() ==
              list["total"].get<std::uint64_t>());
    }
}

TEST_CASE("no text can end the data") {
    auto p = sample_profile();
    p.targets[0].command = {"</script><script>alert(1)</script>", "<!--"};
    p.locations[0].function = "</SCRIPT>";
    const auto page = render_page(p, {});
    const auto begin = page.find("id=\"data\">");
    REQUIRE(begin != page.npos);
    const auto end = page.find("</script>", begin);
    const auto data = page.substr(begin + 10, end - begin - 10);
    CHECK(data.find('<') == data.npos);
    const auto parsed = nlohmann::json::parse(data);
    CHECK(parsed["targets"][0]["command"][0] == "</script><script>alert(1)</script>");
    CHECK(page.find("http://") == page.npos);
    CHECK(page.find("https://") == page.npos);
}

TEST_CASE("a profile of nothing makes a page") {
    const auto data = data_of(Profile{});
    CHECK(data["lists"].empty());
    CHECK(data["findings"].empty());
}

}  // namespace shadowprof::report
