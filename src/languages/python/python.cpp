#include "languages/python/python.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string>
#include <utility>

#include "languages/python/line_table.h"
#include "proc/dynamic_symbols.h"

namespace shadowprof::languages::python {

namespace {

// "libpython3.9.so.1.0", "python3.10": 3.11 and later have a variable that says it.
std::optional<unsigned> minor_in(std::string_view path) {
    constexpr std::string_view begin = "python3.";
    const auto name = path.substr(path.rfind('/') + 1);
    const auto at = name.find(begin);
    if (at == name.npos) return {};
    unsigned minor = 0;
    const auto* const digits = name.data() + at + begin.size();
    if (std::from_chars(digits, name.data() + name.size(), minor).ptr == digits) return {};
    return minor;
}

std::optional<Layout> layout_in(const proc::MappedModule& module,
                                const proc::DynamicSymbols& symbols, const proc::Memory& memory,
                                Address runtime) {
    std::array<std::byte, debug_offsets_size> offsets{};
    if (memory.read(runtime, offsets) == offsets.size())
        if (const auto told = layout_from(offsets)) return told;
    auto minor = minor_in(module.path);
    if (const auto variable = symbols.find("Py_Version")) {
        const auto version = memory.read_as<std::uint32_t>(variable->begin);
        if (!version || *version >> 24 != 3) return {};
        minor = *version >> 16 & 0xff;
    }
    return minor ? layout_of(*minor) : std::nullopt;
}

std::optional<Place> place_in(const proc::MappedModule& module, const proc::Memory& memory) {
    const proc::DynamicSymbols symbols{module, memory};
    const auto runtime = symbols.find("_PyRuntime");
    if (!runtime) return {};
    const auto loop = symbols.find("_PyEval_EvalFrameDefault");
    const auto code = symbols.find("PyCode_Type"), text = symbols.find("PyUnicode_Type"),
               bytes = symbols.find("PyBytes_Type"), frame = symbols.find("PyFrame_Type");
    const auto layout = layout_in(module, symbols, memory, runtime->begin);
    if (!layout || !loop || !code || !text || !bytes || !frame) return {};
    return Place{
        *layout, {code->begin, text->begin, bytes->begin, frame->begin}, runtime->begin, *loop};
}

}  // namespace

Python::Python(const Place& place, std::unique_ptr<const Memory> memory)
    : ReadInterpreter(std::move(memory)), place_(place) {}

std::optional<CodeFacts> Python::facts_of(Address function) const {
    std::vector<std::byte> object(place_.layout.code.size);
    if (!memory().read(function, object)) return {};
    return code_facts(place_.layout, place_.types, object);
}

// While it is there: before it and after it the object is the one that was seen.
std::optional<KnownFunctions::Read> Python::read(const Glance::Frame& frame) const {
    const auto facts = facts_of(frame.function);
    if (!facts || facts->hash() != frame.contents) return {};
    auto name = read_name(memory(), place_.layout, place_.types, facts->name);
    auto file = read_name(memory(), place_.layout, place_.types, facts->file);
    auto lines = read_bytes(memory(), place_.layout, place_.types, facts->lines);
    const auto still = facts_of(frame.function);
    if (!name || !file || !lines || !still || still->hash() != frame.contents) return {};
    return KnownFunctions::Read{
        {std::move(*name), std::move(*file), facts->first_line},
        [kind = place_.layout.line_table, lines = std::move(*lines), first = facts->first_line](
            auto position) { return line_at(kind, lines, first, position); }};
}

std::unique_ptr<Interpreter> find(pid_t pid, const proc::Maps& maps) {
    const proc::Memory memory{pid};
    std::error_code none;
    const auto program =
        std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", none);
    for (const auto& module : maps.modules()) {
        const std::filesystem::path path = module.path;
        if (path != program && path.filename().string().find("python") == std::string::npos)
            continue;
        if (const auto place = place_in(module, memory))
            return std::make_unique<Python>(*place, std::make_unique<ProcessMemory>(pid));
    }
    return nullptr;
}

}  // namespace shadowprof::languages::python
