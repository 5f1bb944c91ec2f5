#include "languages/ruby/ruby.h"

#include <doctest/doctest.h>

#include <map>

#include "languages/ruby/line_table.h"
#include "made_memory.h"

using namespace shadowprof;
using namespace shadowprof::languages;
using namespace shadowprof::languages::ruby;

namespace {

constexpr std::uint64_t text_flags = 0x05, array_flags = 0x07, class_flags = 0x02,
                        internal_flags = 0x1a, apart = 1u << 13, singleton = 1u << 12;

// As the interpreter makes it, of where pieces begin.
std::vector<std::uint64_t> index_of(const std::vector<std::uint32_t>& begins, std::uint32_t words) {
    std::vector<std::uint64_t> index;
    const auto until = [&](std::uint32_t position) {
        return static_cast<std::uint64_t>(
            std::ranges::count_if(begins, [&](auto begin) { return begin <= position; }));
    };
    for (std::uint32_t at = 0; at < std::min(words, 54u); at += 9) {
        std::uint64_t word = 0;
        for (std::uint32_t n = 0; n < 9; ++n) word |= until(at + n) << 7 * n;
        index.push_back(word);
    }
    for (std::uint32_t block = 54; block < words; block += 512) {
        index.push_back(until(block - 1));
        std::uint64_t ranks = 0;
        for (std::uint32_t n = 1; n < 8; ++n)
            ranks |= (until(block + 64 * n - 1) - until(block - 1)) << 9 * (n - 1);
        index.push_back(ranks);
        for (std::uint32_t n = 0; n < 8; ++n) {
            std::uint64_t bits = 0;
            for (const auto begin : begins)
                if (begin >= block + 64 * n && begin < block + 64 * (n + 1))
                    bits |= std::uint64_t{1} << (begin - block - 64 * n);
            index.push_back(bits);
        }
    }
    return index;
}

struct Piece {
    std::uint32_t line, node = 0, events = 0;
};

// An interpreter's memory as a version of CRuby has it, with a thread that is in these functions,
// innermost first, and another that is in none. Those without lines are native.
struct Made {
    MadeMemory memory;
    Place place;
    Address thread, context, frame, code, environment;  // of the innermost frame
    std::map<std::string, std::uint64_t> symbols;
    Address symbol_texts;

    Made(const Layout& layout, const std::vector<MadeFunction>& functions) {
        place.layout = layout;
        make_symbols();
        place.machine = memory.reserve(64);
        const auto ractor = memory.reserve(layout.ractor.next + 16);
        const auto in_machine = place.machine + layout.vm.ractors;
        memory.put(in_machine, ractor + layout.ractor.next);
        memory.put(ractor + layout.ractor.next, in_machine);
        const auto head = ractor + layout.ractor.threads;
        const auto other = make_thread(ractor, other_tid);
        thread = make_thread(ractor, tid);
        memory.put(head, other + layout.thread.next);
        memory.put(other + layout.thread.next, thread + layout.thread.next);
        memory.put(thread + layout.thread.next, head);

        const auto words_of_frames = functions.size() * (layout.frame.size / 8 + 3);
        const auto stack = memory.reserve(words_of_frames * 8);
        frame = stack + (words_of_frames * 8 - functions.size() * layout.frame.size);
        context = memory.reserve(layout.context.size);
        memory.put(context + layout.context.stack, stack);
        memory.put(context + layout.context.stack_words, std::uint64_t{words_of_frames});
        memory.put(context + layout.context.frame, frame);
        memory.put(context + layout.context.thread, thread);
        memory.put(thread + layout.thread.context, context);

        const auto file = make_array({make_text("made.rb"), make_text("/app/a/long/name/made.rb")});
        const auto owner = make_class("Shape");
        for (std::size_t n = 0; n < functions.size(); ++n)
            make_frame(functions[n], frame + n * layout.frame.size, stack + n * 24, file, owner);
        memory.fill_up();
    }

    Ruby interpreter() const { return {place, std::make_unique<MadeMemory>(memory)}; }

