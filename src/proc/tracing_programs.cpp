#include "proc/tracing_programs.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "proc/mapped_elf.h"
#include "proc/proc_text.h"

namespace shadowprof::proc {
namespace {

constexpr std::size_t most_entries = 1000;
constexpr std::uint64_t longest_strings = 64u << 20;

// The strings of a program's dynamic symbols and of the libraries that it needs, one behind the
// other, each with zeros around it.
std::string dynamic_strings(pid_t pid) {
    const Descriptor file(
        open(fmt::format("/proc/{}/exe", pid).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file < 0) return {};
    const auto read = [&](std::uint64_t offset, std::span<std::byte> into) {
        const auto got = pread(file, into.data(), into.size(), static_cast<off_t>(offset));
        return got > 0 ? static_cast<std::size_t>(got) : 0;
    };
    const auto segments = read_segments(read);
    if (!segments) return {};
    const auto dynamic =
        std::ranges::find(*segments, std::uint32_t{PT_DYNAMIC}, &LoadSegment::type);
    if (dynamic == segments->end()) return {};
    std::array<Elf64_Dyn, most_entries> entries{};
    const auto wanted = std::min<std::uint64_t>(dynamic->file_size, sizeof entries);
    read(dynamic->file_offset, std::as_writable_bytes(std::span{entries}).first(wanted));
    std::uint64_t address = 0, size = 0;
    for (const auto& entry : entries) {
        if (entry.d_tag == DT_NULL) break;
        if (entry.d_tag == DT_STRTAB) address = entry.d_un.d_ptr;
        if (entry.d_tag == DT_STRSZ) size = entry.d_un.d_val;
    }
    for (const auto& segment : *segments) {
        if (segment.type != PT_LOAD || address < segment.address ||
            address - segment.address >= segment.file_size)
            continue;
        const auto within = address - segment.address;
        std::string strings(std::min({size, segment.file_size - within, longest_strings}), '\0');
        strings.resize(read(segment.file_offset + within,
                            std::as_writable_bytes(std::span{strings.data(), strings.size()})));
        return strings + '\0';
    }
    return {};
}

// What gives away that a program has the code that looks for leaks.
struct Runtime {
    std::string_view variable;
    std::array<std::string_view, 2> libraries;  // of gcc and clang: how their names begin
    std::array<std::string_view, 2> symbols;    // in its program, linked to it in either way
};
constexpr std::array runtimes{
    Runtime{"ASAN_OPTIONS", {"libasan.so", "libclang_rt.asan"}, {"__asan_init", "__asan_init"}},
    Runtime{"HWASAN_OPTIONS",
            {"libhwasan.so", "libclang_rt.hwasan"},
            {"__hwasan_init", "__hwasan_init"}},
    Runtime{"LSAN_OPTIONS",
            {"liblsan.so", "libclang_rt.lsan"},
            {"__lsan_init", "__lsan_is_turned_off"}},
};

bool holds(std::string_view text, char before, std::string_view word) {
    return text.find(std::string{before}.append(word)) != text.npos;
}

std::string_view value_in(std::string_view environment, std::string_view variable) {
    const auto at = environment.find(std::string{'\0'}.append(variable) + '=');
    if (at == environment.npos) return {};
    const auto begin = at + variable.size() + 2;
    return environment.substr(begin, environment.find('\0', begin) - begin);
}

// The last word counts.
void read_option(std::string_view options, bool& detects_leaks) {
    constexpr std::string_view separators = " ,:\n\t\r", name = "detect_leaks=";
    while (!options.empty()) {
        const auto end = std::min(options.find_first_of(separators), options.size());
        const auto option = options.substr(0, end);
        options.remove_prefix(std::min(end + 1, options.size()));
        if (!option.starts_with(name)) continue;
        const auto value = option.substr(name.size());
        detects_leaks = value != "0" && value != "no" && value != "false";
    }
}

}  // namespace

std::string variable_of_leak_sanitizer(pid_t pid) {
    const auto environment = '\0' + read_proc_file(fmt::format("/proc/{}/environ", pid));
    const auto strings = dynamic_strings(pid);
    const auto preloaded = "/" + std::string{value_in(environment, "LD_PRELOAD")};
    const auto maps = read_proc_list(fmt::format("/proc/{}/maps", pid));
    const auto has = [&](const Runtime& runtime) {
        return std::ranges::any_of(runtime.symbols,
                                   [&](auto name) { return holds(strings, '\0', name); }) ||
               std::ranges::any_of(runtime.libraries, [&](auto name) {
                   return holds(strings, '\0', name) || holds(preloaded, '/', name) ||
                          holds(preloaded, ':', name) || holds(preloaded, ' ', name) ||
                          holds(maps, '/', name);
               });
    };
    const auto* const found = std::ranges::find_if(runtimes, has);
    if (found == runtimes.end()) return {};
    bool detects_leaks = true;
    read_option(value_in(environment, found->variable), detects_leaks);
    read_option(value_in(environment, "LSAN_OPTIONS"), detects_leaks);
    return detects_leaks ? std::string{found->variable} : "";
}

bool calls_ptrace(pid_t pid) {
    return holds(dynamic_strings(pid), '\0', std::string{"ptrace"} + '\0');
}

bool calls_at_each_access(pid_t pid) {
    return holds(dynamic_strings(pid), '\0', std::string{"__tsan_init"} + '\0');
}

}  // namespace shadowprof::proc
