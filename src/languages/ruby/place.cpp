#include "languages/ruby/place.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "proc/dynamic_symbols.h"
#include "proc/unwind_table.h"

namespace shadowprof::languages::ruby {

namespace {

// "3.1.2"
std::optional<Layout> layout_in(const proc::DynamicSymbols& symbols, const proc::Memory& memory) {
    const auto at = symbols.find("ruby_version");
    const auto text = at ? memory.read_as<std::array<char, 4>>(at->begin) : std::nullopt;
    if (!text || (*text)[1] != '.' || (*text)[3] != '.') return {};
    return layout_of(static_cast<unsigned>((*text)[0] - '0'),
                     static_cast<unsigned>((*text)[2] - '0'));
}

// The image's variables: what is mapped without a gap around one of them.
AddressRange variables_around(const proc::Maps& maps, Address one) {
    constexpr std::uint64_t most = 4u << 20;
    AddressRange all;
    for (const auto& mapping : maps.mappings()) {
        if (!mapping.writable || mapping.shared || !mapping.readable) continue;
        if (mapping.range.begin != all.end || mapping.range.begin > one) {
            if (all.contains(one)) break;
            if (mapping.range.begin != all.end) all.begin = mapping.range.begin;
        }
        all.end = mapping.range.end;
    }
    if (!all.contains(one) || all.size() > most) return {};
    return all;
}

// It knows its main thread, which knows it.
bool is_machine(const ProcessMemory& memory, const Layout& layout, Address at) {
    const auto read = [&](Address from) {
        return memory.read_as<Address>(from).value_or(Address{});
    };
    if (!may_be_pointer(at)) return false;
    const auto ractor = read(at + layout.vm.main_ractor), thread = read(at + layout.vm.main_thread);
    if (!may_be_pointer(ractor) || !may_be_pointer(thread)) return false;
    if (read(ractor + layout.ractor.main_thread) != thread ||
        read(thread + layout.thread.vm) != at || read(thread + layout.thread.ractor) != ractor)
        return false;
    const auto context = read(thread + layout.thread.context);
    return may_be_pointer(context) && read(context + layout.context.thread) == thread;
}

// The first ones are called after their characters.
bool is_symbols(const ProcessMemory& memory, const Layout& layout, Address at) {
    const Names names{memory, layout, at};
    return std::ranges::all_of(std::string_view{"+*<"}, [&](char c) {
        return names.symbol(static_cast<std::uint64_t>(c)) == std::string{c};
    });
}

// Where code that the interpreter is in the middle of is executed: its first word says it.
std::optional<Address> in_loop(const ProcessMemory& memory, const Place& place) {
    const auto& layout = place.layout;
    const auto read = [&](Address from) {
        return may_be_pointer(from) ? memory.read_as<Address>(from).value_or(Address{}) : Address{};
    };
    const auto context = read(read(place.machine + layout.vm.main_thread) + layout.thread.context);
    const auto end = read(context + layout.context.stack) +
                     read(context + layout.context.stack_words).value * sizeof(Address);
    auto frame = read(context + layout.context.frame);
    for (std::size_t n = 0; n < most_frames && frame < end; ++n, frame += layout.frame.size) {
        const auto code = read(frame + layout.frame.code);
        const auto object = may_be_pointer(code)
                                ? memory.read_as<std::array<std::byte, internal_size>>(code)
                                : std::nullopt;
        const auto body = object ? body_of_code(*object) : std::nullopt;
        if (body) return read(read(*body + layout.code.encoded));
    }
    return {};
}

// The function that executes code, and the only one that calls it, if there is only one.
std::vector<AddressRange> loop_in(const proc::Maps& maps, const proc::MappedModule& module,
                                  const proc::Memory& memory, Address within) {
    const proc::UnwindTable functions{module, memory};
    const auto* const code = maps.mapping_at(within);
    const auto core = functions.function_at(within);
    constexpr std::uint64_t most = 256u << 20;
    if (!core || !code || !code->executable || code->range.size() > most) return {};
    std::vector<std::byte> bytes(code->range.size());
    bytes.resize(memory.read(code->range.begin, bytes));
    constexpr std::byte call{0xe8};
    constexpr std::size_t call_size = 5;
    std::set<std::uint64_t> callers;
    std::vector<AddressRange> loop{*core};
    for (std::size_t n = 0; n + call_size <= bytes.size(); ++n) {
        if (bytes[n] != call) continue;
        std::int32_t offset = 0;
        std::memcpy(&offset, &bytes[n + 1], sizeof offset);
        const auto at = code->range.begin + n;
        if (at + call_size + static_cast<std::uint64_t>(std::int64_t{offset}) != core->begin)
            continue;
        const auto caller = functions.function_at(at);
        if (caller && callers.insert(caller->begin.value).second) loop.push_back(*caller);
    }
    if (loop.size() != 2) loop.resize(1);
    return loop;
}

}  // namespace

std::optional<Place> find_place(pid_t pid, const proc::Maps& maps,
                                const proc::MappedModule& module) {
    const proc::Memory memory{pid};
    const proc::DynamicSymbols symbols{module, memory};
    const auto layout = layout_in(symbols, memory);
    const auto variable = symbols.find("rb_cObject");
    if (!layout || !variable) return {};
    const auto variables = variables_around(maps, variable->begin);
    std::vector<Address> words(variables.size() / sizeof(Address));
    if (memory.read(variables.begin, std::as_writable_bytes(std::span{words})) !=
        words.size() * sizeof(Address))
        return {};
    const ProcessMemory checked{pid};
    Place place;
    place.layout = *layout;
    for (std::size_t n = 0; n < words.size(); ++n) {
        const auto at = variables.begin + n * sizeof(Address);
        if (place.machine.value == 0 && is_machine(checked, *layout, words[n]))
            place.machine = words[n];
        if (place.symbols.value == 0 && is_symbols(checked, *layout, at)) place.symbols = at;
    }
    if (place.machine.value == 0 || place.symbols.value == 0) return {};
    const auto within = in_loop(checked, place);
    if (!within) return {};
    place.loop = loop_in(maps, module, memory, *within);
    if (place.loop.empty()) return {};
    return place;
}

}  // namespace shadowprof::languages::ruby
