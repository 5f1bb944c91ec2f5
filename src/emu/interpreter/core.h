// The interpreter's core: what the host code of a compiled block works on, and nothing else.
//
// While guest code runs, the host's stack pointer points at a Core. Everything the code needs is
// therefore one [rsp + offset] away and no general register has to be kept for the interpreter:
// an instruction of the guest can be carried out by the very same instruction of the host, in the
// same registers. Below the Core lies the stack for calls and for the profiler's own signals, so
// nothing of a Core may ever have a negative offset.
//
// The guest's vector, x87 and mask registers are in the real ones. Code that may use those for
// itself (everything in C++ that is not compiled for general registers only) must be called
// through call_with_host_state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/page.h"
#include "emu/tuning.h"

namespace shadowprof::emu {

// So much of a page is fetched at a time.
inline constexpr auto piece_size = tuning::piece_size;
inline constexpr std::uint64_t piece_mask = ~(piece_size - 1);

// One guest page in the private view.
struct ViewPage {
    std::uint64_t address = 0;
    std::byte* data = nullptr;     // nullptr: an empty place in the table
    std::uint8_t pieces = 0;       // fetched: bit n is piece n; of an inaccessible page all are
    std::uint64_t code_lines = 0;  // 64-byte lines that hold compiled code: bit n is line n
    bool readable = false;
    bool writable = false;
    bool code_changed = false;  // compiled code of this page is no longer what the page holds
};

// Every page of the view, by open addressing. Plain data: code for general registers only reads it.
struct ViewTable {
    ViewPage* pages = nullptr;
    std::uint64_t mask = 0;  // number of places minus one
};

inline constexpr auto tlb_size = tuning::tlb_size;
struct TlbEntry {
    std::uint64_t piece;  // the guest address it begins at
    std::uint64_t host;   // where its copy begins
};

inline constexpr auto jump_table_size = tuning::jump_table_size;
struct JumpEntry {
    std::uint64_t guest;
    const void* host;
};

// Why compiled code came back.
enum class ExitKind : std::uint32_t {
    link,          // a direct exit that is not linked yet: detail is the link
    lookup,        // an indirect exit whose target the jump table does not know
    budget,        // fewer instructions are left than the block has: detail is the block
    values_full,   // no room for the block's values: detail is the block
    system_call,   // after the instruction
    trap,          // before an instruction that no engine goes through: detail is its index
    unsupported,   // before an instruction that this engine does not know: likewise
    flag_trap,     // after popf set the trap flag; detail: index of the next
    code_changed,  // after an instruction that wrote into compiled code; likewise
    fault,         // the host's CPU raised a signal: host_address, signal, fault_address
    protection,    // an instruction was refused; detail: its index
    memory_fault,  // a helper could not access fault_address; detail: index of the instruction
};

// A write that is not complete when its instruction is, because it went to a substitute for guest
// memory or into a page that holds compiled code.
struct PendingWrite {
    ViewPage* page;
    std::uint64_t offset;  // in the page
    std::uint64_t size;
    const std::byte* from;  // nullptr: it went to the page itself
};

struct Core;
using OrdinaryFunction = void (*)(Core*, std::uint64_t argument) noexcept;

struct alignas(64) Core {
    std::uint64_t general[16];
    std::uint32_t flags;  // what lahf and seto give: bits 8-15 are the low byte, bit 0 is overflow
    std::uint32_t other_flags;  // all but the status flags and direction, as in rflags
    std::int64_t budget;
    std::uint32_t* blocks;
    std::uint64_t* values;
    const std::uint64_t* values_limit;
    std::uint64_t fs_base, gs_base;
    std::uint64_t rip;
    std::uint64_t scratch;
    std::uint64_t backward;  // direction flag: 0 or 1

    // Arguments and results of helpers.
    std::uint64_t slow_address;
    std::uint32_t slow_access;    // size | access bits
    std::uint32_t pending_count;  // of pending_writes
    PendingWrite pending_writes[2];
    std::uint32_t unfinished;      // the last access on the slow way needs finish_write
    std::uint32_t code_changed;    // compiled code of some page has changed
    std::uint32_t helper_failed;   // at fault_address
    const std::byte* resolved_to;  // the substitute that was last used, for slow_address

    ExitKind exit_kind;
    std::uint32_t exit_detail;
    std::uint32_t exit_block;
    std::uint32_t signal;
    std::uint64_t host_address;
    std::uint64_t fault_address;
    std::uint64_t fault_flags;
    const std::uint8_t* code_begin;  // where signals are ours
    const std::uint8_t* code_end;
    const std::uint8_t* leave;

    // Of the host while the guest runs.
    std::uint64_t host_rsp;
    std::uint32_t host_mxcsr;
    std::uint32_t host_x87_control;
    std::byte* extended;  // the guest's, in XSAVE's standard format, while the host runs
    std::uint64_t extended_mask;
    void (*call_with_host_state)(Core*, OrdinaryFunction, std::uint64_t argument);
    OrdinaryFunction fetch_page;
    class CoreOwner* owner;  // for functions in ordinary C++

    ViewTable table;
    std::byte* substitutes;  // see core_helpers.cpp

    alignas(64) std::byte nobodys_line[64];

    TlbEntry read_tlb[tlb_size];
    TlbEntry write_tlb[tlb_size];
    JumpEntry jumps[2][jump_table_size];  // unrecorded, recorded
};

// In Core::slow_access.
inline constexpr std::uint32_t access_size = 0xffff;
inline constexpr std::uint32_t access_reads = 1u << 16;
inline constexpr std::uint32_t access_writes = 1u << 17;
inline constexpr std::uint32_t access_by_substitute = 1u << 18;  // even if it need not be

// An entry that matches no address of its index.
constexpr TlbEntry empty_tlb_entry(unsigned index) {
    return {((index + 1u) % tlb_size) * piece_size, 0};
}
constexpr JumpEntry empty_jump_entry(unsigned index) {
    return {index ^ 1u, nullptr};
}

// Every translation unit has its own copy: these functions are called both by code for general
// registers only and by other code, and the linker would keep only one version.
namespace {

constexpr std::uint64_t hash_of_page(std::uint64_t address) {
    return (address >> 12) * 0x9e3779b97f4a7c15u >> 20;
}

// The pieces that hold these bytes of a page.
constexpr std::uint8_t pieces_of(std::uint64_t offset, std::uint64_t size) {
    const auto first = offset / piece_size, last = (offset + size - 1) / piece_size;
    return static_cast<std::uint8_t>((2u << last) - (1u << first));
}
static_assert(page_size / piece_size <= 8, "a bit each in ViewPage::pieces");

// The page that holds an address; nullptr if nothing of it was fetched yet.
inline ViewPage* find_page(const ViewTable& table, std::uint64_t address) {
    const auto wanted = address & page_mask;
    for (auto at = hash_of_page(wanted);; ++at) {
        auto& page = table.pages[at & table.mask];
        if (!page.data) return nullptr;
        if (page.address == wanted) return &page;
    }
}

}  // namespace

}  // namespace shadowprof::emu
