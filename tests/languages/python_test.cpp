#include "languages/python/python.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>

#include "made_memory.h"

using namespace shadowprof;
using namespace shadowprof::languages;
using namespace shadowprof::languages::python;

namespace {

// An interpreter's memory as a version of CPython has it, with a thread that is in these functions,
// innermost first, and another that is in none.
struct Made {
    MadeMemory memory;
    Place place;
    Address thread, frame, code;  // the first of each
    std::set<Address> texts;      // what must not be spoilt where names are compared

    Made(const Layout& layout, const std::vector<MadeFunction>& functions) {
        place.layout = layout;
        for (auto* const type :
             {&place.types.code, &place.types.text, &place.types.bytes, &place.types.frame})
            *type = memory.reserve(64);
        place.runtime = memory.reserve(layout.interpreters + 8);
        const auto interpreter =
            memory.reserve(std::max(layout.interpreter.next, layout.interpreter.threads) + 8);
        memory.put(place.runtime + layout.interpreters, interpreter);
        const auto other = make_thread(interpreter, other_tid);
        thread = make_thread(interpreter, tid);
        memory.put(interpreter + layout.interpreter.threads, thread);
        memory.put(thread + layout.thread.next, other);
        Address inner{};
        const auto file = make_text("/app/made.py");
        for (const auto& function : functions) {
            const auto outer = make_frame(function, file);
            if (inner.value == 0)
                point_to_frame(thread, frame = outer);
            else
                memory.put(inner + layout.frame.previous, outer);
            inner = outer;
            if (!layout.has_frames_of_callers() || !function.is_outermost_of_loop) continue;
            const auto caller = memory.reserve(layout.frame.size);
            memory.put(caller + layout.frame.owner, std::uint8_t{3});
            memory.put(inner + layout.frame.previous, caller);
            inner = caller;
        }
        memory.fill_up();
    }

    Python interpreter() const { return {place, std::make_unique<MadeMemory>(memory)}; }

