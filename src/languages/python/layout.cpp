#include "languages/python/layout.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <string_view>

namespace shadowprof::languages::python {

namespace {

// Of 3.9 and 3.10.
Layout with_frame_objects(unsigned minor) {
    Layout l;
    l.minor = minor;
    l.interpreters = 32;
    l.interpreter = {.next = 0, .threads = 8};
    l.thread.id = 176;
    l.thread.frame = 24;
    l.frame.size = 112;
    l.frame.previous = 24;
    l.frame.code = 32;
    l.frame.position = minor == 9 ? 104 : 96;
    l.code.size = 176;
    l.code.file = 104;
    l.code.name = 112;
    l.code.lines = 120;
    l.code.first_line = 40;
    l.line_table = minor == 9 ? LineTable::increments : LineTable::ranges;
    l.text.ascii_size = 48;
    l.text.compact_size = 72;
    return l;
}

Layout of_3_11() {
    Layout l;
    l.minor = 11;
    l.interpreters = 40;
    l.interpreter = {.next = 0, .threads = 16};
    l.thread.id = 152;
    l.thread.native_id = 160;
    l.thread.frame = 56;
    l.frame_of_cframe = 8;
    l.frame = {.size = 72, .code = 32, .previous = 48, .position = 56, .owner = 69, .is_entry = 68};
    l.code.size = 192;
    l.code.qualified_name = 128;
    l.code.first_line = 72;
    l.code.instructions = 184;
    l.line_table = LineTable::locations;
    l.text.ascii_size = 48;
    l.text.compact_size = 72;
    return l;
}

Layout of_3_12() {
    auto l = of_3_11();
    l.minor = 12;
    l.interpreter.threads = 72;
    l.thread.id = 136;
    l.thread.native_id = 144;
    l.frame_of_cframe = 0;
    l.frame = {.size = 72, .code = 0, .previous = 8, .position = 56, .owner = 70};
    l.code.size = 200;
    l.code.first_line = 68;
    l.code.instructions = 192;
    l.text.ascii_size = 40;
    l.text.compact_size = 56;
    return l;
}

}  // namespace

std::optional<Layout> layout_of(unsigned minor) {
    if (minor == 9 || minor == 10) return with_frame_objects(minor);
    if (minor == 11) return of_3_11();
    if (minor == 12) return of_3_12();
    return {};
}

std::optional<Layout> layout_from(std::span<const std::byte> debug_offsets) {
    constexpr std::string_view cookie = "xdebugpy";
    std::array<std::uint64_t, debug_offsets_size / sizeof(std::uint64_t)> words{};
    if (debug_offsets.size() < debug_offsets_size) return {};
    std::memcpy(words.data(), debug_offsets.data(), debug_offsets_size);
    if (std::memcmp(words.data(), cookie.data(), cookie.size()) != 0) return {};
    constexpr std::uint64_t version_3_13 = 0x030d;
    const bool has_no_lock = words[2] != 0;
    if (words[1] >> 16 != version_3_13 || has_no_lock) return {};
    Layout l;
    l.minor = 13;
    l.interpreters = words[5];
    l.interpreter = {.next = words[8], .threads = words[9]};
    l.thread = {.next = words[21],
                .interpreter = words[22],
                .id = words[24],
                .native_id = words[25],
                .frame = words[23]};
    l.frame.size = words[28];
    l.frame.previous = words[29];
    l.frame.code = words[30];
    l.frame.position = words[31];
    l.frame.owner = words[33];
    l.code.size = words[34];
    l.code.file = words[35];
    l.code.name = words[36];
    l.code.qualified_name = words[37];
    l.code.lines = words[38];
    l.code.first_line = words[39];
    l.code.instructions = words[43];
    l.line_table = LineTable::locations;
    l.type = words[45];
    l.length = words[65];
    l.bytes_begin = words[66];
    l.text = {.length = words[69],
              .state = words[68],
              .ascii_size = words[70],
              .compact_size = words[70] + 16};
    // What follows adds them to addresses, and has room for structures of this size.
    constexpr std::uint64_t most = 1u << 16, most_size = 512;
    const auto is_within = [](std::uint64_t field, std::uint64_t size) {
        return size <= most_size && field <= size;
    };
    const auto in_frame = {l.frame.previous, l.frame.code, l.frame.position, l.frame.owner};
    const auto in_code = {l.code.file, l.code.name, l.code.qualified_name, l.code.lines,
                          l.type,      l.length,    l.code.first_line,     l.code.instructions};
    const auto in_thread = {l.thread.next, l.thread.interpreter, l.thread.id, l.thread.native_id,
                            l.thread.frame};
    const bool is_sound =
        std::ranges::all_of(in_frame, [&](auto f) { return is_within(f + 1, l.frame.size); }) &&
        std::ranges::all_of(in_code, [&](auto f) { return is_within(f, l.code.size); }) &&
        std::ranges::all_of(in_thread, [](auto f) { return f + 8 <= most_size; }) &&
        std::ranges::all_of(
            std::array{l.interpreters, l.interpreter.next, l.interpreter.threads, l.bytes_begin,
                       l.text.length, l.text.state, l.text.ascii_size},
            [](auto f) { return f < most; });
    if (!is_sound) return {};
    return l;
}

}  // namespace shadowprof::languages::python
