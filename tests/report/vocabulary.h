// Words that several tests of reports share.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>

#include "report/model/profile.h"
#include "report/text/text_report.h"

namespace shadowprof::report {

inline bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != text.npos;
}

// Of one sample.
inline Statistics exactly(std::uint64_t count, std::uint64_t total) {
    Statistics s;
    s.add_sample(count, total);
    return s;
}

// Of a run of which all was counted.
inline Totals everything(std::uint64_t total) {
    Totals t;
    t.add_sample(total);
    t.exhaustive = true;
    return t;
}

// The whole report, of however few samples.
inline std::string all_text(const Profile& profile, TextOptions options = {}) {
    options.anyway = true;
    return render_text(profile, options);
}

// No share is more than all: "12.3 %", and both ends of "12.3–14.5 %".
inline void check_percentages(const std::string& text) {
    static const std::regex percentage("([0-9.]+)(?:–([0-9.]+))? %");
    for (std::sregex_iterator at(text.begin(), text.end(), percentage), end; at != end; ++at)
        for (const auto group : {1, 2})
            if ((*at)[group].matched) {
                CAPTURE(at->str());
                CHECK(std::stod((*at)[group].str()) <= 100);
            }
}

// With SHADOWPROF_UPDATE_GOLDEN set the file becomes what the text is.
inline void check_golden(const std::string& name, const std::string& text) {
    const auto path = std::string(GOLDEN_DIRECTORY) + "/" + name;
    if (std::getenv("SHADOWPROF_UPDATE_GOLDEN")) std::ofstream(path) << text;
    std::stringstream golden;
    golden << std::ifstream(path).rdbuf();
    CAPTURE(path);
    CHECK(text == golden.str());
}

}  // namespace shadowprof::report