  private:
    Address make_thread(Address interpreter, pid_t number) {
        const auto& fields = place.layout.thread;
        const auto at = memory.reserve(place.layout.thread_size());
        memory.put(at + fields.interpreter, interpreter);
        constexpr std::uint64_t number_in_pthread = 0x2d0;
        const auto pthread = memory.reserve(number_in_pthread + 8);
        memory.put(pthread + number_in_pthread, number);
        memory.put(at + fields.id, pthread);
        if (place.layout.frame_of_cframe) memory.put(at + fields.frame, memory.reserve(24));
        return at;
    }
    void point_to_frame(Address of_thread, Address to) {
        auto at = of_thread + place.layout.thread.frame;
        if (place.layout.frame_of_cframe)
            at = *memory.read_as<Address>(at) + *place.layout.frame_of_cframe;
        memory.put(at, to);
    }
    Address make_text(const std::string& text) {
        const auto& fields = place.layout.text;
        const auto at = memory.reserve(fields.ascii_size + text.size() + 1);
        memory.put(at + place.layout.type, place.types.text);
        memory.put(at + fields.length, std::uint64_t{text.size()});
        constexpr std::uint32_t compact_ascii = 1u << 2 | 1u << 5 | 1u << 6;
        memory.put(at + fields.state, compact_ascii);
        memory.put_text(at + fields.ascii_size, text);
        return at;
    }
    // Eight bytes of code for each line.
    Address make_lines() {
        const auto& layout = place.layout;
        std::string table;
        for (int line = 0; line < 20; ++line) {
            const char change = line == 0 ? 0 : 1;
            if (layout.line_table == LineTable::locations)
                table += {static_cast<char>(0x80 | 13 << 3 | 3), static_cast<char>(change << 1)};
            else if (layout.line_table == LineTable::ranges)
                table += {8, change};
            else
                table += {static_cast<char>(line == 0 ? 0 : 8), change};
        }
        const auto at = memory.reserve(layout.bytes_begin + table.size() + 1);
        memory.put(at + layout.type, place.types.bytes);
        memory.put(at + layout.length, std::uint64_t{table.size()});
        memory.put_text(at + layout.bytes_begin, table);
        return at;
    }
    Address make_frame(const MadeFunction& function, Address file) {
        const auto& layout = place.layout;
        constexpr std::uint64_t instructions = 80;
        const auto object = memory.reserve(layout.code.size + 2 * instructions);
        if (code.value == 0) code = object;
        memory.put(object + layout.type, place.types.code);
        memory.put(object + layout.code.file, file);
        memory.put(object + layout.code.name, make_text(function.name));
        if (layout.code.qualified_name != 0)
            memory.put(object + layout.code.qualified_name, make_text("of." + function.name));
        memory.put(object + layout.code.lines, make_lines());
        memory.put(object + layout.code.first_line, function.first_line);
        if (layout.code.instructions != 0)
            memory.put(object + layout.length, std::uint64_t{instructions});
        const auto at = memory.reserve(layout.frame.size);
        memory.put(at + layout.frame.code, object);
        const auto position = 8 * function.line_after + 4;
        if (layout.has_frame_objects()) {
            memory.put(at + layout.type, place.types.frame);
            memory.put(at + layout.frame.position, layout.minor == 10 ? position / 2 : position);
        } else {
            memory.put(at + layout.frame.position, object + layout.code.instructions + position);
        }
        if (layout.frame.is_entry != 0)
            memory.put(at + layout.frame.is_entry,
                       static_cast<std::uint8_t>(function.is_outermost_of_loop));
        return at;
    }
};

// _Py_DebugOffsets of 3.13.0.
std::vector<std::byte> offsets_of_3_13() {
    std::vector<std::uint64_t> words(debug_offsets_size / 8);
    std::memcpy(words.data(), "xdebugpy", 8);
    const std::map<std::size_t, std::uint64_t> values{
        {1, 0x030d00f0}, {2, 0},    {5, 632},  {8, 7264}, {9, 7344}, {21, 8},   {22, 16},
        {23, 72},        {24, 152}, {25, 160}, {28, 88},  {29, 8},   {30, 0},   {31, 56},
        {33, 70},        {34, 208}, {35, 112}, {36, 120}, {37, 128}, {38, 136}, {39, 68},
        {43, 200},       {45, 8},   {65, 16},  {66, 32},  {68, 32},  {69, 16},  {70, 40}};
    for (const auto& [n, value] : values) words[n] = value;
    const auto bytes = std::as_bytes(std::span{words});
    return {bytes.begin(), bytes.end()};
}

std::vector<Layout> all_layouts() {
    std::vector<Layout> all;
    for (const unsigned minor : {9u, 10u, 11u, 12u}) all.push_back(*layout_of(minor));
    all.push_back(*layout_from(offsets_of_3_13()));
    return all;
}

std::string name_in(const Layout& layout, const std::string& name) {
    return layout.code.qualified_name != 0 ? "of." + name : name;
}

}  // namespace

TEST_CASE("a thread's functions and lines are read in every version") {
    for (const auto& layout : all_layouts()) {
        CAPTURE(layout.minor);
        const Made made{layout, made_functions};
        auto python = made.interpreter();
        const auto glance = python.thread(tid)->look();
        REQUIRE(glance);
        const auto frames = python.frames_of(*glance);
        REQUIRE(frames.size() == made_functions.size());
        for (std::size_t n = 0; n < frames.size(); ++n) {
            const auto& [name, first, after, is_outermost] = made_functions[n];
            CHECK(frames[n].function->name == name_in(layout, name));
            CHECK(frames[n].function->file == "/app/made.py");
            CHECK(frames[n].function->first_line == first);
            CHECK(frames[n].line == first + after);
            CHECK(frames[n].is_outermost_of_loop == (is_outermost || layout.has_frame_objects()));
        }
    }
}

TEST_CASE(
    "a thread in none of its functions has no frames, and one that it does not know neither") {
    for (const auto& layout : all_layouts()) {
        const Made made{layout, made_functions};
        const auto python = made.interpreter();
        const auto idle = python.thread(other_tid)->look(), unknown = python.thread(1)->look();
        CHECK((idle && idle->frames.empty()));
        CHECK((unknown && unknown->frames.empty()));
    }
}

