#include "proc/dynamic_symbols.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>

namespace shadowprof::proc {

DynamicSymbols::DynamicSymbols(const MappedModule& module, const Memory& memory)
    : bias_(module.bias), memory_(memory) {
    const auto header = memory_.read_as<Elf64_Ehdr>(module.range.begin);
    if (!header || !std::equal(ELFMAG, ELFMAG + SELFMAG, header->e_ident)) return;
    constexpr std::uint64_t most_entries = 256;
    for (unsigned n = 0; n < header->e_phnum; ++n) {
        const auto segment = memory_.read_as<Elf64_Phdr>(module.range.begin + header->e_phoff +
                                                         n * sizeof(Elf64_Phdr));
        if (!segment || segment->p_type != PT_DYNAMIC) continue;
        for (std::uint64_t i = 0; i < most_entries; ++i) {
            const auto entry = memory_.read_as<Elf64_Dyn>(
                Address{bias_ + segment->p_vaddr + i * sizeof(Elf64_Dyn)});
            if (!entry || entry->d_tag == DT_NULL) break;
            if (entry->d_tag == DT_SYMTAB) symbols_ = loaded(entry->d_un.d_ptr);
            if (entry->d_tag == DT_STRTAB) names_ = loaded(entry->d_un.d_ptr);
            if (entry->d_tag == DT_GNU_HASH) hashes_ = loaded(entry->d_un.d_ptr);
        }
    }
}

struct DynamicSymbols::Symbol {
    std::uint32_t number;
    Elf64_Sym entry;
};

std::optional<AddressRange> DynamicSymbols::find(std::string_view name) const {
    const auto found = symbol(name);
    if (!found) return {};
    const Address begin{bias_ + found->entry.st_value};
    return AddressRange{begin, begin + found->entry.st_size};
}

std::optional<DynamicSymbols::OfThread> DynamicSymbols::find_of_thread(
    std::string_view name) const {
    const auto found = symbol(name);
    if (!found || ELF64_ST_TYPE(found->entry.st_info) != STT_TLS) return {};
    return OfThread{found->number, found->entry.st_value};
}

std::optional<DynamicSymbols::Symbol> DynamicSymbols::symbol(std::string_view name) const {
    const auto header = memory_.read_as<std::array<std::uint32_t, 4>>(Address{hashes_});
    if (hashes_ == 0 || names_ == 0 || symbols_ == 0 || !header) return {};
    const auto [buckets, first, words_of_filter, shift] = *header;
    if (buckets == 0) return {};
    std::uint32_t hash = 5381;
    for (const unsigned char c : name) hash = hash * 33 + c;
    const auto begin = hashes_ + sizeof *header + std::uint64_t{words_of_filter} * 8;
    auto symbol = word_at(begin + std::uint64_t{hash % buckets} * 4);
    if (!symbol || *symbol < first) return {};
    constexpr unsigned longest_chain = 1000;
    for (unsigned n = 0; n < longest_chain; ++n, ++*symbol) {
        const auto of_symbol =
            word_at(begin + std::uint64_t{buckets} * 4 + std::uint64_t{*symbol - first} * 4);
        if (!of_symbol) return {};
        if ((*of_symbol | 1) == (hash | 1))
            if (const auto found = if_called(*symbol, name)) return found;
        if (*of_symbol & 1) return {};
    }
    return {};
}

// The loader of glibc turns these into addresses, that of musl does not.
std::uint64_t DynamicSymbols::loaded(std::uint64_t at) const {
    return at < bias_ ? at + bias_ : at;
}

std::optional<std::uint32_t> DynamicSymbols::word_at(std::uint64_t at) const {
    return memory_.read_as<std::uint32_t>(Address{at});
}

std::optional<DynamicSymbols::Symbol> DynamicSymbols::if_called(std::uint32_t number,
                                                                std::string_view name) const {
    const auto symbol =
        memory_.read_as<Elf64_Sym>(Address{symbols_ + std::uint64_t{number} * sizeof(Elf64_Sym)});
    if (!symbol || symbol->st_shndx == SHN_UNDEF) return {};
    std::string bytes(name.size() + 1, 'x');
    memory_.read(Address{names_ + symbol->st_name}, std::as_writable_bytes(std::span{bytes}));
    if (!bytes.starts_with(name) || bytes.back() != '\0') return {};
    return Symbol{number, *symbol};
}

}  // namespace shadowprof::proc
