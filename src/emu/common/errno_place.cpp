#include "emu/common/errno_place.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/decoder.h"
#include "proc/dynamic_symbols.h"

namespace shadowprof::emu {

namespace {

constexpr std::string_view function_name = "__errno_location";

bool is_c_library(std::string_view path) {
    const auto name = path.substr(path.rfind('/') + 1);
    return name.starts_with("libc.so") || name.starts_with("libc-") || name.starts_with("ld-musl");
}

using decoder::OperandKind;

// A number, and how often the thread's fs is added to it.
struct Sum {
    std::uint64_t number = 0;
    unsigned fs = 0;
};

// What an operand stands for: a constant, a word of memory, or the word at fs:0, which is fs.
std::optional<Sum> value_of(const decoder::Operand& operand, const decoder::Instruction& i,
                            const Sum& rax, const proc::Memory& memory) {
    if (operand.kind == OperandKind::immediate) return Sum{operand.immediate};
    if (operand.kind == OperandKind::reg)
        return operand.reg.is_general(decoder::rax) ? std::optional(rax) : std::nullopt;
    if (operand.kind != OperandKind::memory) return {};
    const auto& m = operand.memory;
    if (m.segment == decoder::Segment::fs)
        return !m.base && !m.index && m.displacement == 0 ? std::optional(Sum{0, 1}) : std::nullopt;
    if (!m.is_rip_relative() || operand.bits != 64) return {};
    const auto word =
        memory.read_as<std::uint64_t>(i.end() + static_cast<std::uint64_t>(m.displacement));
    // Not filled in yet: no library's errno is where fs points.
    return word && *word != 0 ? std::optional(Sum{*word}) : std::nullopt;
}

// What the function returns, if it does nothing but add up what it knows.
std::optional<Sum> returned_by(Address function, const proc::Memory& memory) {
    std::array<std::byte, 64> bytes{};
    const auto got = memory.read(function, bytes);
    Sum rax;
    for (std::size_t at = 0; at < got;) {
        const auto i = decoder::decode(std::span(bytes).subspan(at, got - at), function + at);
        if (!i) return {};
        at += i->length;
        using enum decoder::Mnemonic;
        if (i->flow == decoder::Flow::return_) return rax;
        if (i->mnemonic == endbr64) continue;
        const auto operands = i->explicit_operands();
        if (operands.size() != 2 || !operands[0].reg.is_general(decoder::rax) ||
            operands[0].kind != OperandKind::reg)
            return {};
        const auto value = value_of(operands[1], *i, rax, memory);
        if (!value) return {};
        if (i->mnemonic == mov)
            rax = *value;
        else if (i->mnemonic == add)
            rax = {rax.number + value->number, rax.fs + value->fs};
        else
            return {};
    }
    return {};
}

// The program's file, of which more is known than what is loaded. Here, too, bytes are just bytes.
class ProgramFile {
  public:
    explicit ProgramFile(pid_t pid)
        : link_("/proc/" + std::to_string(pid) + "/exe"),
          file_(::open(link_.c_str(), O_RDONLY | O_CLOEXEC)) {}
    ~ProgramFile() {
        if (file_ >= 0) ::close(file_);
    }
    ProgramFile(const ProgramFile&) = delete;
    ProgramFile& operator=(const ProgramFile&) = delete;

    // Empty if it does not have all of it.
    template <class T>
    std::vector<T> read(std::uint64_t from, std::uint64_t count) const {
        constexpr std::uint64_t most_bytes = 1u << 26;
        if (file_ < 0 || count > most_bytes / sizeof(T)) return {};
        std::vector<T> all(count);
        const auto bytes = static_cast<ssize_t>(count * sizeof(T));
        const auto got = ::pread(file_, all.data(), count * sizeof(T), static_cast<off_t>(from));
        return got == bytes ? all : std::vector<T>{};
    }

