#include "proc/thread_variable.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/page.h"
#include "proc/dynamic_symbols.h"
#include "proc/page_map.h"
#include "proc/tuning.h"

namespace shadowprof::proc {

namespace {

constexpr std::uint64_t most_program_headers = 200, most_dynamic = 1000;
constexpr std::uint64_t most_relocations_bytes = 64u << 20;
// Of blocks of variables, and of the modules that have some.
constexpr std::int64_t largest_offset = 1 << 30;
constexpr std::uint64_t most_modules = 1 << 16;

template <class T>
std::optional<std::vector<T>> read_array(const Memory& memory, Address from, std::uint64_t count) {
    std::vector<T> all(count);
    const auto bytes = std::as_writable_bytes(std::span{all});
    if (memory.read(from, bytes) != bytes.size()) return {};
    return all;
}

}  // namespace

// One module's tables, as they are in memory.
class ThreadVariableSearch {
  public:
    ThreadVariableSearch(const Memory& memory, const MappedModule& module)
        : memory_(memory), module_(module) {}

    std::optional<ThreadVariable> find(bool is_program, std::string_view name,
                                       ThreadBlocks blocks) {
        const auto symbol = DynamicSymbols{module_, memory_}.find_of_thread(name);
        if (!symbol || !read_headers()) return {};
        symbol_ = *symbol;
        ThreadVariable found;
        found.blocks_ = blocks;
        if (is_program) {
            // As its own code finds it: the linker has put its block right before fs.
            found.offset_ = static_cast<std::int64_t>(symbol_.offset) -
                            static_cast<std::int64_t>(size_of_block_);
            return found;
        }
        if (!resolve(found)) return {};
        return found;
    }

  private:
    bool read_headers() {
        const auto header = memory_.read_as<Elf64_Ehdr>(module_.range.begin);
        if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
            header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_phentsize != sizeof(Elf64_Phdr) ||
            header->e_phnum > most_program_headers)
            return false;
        const auto parts =
            read_array<Elf64_Phdr>(memory_, module_.range.begin + header->e_phoff, header->e_phnum);
        if (!parts) return false;
        bool has_block = false;
        const Elf64_Phdr* dynamic = nullptr;
        for (const auto& part : *parts) {
            if (part.p_type == PT_DYNAMIC) dynamic = &part;
            if (part.p_type != PT_TLS) continue;
            has_block = true;
            const auto align = std::max<std::uint64_t>(part.p_align, 1);
            size_of_block_ = (part.p_memsz + align - 1) / align * align;
        }
        if (!has_block || !dynamic) return false;
        return read_dynamic({dynamic->p_vaddr + module_.bias},
                            std::min(dynamic->p_memsz / sizeof(Elf64_Dyn), most_dynamic));
    }

    // glibc has put the module's place into these addresses, musl has not.
    Address address(std::uint64_t value) const {
        return {module_.range.contains({value}) ? value : value + module_.bias};
    }

    bool read_dynamic(Address at, std::uint64_t count) {
        const auto all = read_array<Elf64_Dyn>(memory_, at, count);
        if (!all) return false;
        for (const auto& entry : *all) {
            const auto value = entry.d_un.d_val;
            if (entry.d_tag == DT_NULL) break;
            if (entry.d_tag == DT_RELA) relocations_[0].at = value;
            if (entry.d_tag == DT_RELASZ) relocations_[0].size = value;
            if (entry.d_tag == DT_JMPREL) relocations_[1].at = value;
            if (entry.d_tag == DT_PLTRELSZ) relocations_[1].size = value;
        }
        return true;
    }

    // By any place where the loader has written down where the variable is. Which it is says the
    // relocation: the variable may be another module's of the same name, that comes first.
    bool resolve(ThreadVariable& found) const {
        for (const auto& [at, size] : relocations_) {
            if (at == 0 || size > most_relocations_bytes) continue;
            const auto all =
                read_array<Elf64_Rela>(memory_, address(at), size / sizeof(Elf64_Rela));
            if (!all) continue;
            for (const auto& one : *all) {
                const bool is_by_symbol = ELF64_R_SYM(one.r_info) == symbol_.number;
                // Of the module's own, without a symbol.
                const bool is_own = ELF64_R_SYM(one.r_info) == 0;
                const bool is_at_it =
                    is_by_symbol ||
                    (is_own && static_cast<std::uint64_t>(one.r_addend) == symbol_.offset);
                const Address place{one.r_offset + module_.bias};
                const auto type = ELF64_R_TYPE(one.r_info);
                if (type == R_X86_64_TPOFF64 && is_at_it && is_at_offset(place, found)) return true;
                if (type == R_X86_64_TLSDESC && is_at_it && is_described(place, found)) return true;
                if (type == R_X86_64_DTPMOD64 && (is_by_symbol || is_own) &&
                    is_in_block(place, is_by_symbol, found))
                    return true;
            }
        }
        return false;
    }

