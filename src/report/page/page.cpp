#include "report/page/page.h"

#include "report/page/page_parts.h"

namespace shadowprof::report {

namespace {

// JSON in a script element: nothing in it may look like the element's end, or a comment's
// beginning.
// "<" occurs in strings only, where it has another spelling.
std::string without_tags(const std::string& json) {
    std::string out;
    out.reserve(json.size() + json.size() / 64);
    for (const char c : json) {
        if (c == '<')
            out += "\\u003c";
        else
            out += c;
    }
    return out;
}

}  // namespace

std::string render_page(const Profile& profile, const SymbolOptions& symbols,
                        const PageLimits& limits) {
    std::string page(page_before_data);
    page += without_tags(page_data(profile, symbols, limits));
    page += page_after_data;
    return page;
}

}  // namespace shadowprof::report