    Address make_class(const std::string& name) {
        const auto& type = place.layout.type;
        const auto at = memory.reserve(168);
        memory.put(at, class_flags);
        if (type.variables == 0)
            memory.put(at + type.name, make_text(name));
        else
            make_variable(at, "__classpath__", make_text(name));
        return at;
    }
    Address make_singleton(Address of) {
        const auto& type = place.layout.type;
        const auto at = memory.reserve(168);
        memory.put(at, class_flags | singleton);
        if (type.variables == 0)
            memory.put(at + type.attached, of);
        else
            make_variable(at, "__attached__", of);
        return at;
    }
    Address make_text(const std::string& text) {
        const bool has_length_in_flags = place.layout.has_length_in_flags;
        const auto begin = has_length_in_flags ? 16u : 24u;
        const auto at = memory.reserve(40);
        if (text.size() > 40 - begin) {
            const auto characters = memory.reserve(text.size());
            memory.put_text(characters, text);
            memory.put(at, text_flags | apart);
            memory.put(at + 16, std::uint64_t{text.size()});
            memory.put(at + 24, characters);
            return at;
        }
        memory.put(at, text_flags | (has_length_in_flags ? text.size() << 14 : 0));
        if (!has_length_in_flags) memory.put(at + 16, std::uint64_t{text.size()});
        memory.put_text(at + begin, text);
        return at;
    }

  private:
    void make_symbols() {
        constexpr std::uint64_t size = 2 * 512;
        const auto texts = memory.reserve(size * 8);
        const auto add = [&](const std::string& name, std::uint64_t number) {
            memory.put(texts + number * 16, make_text(name));
            symbols[name] = number << 4 | 1;
        };
        add("__classpath__", 200);
        add("__attached__", 201);
        add("work", 202);
        place.symbols = memory.reserve(32);
        memory.put(place.symbols + 16, make_array({make_array_at(texts, size)}));
    }
    Address make_array_at(Address elements, std::uint64_t size) {
        const auto at = memory.reserve(40);
        memory.put(at, array_flags);
        memory.put(at + 16, size);
        memory.put(at + 32, elements);
        return at;
    }
    // Short ones have their elements in them.
    Address make_array(const std::vector<Address>& elements) {
        const auto at = memory.reserve(40);
        memory.put(at, array_flags | apart | elements.size() << 15);
        for (std::size_t n = 0; n < elements.size(); ++n) memory.put(at + 16 + 8 * n, elements[n]);
        return at;
    }
    void make_variable(Address type, const std::string& name, Address value) {
        const auto extension = memory.reserve(112), table = memory.reserve(56),
                   entries = memory.reserve(48);
        memory.put(type + place.layout.type.extension, extension);
        memory.put(extension + place.layout.type.variables, table);
        memory.put(table + 40, std::uint64_t{2});
        memory.put(table + 48, entries);
        memory.put(entries + 32, symbols.at(name));
        memory.put(entries + 40, value);
    }
    Address make_thread(Address ractor, pid_t number) {
        const auto& fields = place.layout.thread;
        const auto at = memory.reserve(fields.size);
        memory.put(at + fields.ractor, ractor);
        memory.put(at + fields.vm, place.machine);
        auto has_number = at;
        if (fields.native != 0) memory.put(at + fields.native, has_number = memory.reserve(40));
        memory.put(has_number + fields.number, number);
        return at;
    }
    Address make_method(const std::string& name, Address owner) {
        const auto definition = memory.reserve(48), at = memory.reserve(internal_size);
        if (symbols.contains(name)) memory.put(definition + 32, symbols.at(name));
        memory.put(at, internal_flags | 6u << 12);
        memory.put(at + 16, definition);
        memory.put(at + 32, owner);
        return at;
    }
    // Eight words of code for each line.
    Address make_code(const MadeFunction& function, Address file) {
        const auto& fields = place.layout.code;
        constexpr std::uint32_t words = 160;
        const auto at = memory.reserve(internal_size), body = memory.reserve(fields.size);
        memory.put(at, internal_flags | 7u << 12);
        memory.put(at + 16, body);
        memory.put(body + fields.kind, 1);
        memory.put(body + fields.instructions, words);
        memory.put(body + fields.encoded, memory.reserve(words * 8));
        memory.put(body + fields.path, file);
        memory.put(body + fields.base_label, make_text(function.name));
        memory.put(body + fields.label,
                   make_text(function.name.starts_with('<') ? function.name
                                                            : "block in " + function.name));
        if (place.layout.minor == 1)
            memory.put(body + fields.first_line, std::uint64_t{function.first_line} * 2 + 1);
        else
            memory.put(body + fields.first_line, function.first_line);
        std::vector<std::uint32_t> begins;
        const auto lines = memory.reserve(20 * sizeof(Piece));
        for (std::uint32_t n = 0; n < 20; ++n) {
            begins.push_back(8 * n);
            memory.put(lines + n * sizeof(Piece), Piece{function.first_line + n});
        }
        memory.put(body + fields.lines, lines);
        memory.put(body + fields.line_count, std::uint32_t{20});
        const auto index = index_of(begins, words);
        const auto index_at = memory.reserve(index.size() * 8);
        for (std::size_t n = 0; n < index.size(); ++n) memory.put(index_at + 8 * n, index[n]);
        memory.put(body + fields.line_index, index_at);
        return at;
    }
    void make_frame(const MadeFunction& function, Address at, Address in_stack, Address file,
                    Address owner) {
        const auto& fields = place.layout.frame;
        constexpr std::uint64_t native = 0x55550081, method = 0x11110001, local = 2, begins = 0x20;
        const bool is_native = function.first_line == 0;
        memory.put(in_stack, make_method(function.name, owner));
        memory.put(in_stack + 16, local | (is_native ? native : method) |
                                      (function.is_outermost_of_loop ? begins : 0));
        memory.put(at + fields.environment, in_stack + 16);
        if (is_native) return;
        const auto object = make_code(function, file);
        if (code.value == 0) {
            code = object;
            environment = in_stack + 16;
        }
        const auto body = *memory.read_as<Address>(object + 16);
        const auto encoded = *memory.read_as<Address>(body + place.layout.code.encoded);
        memory.put(at + fields.code, object);
        // Behind the instruction that is executed.
        memory.put(at + fields.position, encoded + (8 * function.line_after + 5) * 8);
    }
};

std::vector<Layout> all_layouts() {
    return {*layout_of(3, 1), *layout_of(3, 3)};
}

std::vector<MadeFunction> with_native() {
    auto functions = made_functions;
    functions.insert(functions.begin() + 2, {"work", 0, 0, false});
    return functions;
}

}  // namespace

