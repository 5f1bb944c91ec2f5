#include "ptrace/remote_calls.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "ptrace/maps.h"
#include "ptrace/memory.h"

namespace shadowprof::ptrace {

RemoteCalls::RemoteCalls(Tracer& tracer, Thread& thread)
    : tracer_(tracer), thread_(thread), before_(thread.registers()), mask_(thread.signal_mask()) {
    thread_.set_signal_mask(~std::uint64_t{0});
    const auto maps = Maps::of(tracer.pid());
    if (!maps) return;
    const auto& all = maps->mappings();
    const auto vdso =
        std::find_if(all.begin(), all.end(), [](const Mapping& m) { return m.path == "[vdso]"; });
    if (vdso == all.end()) return;
    std::vector<std::byte> code(vdso->range.size());
    code.resize(Memory{tracer.pid()}.read(vdso->range.begin, code));
    constexpr std::byte system_call[] = {std::byte{0x0f}, std::byte{0x05}};
    const auto found =
        std::search(code.begin(), code.end(), std::begin(system_call), std::end(system_call));
    if (found != code.end())
        instruction_ = vdso->range.begin + static_cast<std::uint64_t>(found - code.begin());
    // The padding of an ELF file's identification.
    constexpr std::uint64_t padding = 9;
    empty_string_ = vdso->range.begin + padding;
}

RemoteCalls::~RemoteCalls() {
    if (before_) thread_.set_registers(*before_);
    if (mask_) thread_.set_signal_mask(*mask_);
}

bool RemoteCalls::wait_for(EventKind kind) {
    while (tracer_.alive()) {
        const auto event = tracer_.wait(Clock::now() + std::chrono::seconds{10});
        if (!event) continue;
        if (event->kind == EventKind::process_gone) return false;
        if (event->thread != &thread_) {
            tracer_.pass_on(*event);
            continue;
        }
        if (event->kind == kind) return true;
        if (event->kind == EventKind::thread_gone) return false;
        thread_.resume_to_system_call(event->signal);
    }
    return false;
}

std::optional<std::int64_t> RemoteCalls::call(std::uint64_t number,
                                              std::initializer_list<std::uint64_t> arguments) {
    if (!before_ || !mask_ || instruction_ == Address{}) return {};
    auto registers = *before_;
    registers.raw.rip = instruction_.value;
    registers.raw.rax = number;
    registers.raw.orig_rax = ~0ull;
    constexpr unsigned long long user_regs_struct::*places[] = {
        &user_regs_struct::rdi, &user_regs_struct::rsi, &user_regs_struct::rdx,
        &user_regs_struct::r10, &user_regs_struct::r8,  &user_regs_struct::r9};
    SHADOWPROF_ASSERT(arguments.size() <= std::size(places), "a system call has six arguments");
    std::size_t at = 0;
    for (const auto argument : arguments) registers.raw.*places[at++] = argument;
    if (!thread_.set_registers(registers)) return {};
    thread_.resume_to_system_call();
    if (!wait_for(EventKind::system_call_entry)) return {};
    thread_.resume_to_system_call();
    if (!wait_for(EventKind::system_call_exit)) return {};
    const auto after = thread_.registers();
    if (!after) return {};
    return after->result();
}

}  // namespace shadowprof::ptrace
