#include "emu/interpreter/core_helpers.h"

#include <bit>

#include "base/x86.h"

namespace shadowprof::emu {

namespace {

// The flags that popf changes in a user's program: trap, nested task, alignment check,
// identification.
constexpr std::uint64_t user_flags = trap_flag | 1u << 14 | alignment_check_flag | 1u << 21;

void copy(std::byte* to, const std::byte* from, std::uint64_t size) {
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

// The page of bytes that lie within one page. Bytes that are missing are fetched; the page may be
// inaccessible.
ViewPage& page_of(Core* core, std::uint64_t address, std::uint64_t size) {
    const unsigned wanted = pieces_of(address & ~page_mask, size);
    while (true) {
        auto* page = find_page(core->table, address);
        const unsigned missing = page ? wanted & ~page->pieces : wanted;
        if (!missing) return *page;
        const auto first = static_cast<unsigned>(std::countr_zero(missing));
        core->call_with_host_state(core, core->fetch_page,
                                   (address & page_mask) + first * piece_size);
    }
}

TlbEntry& tlb_entry(Core* core, std::uint64_t address, bool writes) {
    return (writes ? core->write_tlb : core->read_tlb)[address / piece_size % tlb_size];
}

void remember(TlbEntry& entry, const ViewPage& page, std::uint64_t address) {
    entry.piece = address & piece_mask;
    entry.host = reinterpret_cast<std::uint64_t>(page.data) + (entry.piece - page.address);
}

std::uint64_t lines_of(std::uint64_t offset, std::uint64_t size) {
    const auto first = offset / 64, last = (offset + size - 1) / 64;
    return (~std::uint64_t{0} >> (63 - (last - first))) << first;
}

void note_write(Core* core, ViewPage& page, std::uint64_t offset, std::uint64_t size) {
    if (!(page.code_lines & lines_of(offset, size))) return;
    page.code_changed = true;
    core->code_changed = 1;
}

// The host address of bytes that lie within one page; nullptr if they are not accessible.
std::byte* reach(Core* core, std::uint64_t address, std::uint64_t size, bool writes) {
    auto& entry = tlb_entry(core, address, writes);
    const auto offset = address & ~page_mask, in_piece = address & ~piece_mask;
    if (entry.piece == (address & piece_mask) && in_piece + size <= piece_size)
        return reinterpret_cast<std::byte*>(entry.host) + in_piece;
    auto& page = page_of(core, address, size);
    if (writes ? !page.writable : !page.readable) {
        core->helper_failed = 1;
        core->fault_address = address;
        return nullptr;
    }
    if (writes && page.code_lines) {
        note_write(core, page, offset, size);
    } else {
        remember(entry, page, address);
    }
    return page.data + offset;
}

constexpr std::uint64_t bytes_in_first_page(std::uint64_t address, std::uint64_t size) {
    const auto room = page_size - (address & ~page_mask);
    return size < room ? size : room;
}

bool read(Core* core, std::uint64_t address, void* into, std::uint64_t size) {
    const auto first = bytes_in_first_page(address, size);
    const auto* a = reach(core, address, first, false);
    if (!a) return false;
    const auto* b = a;
    if (first < size && !(b = reach(core, address + first, size - first, false))) return false;
    auto* to = static_cast<std::byte*>(into);
    copy(to, a, first);
    if (first < size) copy(to + first, b, size - first);
    return true;
}

bool write(Core* core, std::uint64_t address, const void* bytes, std::uint64_t size) {
    const auto first = bytes_in_first_page(address, size);
    auto* a = reach(core, address, first, true);
    if (!a) return false;
    auto* b = a;
    if (first < size && !(b = reach(core, address + first, size - first, true))) return false;
    const auto* from = static_cast<const std::byte*>(bytes);
    copy(a, from, first);
    if (first < size) copy(b, from + first, size - first);
    return true;
}

// ---- String instructions --------------------------------------------------------------------

struct StringState {
    Core* core;
    StringOperation operation;

    std::uint64_t step() const {
        const std::uint64_t size = operation.size;
        return core->backward ? 0 - size : size;
    }
    std::uint64_t pointer(unsigned reg) const {
        const auto value = core->general[reg];
        return operation.narrow ? value & 0xffffffffu : value;
    }
    void advance(unsigned reg, std::uint64_t by) const {
        const auto value = core->general[reg] + by;
        core->general[reg] = operation.narrow ? value & 0xffffffffu : value;
    }
    // Repeated instructions with narrow addresses cut the counter before they begin, even if there
    // is nothing to do or the first iteration faults; those that store cut their pointers as well.
    void cut_registers() const {
        const auto kind = operation.kind;
        advance(1, 0);
        if (kind != StringOperation::movs && kind != StringOperation::stos) return;
        if (kind == StringOperation::movs) advance(6, 0);
        advance(7, 0);
    }
    std::uint64_t source() const {
        const auto base = operation.segment == 1   ? core->fs_base
                          : operation.segment == 2 ? core->gs_base
                                                   : 0;
        return pointer(6) + base;
    }
    std::uint64_t destination() const { return pointer(7); }
};

void compare(Core* core, std::uint64_t a, std::uint64_t b, unsigned size) {
    std::uint64_t flags = 0;
    switch (size) {
        case 1:
            asm("cmpb %b2, %b1; pushfq; popq %0" : "=r"(flags) : "q"(a), "q"(b) : "cc", "memory");
            break;
        case 2:
            asm("cmpw %w2, %w1; pushfq; popq %0" : "=r"(flags) : "r"(a), "r"(b) : "cc", "memory");
            break;
        case 4:
            asm("cmpl %k2, %k1; pushfq; popq %0" : "=r"(flags) : "r"(a), "r"(b) : "cc", "memory");
            break;
        default:
            asm("cmpq %2, %1; pushfq; popq %0" : "=r"(flags) : "r"(a), "r"(b) : "cc", "memory");
            break;
    }
    set_status_flags(*core, flags);
}

// One iteration; false if it faulted, with nothing changed.
bool iterate(const StringState& s) {
    constexpr unsigned rax = 0, rsi = 6, rdi = 7;
    auto* core = s.core;
    const auto size = s.operation.size;
    std::uint64_t a = 0, b = 0;
    switch (s.operation.kind) {
        case StringOperation::movs:
            if (!read(core, s.source(), &a, size) || !write(core, s.destination(), &a, size))
                return false;
            s.advance(rsi, s.step());
            s.advance(rdi, s.step());
            return true;
        case StringOperation::stos:
            if (!write(core, s.destination(), &core->general[rax], size)) return false;
            s.advance(rdi, s.step());
            return true;
        case StringOperation::lods:
            if (!read(core, s.source(), &a, size)) return false;
            if (size == 4) core->general[rax] = 0;
            copy(reinterpret_cast<std::byte*>(&core->general[rax]),
                 reinterpret_cast<const std::byte*>(&a), size);
            s.advance(rsi, s.step());
            return true;
        case StringOperation::scas:
            if (!read(core, s.destination(), &a, size)) return false;
            compare(core, core->general[rax], a, size);
            s.advance(rdi, s.step());
            return true;
        case StringOperation::cmps:
            // The CPU looks at the destination first.
            if (!read(core, s.destination(), &b, size) || !read(core, s.source(), &a, size))
                return false;
            compare(core, a, b, size);
            s.advance(rsi, s.step());
            s.advance(rdi, s.step());
            return true;
    }
    return false;
}

// Carries out as many iterations of a forward movs or stos as stay within their pages, by the same
// instruction of the host, so that overlapping operands have the same result. Returns how many; if
// 0, the next iteration has to be done singly.
std::uint64_t iterate_within_pages(const StringState& s, std::uint64_t count) {
    const auto kind = s.operation.kind;
    const std::uint64_t size = s.operation.size;
    if (s.core->backward || (kind != StringOperation::movs && kind != StringOperation::stos))
        return 0;
    const auto elements_in_page = [&](std::uint64_t address) {
        return (page_size - (address & ~page_mask)) / size;
    };
    auto n = elements_in_page(s.destination());
    if (kind == StringOperation::movs && elements_in_page(s.source()) < n)
        n = elements_in_page(s.source());
    if (count < n) n = count;
    if (n == 0) return 0;

    const std::byte* from = nullptr;
    if (kind == StringOperation::movs && !(from = reach(s.core, s.source(), n * size, false)))
        return 0;
    auto* to = reach(s.core, s.destination(), n * size, true);
    if (!to) return 0;
    auto left = n;
    const auto value = s.core->general[0];
    if (kind == StringOperation::movs) {
        switch (size) {
            case 1:
                asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(left) : : "memory");
                break;
            case 2:
                asm volatile("rep movsw" : "+D"(to), "+S"(from), "+c"(left) : : "memory");
                break;
            case 4:
                asm volatile("rep movsl" : "+D"(to), "+S"(from), "+c"(left) : : "memory");
                break;
            default:
                asm volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(left) : : "memory");
                break;
        }
        s.advance(6, n * size);
    } else {
        switch (size) {
            case 1:
                asm volatile("rep stosb" : "+D"(to), "+c"(left) : "a"(value) : "memory");
                break;
            case 2:
                asm volatile("rep stosw" : "+D"(to), "+c"(left) : "a"(value) : "memory");
                break;
            case 4:
                asm volatile("rep stosl" : "+D"(to), "+c"(left) : "a"(value) : "memory");
                break;
            default:
                asm volatile("rep stosq" : "+D"(to), "+c"(left) : "a"(value) : "memory");
                break;
        }
    }
    s.advance(7, n * size);
    return n;
}

}  // namespace