TEST_CASE("Ruby: a thread's functions and lines are read in every version") {
    const auto functions = with_native();
    for (const auto& layout : all_layouts()) {
        CAPTURE(layout.minor);
        const Made made{layout, functions};
        auto ruby = made.interpreter();
        const auto glance = ruby.thread(tid)->look();
        REQUIRE(glance);
        const auto frames = ruby.frames_of(*glance);
        REQUIRE(frames.size() == functions.size());
        const std::vector<std::string> names{"block in Shape#leaf", "block in Shape#calls",
                                             "Shape#work", "block in Shape#calls", "<module>"};
        for (std::size_t n = 0; n < frames.size(); ++n) {
            const auto& [name, first, after, is_outermost] = functions[n];
            CHECK(frames[n].function->name == names[n]);
            CHECK(frames[n].function->file == (first ? "/app/a/long/name/made.rb" : ""));
            CHECK(frames[n].function->first_line == first);
            CHECK(frames[n].line == first + after);
            CHECK(frames[n].is_outermost_of_loop == is_outermost);
        }
    }
}

TEST_CASE("Ruby: a thread in none of its functions has no frames, and an unknown one neither") {
    for (const auto& layout : all_layouts()) {
        const Made made{layout, made_functions};
        const auto ruby = made.interpreter();
        const auto idle = ruby.thread(other_tid)->look(), unknown = ruby.thread(1)->look();
        CHECK((idle && idle->frames.empty()));
        CHECK((unknown && unknown->frames.empty()));
    }
}

TEST_CASE("Ruby: what leads in a circle, or nowhere, or to something else yields nothing") {
    for (const auto& layout : all_layouts()) {
        CAPTURE(layout.minor);
        const auto spoilt = [&](auto spoil) {
            Made made{layout, made_functions};
            spoil(made.memory, made);
            return made.interpreter().thread(tid)->look();
        };
        const auto sound = spoilt([](auto&, auto&) {});
        CHECK((sound && !sound->frames.empty()));
        CHECK(!spoilt([&](auto& m, Made& of) { m.put(of.environment, std::uint64_t{0x12}); }));
        CHECK(!spoilt(
            [&](auto& m, Made& of) { m.put(of.frame + layout.frame.code, of.place.symbols); }));
        CHECK(!spoilt(
            [&](auto& m, Made& of) { m.put(of.frame + layout.frame.position, of.place.symbols); }));
        CHECK(!spoilt([&](auto& m, Made& of) { m.put(of.code, internal_flags | 6u << 12); }));
        CHECK(!spoilt(
            [&](auto& m, Made& of) { m.put(of.context + layout.context.frame, of.frame + 8); }));
        CHECK(!spoilt([&](auto& m, Made& of) {
            m.put(of.context + layout.context.thread, of.place.machine);
        }));
        CHECK(!spoilt([&](auto& m, Made& of) {
            // A block of a block of a block …
            m.put(of.environment, std::uint64_t{0x22220001});
            m.put(of.environment - 8, of.environment.value | 1);
        }));
    }
}

