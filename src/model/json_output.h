// Builds JSON text. Commas and quoting are its business; whoever calls it opens and closes in
// pairs. Strings that are not UTF-8 (a file name may be anything) come out with U+FFFD.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/wide.h"

namespace shadowprof::model {

class JsonOutput {
  public:
    void open_object() { open('{'); }
    void close_object() { close('}'); }
    void open_array() { open('['); }
    void close_array() { close(']'); }
    // The next item or closing bracket begins a line.
    void break_line() { pending_break_ = true; }
    // A key that begins a line.
    JsonOutput& line(std::string_view name) {
        break_line();
        return key(name);
    }

    JsonOutput& key(std::string_view name);

    void text(std::string_view s);
    void number(std::uint64_t n);
    void signed_number(std::int64_t n);
    void real(double d);     // read back as the same number
    void rounded(double d);  // six digits, for what is derived from integers beside it
    void boolean(bool b);
    void null();
    void hex(Wide w);  // "0x…"

    std::string take() { return std::move(out_); }

  private:
    void open(char bracket);
    void close(char bracket);
    void separate();
    void quote(std::string_view s);

    std::string out_;
    std::size_t depth_ = 0;
    bool first_ = true;  // no comma before the next item
    bool pending_break_ = false;
};

}  // namespace shadowprof::model