    bool is_at_offset(Address place, ThreadVariable& found) const {
        const auto offset = memory_.read_as<std::int64_t>(place);
        if (!offset || *offset >= 0 || *offset < -largest_offset) return false;
        found.module_ = 0;
        found.offset_ = *offset;
        return true;
    }

    // A function and what it is called with: an offset, or a pointer to the module's number and the
    // offset in its block.
    bool is_described(Address place, ThreadVariable& found) const {
        if (is_at_offset(place + 8, found)) return true;
        const auto pointer = memory_.read_as<Address>(place + 8);
        return pointer && *pointer != Address{} && is_in_block(*pointer, true, found);
    }

    bool is_in_block(Address place, bool has_offset, ThreadVariable& found) const {
        const auto index = memory_.read_as<std::array<std::uint64_t, 2>>(place);
        if (!index || (*index)[0] == 0 || (*index)[0] > most_modules) return false;
        const auto offset = has_offset ? (*index)[1] : symbol_.offset;
        if (offset > static_cast<std::uint64_t>(largest_offset)) return false;
        found.module_ = (*index)[0];
        found.offset_ = static_cast<std::int64_t>(offset);
        return true;
    }

    const Memory& memory_;
    const MappedModule& module_;
    std::uint64_t size_of_block_ = 0;
    DynamicSymbols::OfThread symbol_;
    struct Relocations {
        std::uint64_t at = 0, size = 0;
    };
    std::array<Relocations, 2> relocations_;
};

std::optional<ThreadVariable> ThreadVariable::find(const Memory& memory, const MappedModule& module,
                                                   bool is_program, std::string_view name,
                                                   ThreadBlocks blocks) {
    return ThreadVariableSearch{memory, module}.find(is_program, name, blocks);
}

std::optional<Address> ThreadVariable::of_thread(const Memory& memory, Address fs) const {
    if (module_ == 0) return Address{fs.value + static_cast<std::uint64_t>(offset_)};
    // What fs points to: itself, then the table of blocks.
    const auto table = memory.read_as<Address>(fs + 8);
    if (!table) return {};
    const bool is_glibc = blocks_ == ThreadBlocks::glibc;
    // How many entries there are.
    const auto count =
        memory.read_as<std::uint64_t>(is_glibc ? Address{table->value - 16} : *table);
    if (!count || module_ > *count) return {};
    const auto block = memory.read_as<Address>(*table + module_ * (is_glibc ? 16 : 8));
    constexpr std::uint64_t none_yet = ~std::uint64_t{0};
    if (!block || block->value == 0 || block->value == none_yet) return {};
    return *block + static_cast<std::uint64_t>(offset_);
}

bool is_thread_pointer(const Memory& memory, Address fs) {
    return memory.read_as<Address>(fs) == fs;
}

namespace {

// Where glibc and musl have a thread's number, from its fs on: they have never changed that.
constexpr std::array<std::size_t, 2> places_of_number{0x2d0, 0x30};

std::optional<Address> thread_pointer_in(const Memory& memory, AddressRange range, pid_t number) {
    // Only pages that are there: to read others would make them.
    std::vector<std::byte> bytes(std::min(range.size(), tuning::sought_for_pointer));
    const auto end = range.begin + bytes.size();
    PageMap{memory.pid()}.for_each(
        {page_begin(range.begin), {round_up_to_page(end.value)}},
        [&](Address page, PageMap::Entry entry) {
            const auto from = std::max(page, range.begin), to = std::min(page + page_size, end);
            if (entry.exists())
                memory.read(from, std::span{bytes}.subspan(from - range.begin, to - from));
        });
    const auto has = [&](std::size_t n, auto wanted) {
        return n + sizeof wanted <= bytes.size() &&
               std::memcmp(&bytes[n], &wanted, sizeof wanted) == 0;
    };
    constexpr std::size_t alignment = 16;
    for (std::size_t n = (alignment - range.begin.value % alignment) % alignment; n < bytes.size();
         n += alignment) {
        const auto is_number = [&](std::size_t place) { return has(n + place, number); };
        if (has(n, range.begin.value + n) && std::ranges::any_of(places_of_number, is_number))
            return range.begin + n;
    }
    return {};
}

}  // namespace

std::optional<Address> find_thread_pointer(const Memory& memory, const Maps& maps, pid_t number,
                                           bool is_first, Address stack) {
    // Of most threads it is at the end of the stack.
    if (const auto* const own = maps.mapping_at(stack); own && own->path.empty())
        if (const auto found = thread_pointer_in(memory, {stack, own->range.end}, number))
            return found;
    if (!is_first) return {};
    // The first thread's was made by the loader, before there was much else; what came later and is
    // right below, such as stacks, looks like one mapping with it.
    std::uint64_t left = tuning::sought_for_first_pointer;
    for (const auto& mapping : maps.mappings()) {
        if (!mapping.path.empty() || !mapping.writable) continue;
        const auto& range = mapping.range;
        const auto size = std::min({range.size(), tuning::sought_for_pointer, left});
        left -= size;
        if (const auto found = thread_pointer_in(memory, {range.end - size, range.end}, number))
            return found;
    }
    return {};
}

}  // namespace shadowprof::proc
