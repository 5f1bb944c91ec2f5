#include "languages/ruby/layout.h"

namespace shadowprof::languages::ruby {

namespace {

Layout of_3_1() {
    Layout l;
    l.minor = 1;
    l.ractor = {.threads = 304, .main_thread = 528, .next = 568};
    l.thread.size = 96;
    l.thread.context = 40;
    l.thread.pthread = 80;
    l.thread.number = 88;
    l.frame.size = 64;
    l.code.size = 152;
    l.code.lines = 120;
    l.code.line_count = 136;
    l.code.line_index = 144;
    l.has_length_in_flags = true;
    l.type.extension = 24;
    l.type.variables = 8;
    return l;
}

Layout of_3_3() {
    Layout l;
    l.minor = 3;
    l.ractor = {.threads = 256, .main_thread = 392, .next = 432};
    l.thread.size = 56;
    l.thread.context = 48;
    l.thread.native = 40;
    l.thread.pthread = 16;
    l.thread.number = 24;
    l.frame.size = 56;
    l.code.size = 144;
    l.code.lines = 112;
    l.code.line_count = 128;
    l.code.line_index = 136;
    l.type.name = 152;
    l.type.attached = 128;
    return l;
}

}  // namespace

std::optional<Layout> layout_of(unsigned major, unsigned minor) {
    if (major != 3) return {};
    if (minor == 1) return of_3_1();
    if (minor == 3) return of_3_3();
    return {};
}

}  // namespace shadowprof::languages::ruby
