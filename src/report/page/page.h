// The report as one HTML file: it needs no network, no other file and no server. Its parts lie in
// src/report/page/ and are put into the program when it is built.
#pragma once

#include <string>

#include "report/page/page_data.h"

namespace shadowprof::report {

std::string render_page(const Profile& profile, const SymbolOptions& symbols,
                        const PageLimits& limits = {});

}  // namespace shadowprof::report