TEST_CASE("what leads in a circle, or nowhere, or to something else yields nothing") {
    for (const auto& layout : all_layouts()) {
        CAPTURE(layout.minor);
        const auto spoilt = [&](auto spoil) {
            Made made{layout, made_functions};
            spoil(made);
            return made.interpreter().thread(tid)->look();
        };
        CHECK(!spoilt([&](Made& m) { m.memory.put(m.frame + layout.frame.previous, m.frame); }));
        CHECK(
            !spoilt([&](Made& m) { m.memory.put(m.frame + layout.frame.code, Address{0x1000}); }));
        CHECK(!spoilt([&](Made& m) { m.memory.put(m.frame + layout.frame.code, m.frame); }));
        CHECK(!spoilt([&](Made& m) { m.memory.put(m.code + layout.type, m.place.types.text); }));
        CHECK(!spoilt([&](Made& m) { m.memory.put(m.thread + layout.thread.next, m.thread); }));
        CHECK(!spoilt([&](Made& m) {
            m.memory.put(m.thread + layout.thread.interpreter, Address{0x7fff00000000});
        }));
    }
}

TEST_CASE("a function that is another one by the time it is asked for has no name") {
    const Made made{*layout_of(11), made_functions};
    auto python = made.interpreter();
    auto glance = *python.thread(tid)->look();
    ++glance.frames.front().contents;
    const auto frames = python.frames_of(glance);
    REQUIRE(frames.size() == made_functions.size() - 1);
    CHECK(frames.front().function->name == "of.calls");
    CHECK(frames.front().is_outermost_of_loop);
}

TEST_CASE("a deep recursion is cut") {
    const Made made{*layout_of(12), std::vector<MadeFunction>(2000, {"deep", 5, 1, false})};
    auto python = made.interpreter();
    const auto glance = python.thread(tid)->look();
    REQUIRE(glance);
    CHECK(glance->frames.size() == 256);
}

// Whatever a damaged interpreter's structures hold: it ends, and names are ones that are there.
TEST_CASE("spoilt memory yields no frames or true names") {
    std::size_t still_read = 0, refused = 0;
    for (const auto& layout : all_layouts()) {
        const Made sound{layout, made_functions};
        std::set<std::string> names;
        for (const auto& function : made_functions) {
            names.insert(name_in(layout, function.name));
            names.insert(function.name);
        }
        names.insert("/app/made.py");
        Random random{layout.minor};
        for (int round = 0; round < 3000; ++round) {
            Made made = sound;
            spoil(made.memory, random);
            auto python = made.interpreter();
            const auto thread = python.thread(tid);
            const auto glance = thread->look();
            (glance && !glance->frames.empty() ? still_read : refused) += 1;
            if (!glance) continue;
            CHECK(glance->frames.size() <= 256);
            for (const auto& frame : python.frames_of(*glance)) {
                const auto& name = frame.function->name;
                const bool is_part_of_true_name = std::ranges::any_of(
                    names, [&](const auto& known) { return known.find(name) != known.npos; });
                CHECK_MESSAGE(is_part_of_true_name, name);
            }
        }
    }
    CHECK(still_read > 100);
    CHECK(refused > 100);
}

TEST_CASE("what 3.13 says of itself is checked") {
    auto offsets = offsets_of_3_13();
    CHECK(layout_from(offsets));
    auto too_old = offsets;
    too_old[10] = std::byte{0x0e};
    CHECK(!layout_from(too_old));
    auto without_lock = offsets;
    without_lock[16] = std::byte{1};
    CHECK(!layout_from(without_lock));
    auto beyond = offsets;
    beyond[29 * 8 + 3] = std::byte{1};  // where a frame has the one before it
    CHECK(!layout_from(beyond));
    CHECK(!layout_from(std::span{offsets}.first(100)));
    CHECK(!layout_of(8));
    CHECK(!layout_of(14));
}
