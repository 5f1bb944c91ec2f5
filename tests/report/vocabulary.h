// Words that several tests of reports share.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "report/model/profile.h"

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
