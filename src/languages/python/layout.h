// Where the fields of CPython's structures are, by version: of 3.9 to 3.12 as its headers have
// them, which did not change within a version; 3.13 says it itself, at the beginning of _PyRuntime.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace shadowprof::languages::python {

// How positions in code become lines.
enum class LineTable : std::uint8_t {
    increments,  // co_lnotab: pairs of bytes
    ranges,      // co_linetable of 3.10: pairs of bytes, which may say "no line"
    locations,   // co_linetable since 3.11
};

// In bytes from the beginning of each structure.
struct Layout {
    unsigned minor = 0;              // 3.MINOR
    std::uint64_t interpreters = 0;  // _PyRuntime: the first one
    struct {
        std::uint64_t next = 0, threads = 8;
    } interpreter;
    struct {
        std::uint64_t next = 8, interpreter = 16, id = 0, native_id = 0, frame = 0;
    } thread;  // native_id 0: it has none
    // Where the thread leads to a _PyCFrame, which knows the frame.
    std::optional<std::uint64_t> frame_of_cframe;
    struct {
        std::uint64_t size = 0, code = 0, previous = 0, position = 0, owner = 0;
        std::uint64_t is_entry = 0;  // 0: no such field
    } frame;
    struct {
        std::uint64_t size = 0, file = 112, name = 120, qualified_name = 0, lines = 136,
                      first_line = 0;
        std::uint64_t instructions = 0;  // in the object itself; 0: they are not
    } code;
    LineTable line_table{};
    std::uint64_t type = 8, length = 16;  // of any object, and of one of variable size
    struct {
        std::uint64_t length = 16, state = 32, ascii_size = 0, compact_size = 0;
    } text;
    std::uint64_t bytes_begin = 32;

    // What is read of a thread's state.
    std::uint64_t thread_size() const {
        return std::max(
                   {thread.next, thread.interpreter, thread.id, thread.native_id, thread.frame}) +
               sizeof(std::uint64_t);
    }
    // Frames are objects of their own, and each is executed by a call of the loop.
    bool has_frame_objects() const { return minor < 11; }
    // Of whoever called the loop, which executes no code.
    bool has_frames_of_callers() const { return minor >= 12; }
};

// Nothing: none that is known here.
std::optional<Layout> layout_of(unsigned minor);

// _Py_DebugOffsets: what the interpreter says of itself.
inline constexpr std::size_t debug_offsets_size = 73 * 8;
std::optional<Layout> layout_from(std::span<const std::byte> debug_offsets);

}  // namespace shadowprof::languages::python