std::uint64_t rflags_of(const Core& core) {
    constexpr std::uint64_t always_set = 2;
    return (core.flags >> 8 & 0xd5u) | (core.flags & 1u ? 0x800u : 0u) |
           (core.backward ? direction_flag : 0) | core.other_flags | always_set;
}

void set_status_flags(Core& core, std::uint64_t rflags) {
    core.flags = static_cast<std::uint32_t>(((rflags & 0xd5) | 2) << 8 | (rflags >> 11 & 1));
}

extern "C" {

std::byte* shadowprof_resolve(Core* core) noexcept {
    const auto address = core->slow_address;
    const auto access = core->slow_access;
    const std::uint64_t size = access & access_size;
    const bool writes = access & access_writes;
    const auto usable = [&](const ViewPage& page) {
        return (!(access & access_reads) || page.readable) && (!writes || page.writable);
    };
    const auto first_size = bytes_in_first_page(address, size);
    const auto offset = address & ~page_mask;
    core->pending_count = 0;
    core->unfinished = 0;
    const auto add_pending = [&](ViewPage& page, std::uint64_t at, std::uint64_t bytes,
                                 const std::byte* from) {
        auto& pending = core->pending_writes[core->pending_count++];
        pending.page = &page;
        pending.offset = at;
        pending.size = bytes;
        pending.from = from;
    };

    auto* page = &page_of(core, address, first_size);
    if (first_size == size && usable(*page) && !(access & access_by_substitute)) {
        if (writes && page->code_lines) {
            add_pending(*page, offset, size, nullptr);
            core->unfinished = 1;
        } else {
            remember(tlb_entry(core, address, writes), *page, address);
        }
        return page->data + offset;
    }

    bool second_usable = false;
    ViewPage* second = nullptr;
    if (first_size < size) {
        second = &page_of(core, address + first_size, size - first_size);
        page = &page_of(core, address, first_size);  // the table may have grown
        second_usable = usable(*second);
    }
    const bool first_usable = usable(*page);
    const unsigned begin = first_usable    ? (second_usable || !second ? 2 : 3)
                           : second_usable ? 1
                                           : 0;
    auto* to = core->substitutes + begin * page_size + offset;
    core->resolved_to = to;
    core->unfinished = 1;
    if (first_usable) {
        copy(to, page->data + offset, first_size);
        if (writes) add_pending(*page, offset, first_size, to);
    }
    if (second_usable) {
        copy(to + first_size, second->data, size - first_size);
        if (writes) add_pending(*second, 0, size - first_size, to + first_size);
    }
    return to;
}

void shadowprof_finish_write(Core* core) noexcept {
    for (unsigned i = 0; i < core->pending_count; ++i) {
        const auto& pending = core->pending_writes[i];
        if (pending.from) copy(pending.page->data + pending.offset, pending.from, pending.size);
        note_write(core, *pending.page, pending.offset, pending.size);
    }
    core->pending_count = 0;
}

std::uint64_t shadowprof_peek(Core* core) noexcept {
    std::uint64_t value = 0;
    const auto address = core->slow_address;
    const std::uint64_t size = core->slow_access & access_size;
    const auto first = bytes_in_first_page(address, size);
    auto* to = reinterpret_cast<std::byte*>(&value);
    if (auto& page = page_of(core, address, first); page.readable)
        copy(to, page.data + (address & ~page_mask), first);
    else
        return 0;
    if (first < size) {
        if (auto& page = page_of(core, address + first, size - first); page.readable)
            copy(to + first, page.data, size - first);
    }
    return value;
}

std::uint64_t shadowprof_error(Core* core) noexcept {
    std::uint32_t error = 0;
    if (core->fs_base == 0) return 0;
    const auto address = core->fs_base + core->slow_address;
    const auto& page = page_of(core, address, sizeof error);  // aligned, so in one page
    if (!page.readable) return 0;
    copy(reinterpret_cast<std::byte*>(&error), page.data + (address & ~page_mask), sizeof error);
    return std::uint64_t{error} + 1;
}

void shadowprof_string(Core* core, std::uint32_t packed) noexcept {
    constexpr unsigned rcx = 1;
    const StringState s{core, StringOperation::unpack(packed)};
    core->helper_failed = 0;
    if (s.operation.repeat == 0) {
        iterate(s);
        return;
    }
    const bool compares =
        s.operation.kind == StringOperation::scas || s.operation.kind == StringOperation::cmps;
    constexpr std::uint32_t zero_flag = 0x40u << 8;
    const auto flags_before = core->flags;
    s.cut_registers();
    while (const auto count = s.pointer(rcx)) {
        auto done = iterate_within_pages(s, count);
        if (done == 0) {
            core->helper_failed = 0;
            if (!iterate(s)) {
                // The registers say how far it came, but the flags do not.
                core->flags = flags_before;
                return;
            }
            done = 1;
        }
        s.advance(rcx, 0 - done);
        if (compares && ((core->flags & zero_flag) != 0) != (s.operation.repeat == 1)) return;
    }
}

std::uint64_t shadowprof_rflags(Core* core) noexcept {
    constexpr std::uint64_t never_stored = 0x30000;  // resume and virtual-8086
    return rflags_of(*core) & ~never_stored;
}

// The alignment-check flag is kept, but has no effect.
void shadowprof_set_rflags(Core* core, std::uint64_t value, std::uint32_t size) noexcept {
    const auto old = rflags_of(*core);
    if (size == 2) value = (old & ~std::uint64_t{0xffff}) | (value & 0xffff);
    set_status_flags(*core, value);
    core->backward = value & direction_flag ? 1 : 0;
    core->other_flags =
        static_cast<std::uint32_t>((core->other_flags & ~user_flags) | (value & user_flags));
    core->helper_failed = (core->other_flags & trap_flag) != 0;
}

void shadowprof_enter(Core* core, std::uint32_t argument) noexcept {
    constexpr unsigned rsp = 4, rbp = 5;
    const unsigned level = argument & 31, size = argument >> 24;
    const std::uint64_t frame_size = argument >> 8 & 0xffff;
    core->helper_failed = 0;
    auto stack = core->general[rsp] - size;
    const auto frame = stack;
    if (!write(core, stack, &core->general[rbp], size)) return;
    for (unsigned i = 1; i < level; ++i) {
        std::uint64_t outer = 0;
        if (!read(core, core->general[rbp] - std::uint64_t{i} * size, &outer, size)) return;
        stack -= size;
        if (!write(core, stack, &outer, size)) return;
    }
    if (level > 0) {
        stack -= size;
        if (!write(core, stack, &frame, size)) return;
    }
    stack -= frame_size;
    // The instruction ends with a check that the new top of the stack could be written.
    if (!reach(core, stack, 1, true)) return;
    if (size == 2)
        copy(reinterpret_cast<std::byte*>(&core->general[rbp]),
             reinterpret_cast<const std::byte*>(&frame), 2);
    else
        core->general[rbp] = frame;
    core->general[rsp] = stack;
}

void shadowprof_move_64_bytes(Core* core) noexcept {
    core->helper_failed = 0;
    alignas(8) std::byte bytes[64];
    if (!read(core, core->slow_address, bytes, 64)) return;
    if (core->scratch % 64 != 0) {
        core->helper_failed = 1;
        core->fault_address = 0;
        return;
    }
    write(core, core->scratch, bytes, 64);
}

}  // extern "C"

}  // namespace shadowprof::emu