    std::string path() const {
        std::error_code none;
        return std::filesystem::read_symlink(link_, none).string();
    }

  private:
    std::string link_;
    int file_;
};

// Threads have the program's own variables in front of where fs points.
std::optional<Sum> in_front_of_fs(const Elf64_Sym& symbol,
                                  const std::vector<Elf64_Phdr>& segments) {
    const auto tls = std::ranges::find(segments, PT_TLS, &Elf64_Phdr::p_type);
    if (tls == segments.end()) return {};
    const auto alignment = std::max<std::uint64_t>(tls->p_align, 1);
    const auto size = (tls->p_memsz + alignment - 1) / alignment * alignment;
    return Sum{symbol.st_value - size, 1};
}

std::optional<Sum> told_by_symbols(pid_t pid, const proc::Maps& maps, const proc::Memory& memory) {
    const ProgramFile file{pid};
    const auto headers = file.read<Elf64_Ehdr>(0, 1);
    if (headers.empty() || !std::equal(ELFMAG, ELFMAG + SELFMAG, headers[0].e_ident)) return {};
    const auto& header = headers[0];
    const auto segments = file.read<Elf64_Phdr>(header.e_phoff, header.e_phnum);
    if (std::ranges::count(segments, PT_INTERP, &Elf64_Phdr::p_type) != 0) return {};
    const auto sections = file.read<Elf64_Shdr>(header.e_shoff, header.e_shnum);
    const auto table = std::ranges::find(sections, SHT_SYMTAB, &Elf64_Shdr::sh_type);
    if (table == sections.end() || table->sh_link >= sections.size()) return {};
    const auto& text = sections[table->sh_link];
    const auto names = file.read<char>(text.sh_offset, text.sh_size);
    std::optional<Sum> place;
    for (const auto& symbol :
         file.read<Elf64_Sym>(table->sh_offset, table->sh_size / sizeof(Elf64_Sym))) {
        if (symbol.st_name >= names.size() || symbol.st_shndx == SHN_UNDEF) continue;
        // No further than the names that are looked for: there may be no end.
        const auto name = std::string_view{names.data(), names.size()}.substr(
            symbol.st_name, function_name.size() + 1);
        const auto is_called = [&](std::string_view wanted) {
            return name.starts_with(wanted) && name.substr(wanted.size()).starts_with('\0');
        };
        if (ELF64_ST_TYPE(symbol.st_info) == STT_TLS &&
            (is_called("errno") || is_called("__libc_errno")))
            return in_front_of_fs(symbol, segments);
        // Without a variable of its own (musl) it is a part of what fs points to.
        if (!is_called(function_name)) continue;
        const auto code = std::ranges::find(maps.modules(), file.path(), &proc::MappedModule::path);
        if (code != maps.modules().end())
            place = returned_by(Address{code->bias + symbol.st_value}, memory);
    }
    return place;
}

// If it can be.
std::optional<std::int32_t> from_fs(const std::optional<Sum>& place) {
    if (!place || place->fs != 1) return {};
    const auto distance = static_cast<std::int64_t>(place->number);
    using Fits = std::numeric_limits<std::int32_t>;
    const bool is_aligned = distance % 4 == 0;
    if (distance == 0 || !is_aligned || distance < Fits::min() || distance > Fits::max()) return {};
    return static_cast<std::int32_t>(distance);
}

}  // namespace

std::optional<std::int32_t> place_of_errno(pid_t pid, const proc::Maps& maps,
                                           const proc::Memory& memory) {
    for (const auto& module : maps.modules()) {
        if (!is_c_library(module.path)) continue;
        const auto function = proc::DynamicSymbols{module, memory}.find(function_name);
        if (const auto place =
                from_fs(function ? returned_by(function->begin, memory) : std::nullopt))
            return place;
    }
    return from_fs(told_by_symbols(pid, maps, memory));
}

}  // namespace shadowprof::emu
