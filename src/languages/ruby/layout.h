// Where the fields of CRuby's structures are, by version, as its sources have them when they are
// built with their usual options.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace shadowprof::languages::ruby {

// In bytes from the beginning of each structure.
struct Layout {
    unsigned minor = 0;  // 3.MINOR
    struct {
        std::uint64_t ractors = 8, main_ractor = 32, main_thread = 40;
    } vm;
    struct {
        std::uint64_t threads = 0, main_thread = 0, next = 0;
    } ractor;
    struct {
        std::uint64_t size = 0, next = 0, ractor = 24, vm = 32, context = 0;
        std::uint64_t native = 0;  // to a structure that has the two; 0: they are here
        std::uint64_t pthread = 0, number = 0;
    } thread;
    struct {
        std::uint64_t size = 56, stack = 0, stack_words = 8, frame = 16, thread = 48;
    } context;
    struct {
        std::uint64_t size = 0, position = 0, code = 16, environment = 32;
    } frame;
    struct {
        std::uint64_t size = 0, kind = 0, instructions = 4, encoded = 8, path = 64, base_label = 72,
                      label = 80, first_line = 88, lines = 0, line_count = 0, line_index = 0;
    } code;
    bool has_length_in_flags = false;  // short text
    struct {
        std::uint64_t extension = 0;  // to a structure that has the rest; 0: it is here
        std::uint64_t variables = 0;  // 0: name and what it is of are fields
        std::uint64_t name = 0, attached = 0;
    } type;
};

// Nothing: none that is known here.
std::optional<Layout> layout_of(unsigned major, unsigned minor);

}  // namespace shadowprof::languages::ruby
