// The frame has two parts, a ucontext and, where that points to, the extended state, in XSAVE's
// standard format with 48 bytes of the kernel's own in the middle: they say how long it is and
// which components it has, and a magic word after its end confirms it. Without them the kernel
// would restore x87 and SSE only and set the rest to zero.
#include "inject/signal_frame.h"

#include <cpuid.h>
#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace shadowprof::inject {
namespace {

// <asm/ucontext.h>, which does not go together with <ucontext.h>.
enum ContextFlags : std::uint64_t { fp_xstate = 1, sigcontext_ss = 2, strict_restore_ss = 4 };

constexpr std::size_t extended_at = 1024;
static_assert(sizeof(ucontext_t) <= extended_at && extended_at % 64 == 0);

constexpr auto tile_data = ptrace::ExtendedState::tile_data;

struct Layout {
    std::uint64_t components = 0;
    std::size_t size = 0;
};

// What the kernel lets a thread have without asking: everything but AMX's tiles. A frame longer
// than the thread's own state would be refused.
Layout layout_with(bool tiles) {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    constexpr unsigned os_uses_xsave = 1 << 27;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || (ecx & os_uses_xsave) == 0) return {};
    unsigned low = 0, high = 0;
    asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    Layout layout{std::uint64_t{high} << 32 | low, 512 + 64};
    if (!tiles) layout.components &= ~(std::uint64_t{1} << tile_data);
    for (unsigned component = 2; component < 63; ++component) {
        if ((layout.components >> component & 1) == 0) continue;
        unsigned size = 0, offset = 0;
        if (__get_cpuid_count(0xd, component, &size, &offset, &ecx, &edx))
            layout.size = std::max<std::size_t>(layout.size, offset + size);
    }
    return layout;
}

const Layout& layout_of(const ptrace::ExtendedState& state) {
    static const Layout usual = layout_with(false), largest = layout_with(true);
    return state.has_tiles() ? largest : usual;
}

void write_general(ucontext_t& context, const user_regs_struct& raw) {
    const std::pair<int, unsigned long long> all[] = {
        {REG_R8, raw.r8},
        {REG_R9, raw.r9},
        {REG_R10, raw.r10},
        {REG_R11, raw.r11},
        {REG_R12, raw.r12},
        {REG_R13, raw.r13},
        {REG_R14, raw.r14},
        {REG_R15, raw.r15},
        {REG_RDI, raw.rdi},
        {REG_RSI, raw.rsi},
        {REG_RBP, raw.rbp},
        {REG_RBX, raw.rbx},
        {REG_RDX, raw.rdx},
        {REG_RAX, raw.rax},
        {REG_RCX, raw.rcx},
        {REG_RSP, raw.rsp},
        {REG_RIP, raw.rip},
        {REG_EFL, raw.eflags},
        {REG_CSGSFS, raw.cs | raw.ss << 48},
    };
    for (const auto& [place, value] : all)
        context.uc_mcontext.gregs[place] = static_cast<greg_t>(value);
}

}  // namespace

bool write_signal_frame(std::span<std::byte> into, Address place,
                        const ptrace::Registers& registers, const ptrace::ExtendedState& extended,
                        std::uint64_t signal_mask) {
    SHADOWPROF_ASSERT(place.value % 64 == 0, "XRSTOR wants it so");
    const auto& layout = layout_of(extended);
    const std::uint32_t end_mark = FP_XSTATE_MAGIC2;
    const auto area = extended.area();
    if (layout.size == 0 || area.size() < layout.size ||
        into.size() < extended_at + layout.size + sizeof end_mark)
        return false;

    ucontext_t context{};
    context.uc_flags = fp_xstate | sigcontext_ss | strict_restore_ss;
    // No such mode: the kernel does not set the alternate stack, and does not mind.
    context.uc_stack.ss_flags = 4;
    write_general(context, registers.raw);
    context.uc_mcontext.fpregs =
        reinterpret_cast<fpregset_t>((place + extended_at).value);  // NOLINT: the target's address
    std::memcpy(&context.uc_sigmask, &signal_mask, sizeof signal_mask);
    std::memcpy(into.data(), &context, sizeof context);

    _fpx_sw_bytes mark{};
    constexpr std::size_t mark_at = 464;
    static_assert(mark_at + sizeof mark == 512);
    mark.magic1 = FP_XSTATE_MAGIC1;
    mark.extended_size = static_cast<std::uint32_t>(layout.size + sizeof end_mark);
    mark.xstate_bv = layout.components;
    mark.xstate_size = static_cast<std::uint32_t>(layout.size);
    auto* const state = into.data() + extended_at;
    std::memcpy(state, area.data(), layout.size);
    std::memcpy(state + mark_at, &mark, sizeof mark);
    std::memcpy(state + layout.size, &end_mark, sizeof end_mark);
    return true;
}

}  // namespace shadowprof::inject
