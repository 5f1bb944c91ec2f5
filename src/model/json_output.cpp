#include "model/json_output.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "model/utf8.h"

namespace shadowprof::model {

void JsonOutput::separate() {
    if (!first_) out_ += pending_break_ ? "," : ", ";
    if (pending_break_) {
        out_ += '\n';
        out_.append(depth_, ' ');
    }
    pending_break_ = false;
    first_ = false;
}

void JsonOutput::open(char bracket) {
    separate();
    out_ += bracket;
    ++depth_;
    first_ = true;
}

void JsonOutput::close(char bracket) {
    --depth_;
    if (pending_break_ && !first_) {
        out_ += '\n';
        out_.append(depth_, ' ');
    }
    pending_break_ = false;
    first_ = false;
    out_ += bracket;
}

JsonOutput& JsonOutput::key(std::string_view name) {
    separate();
    quote(name);
    out_ += ": ";
    first_ = true;
    return *this;
}

void JsonOutput::quote(std::string_view s) {
    out_ += '"';
    while (!s.empty()) {
        const auto next = next_code_point(s);
        const char32_t c = next.code_point;
        if (c == '"' || c == '\\') {
            out_ += '\\';
            out_ += static_cast<char>(c);
        } else if (is_unprintable(c)) {
            fmt::format_to(std::back_inserter(out_), "\\u{:04x}", static_cast<unsigned>(c));
        } else {
            append_utf8(out_, c);
        }
        s.remove_prefix(next.bytes);
    }
    out_ += '"';
}

void JsonOutput::text(std::string_view s) {
    separate();
    quote(s);
}

void JsonOutput::number(std::uint64_t n) {
    separate();
    fmt::format_to(std::back_inserter(out_), "{}", n);
}

void JsonOutput::signed_number(std::int64_t n) {
    separate();
    fmt::format_to(std::back_inserter(out_), "{}", n);
}

void JsonOutput::real(double d) {
    separate();
    fmt::format_to(std::back_inserter(out_), "{}", d);
}

void JsonOutput::rounded(double d) {
    separate();
    fmt::format_to(std::back_inserter(out_), "{:.6g}", d);
}

void JsonOutput::boolean(bool b) {
    separate();
    out_ += b ? "true" : "false";
}

void JsonOutput::null() {
    separate();
    out_ += "null";
}

void JsonOutput::hex(Wide w) {
    separate();
    fmt::format_to(std::back_inserter(out_), "\"{:#x}\"", w);
}

}  // namespace shadowprof::model