TEST_CASE("Ruby: a function that is another one by the time it is asked for has no name") {
    for (const auto& layout : all_layouts()) {
        const Made made{layout, made_functions};
        auto ruby = made.interpreter();
        auto glance = *ruby.thread(tid)->look();
        ++glance.frames.front().contents;
        const auto frames = ruby.frames_of(glance);
        REQUIRE(frames.size() == made_functions.size() - 1);
        CHECK(frames.front().function->name == "block in Shape#calls");
        CHECK(frames.front().is_outermost_of_loop);
    }
}

TEST_CASE("Ruby: a deep recursion is cut") {
    const Made made{*layout_of(3, 1), std::vector<MadeFunction>(600, {"deep", 5, 1, false})};
    const auto glance = made.interpreter().thread(tid)->look();
    REQUIRE(glance);
    CHECK(glance->frames.size() == 256);
}

TEST_CASE("Ruby: methods of a class itself are told from those of its objects") {
    for (const auto& layout : all_layouts()) {
        Made made{layout, made_functions};
        const auto type = made.make_class("Geometry::Shape");
        const auto its_own = made.make_singleton(type);
        const Names names{made.memory, layout, made.place.symbols};
        CHECK(qualified(names.owner(type), "area") == "Geometry::Shape#area");
        CHECK(qualified(names.owner(its_own), "make") == "Geometry::Shape.make");
        CHECK(qualified(names.owner(made.make_text("Shape")), "area") == "area");
        CHECK(!names.text(made.make_text("a\nb")));
        CHECK(!names.text(made.make_text("\xff\xfe")));
        CHECK(names.text(made.make_text("größe")) == "größe");
    }
}

// Whatever a damaged interpreter's structures hold: it ends, and names are ones that are there.
TEST_CASE("Ruby: spoilt memory yields no frames or true names") {
    std::size_t still_read = 0, refused = 0;
    for (const auto& layout : all_layouts()) {
        const Made sound{layout, with_native()};
        Random random{layout.minor};
        for (int round = 0; round < 3000; ++round) {
            Made made = sound;
            spoil(made.memory, random);
            auto ruby = made.interpreter();
            const auto glance = ruby.thread(tid)->look();
            (glance && !glance->frames.empty() ? still_read : refused) += 1;
            if (!glance) continue;
            CHECK(glance->frames.size() <= 256);
            for (const auto& frame : ruby.frames_of(*glance)) {
                const auto& name = frame.function->name;
                const auto is_in_name = [&](std::string_view known) {
                    return name.find(known) != name.npos;
                };
                CHECK_MESSAGE((is_in_name("leaf") || is_in_name("calls") || is_in_name("work") ||
                               is_in_name("<module>") || is_in_name("made.rb") ||
                               is_in_name("Shape") || is_in_name("__")),
                              name);
            }
        }
    }
    CHECK(still_read > 100);
    CHECK(refused > 100);
}

TEST_CASE("Ruby: each position has the line of the piece that it is in") {
    std::vector<std::uint32_t> begins;
    std::vector<Piece> pieces;
    Random random{3};
    constexpr std::uint32_t words = 3000;
    for (std::uint32_t at = 0; at < words; at += 1 + static_cast<std::uint32_t>(random.below(9))) {
        begins.push_back(at);
        pieces.push_back({static_cast<std::uint32_t>(1 + random.below(500))});
    }
    for (const std::uint32_t end : {1u, 53u, 54u, 55u, 566u, 567u, words}) {
        const auto index = index_of(begins, end);
        CHECK(index_size(end) == index.size() * 8);
        std::size_t piece = 0;
        for (std::uint32_t at = 0; at < end; ++at) {
            if (piece + 1 < begins.size() && begins[piece + 1] == at) ++piece;
            const auto line =
                line_at(std::as_bytes(std::span{pieces}), std::as_bytes(std::span{index}), at);
            CHECK(line == pieces[piece].line);
        }
    }
    CHECK(!line_at({}, {}, 0));
    CHECK(!line_at(std::as_bytes(std::span{pieces}), {}, 5));
}

TEST_CASE("Ruby: only versions that were tried are known") {
    for (const unsigned minor : {0u, 2u, 4u, 5u}) CHECK(!layout_of(3, minor));
    CHECK(!layout_of(2, 7));
}
