#include "sampling/clock/kernel_entry.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ptrace/registers.h"
#include "sampling/clock/waiting.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

namespace {

constexpr std::array<std::uint8_t, 2> syscall_instruction{0x0f, 0x05};
constexpr unsigned rcx = 1;

}  // namespace

std::optional<std::int64_t> number_loaded_in(std::span<const std::byte> code) {
    const auto at = [&](std::size_t n) { return static_cast<std::uint8_t>(code[n]); };
    constexpr std::uint32_t most = 1024;  // there are fewer calls
    if (code.size() < syscall_instruction.size()) return {};
    for (std::size_t n = code.size() - syscall_instruction.size(); n-- > 0;) {
        std::uint32_t number = most;
        if (at(n) == 0xb8 && n + 5 <= code.size())  // mov eax, number
            std::memcpy(&number, &code[n + 1], sizeof number);
        else if (at(n) == 0x31 && at(n + 1) == 0xc0)  // xor eax, eax
            number = 0;
        else if (n + 7 <= code.size() && at(n) == 0x48 && at(n + 1) == 0xc7 && at(n + 2) == 0xc0)
            std::memcpy(&number, &code[n + 3], sizeof number);  // mov rax, number
        // Another function ends there.
        else if (at(n) == 0xc3 || at(n) == 0xcc)
            return {};
        if (number < most) return number;
    }
    return {};
}

std::string KernelEntries::find(const proc::ThreadClock::Look& look) const {
    std::array<std::byte, tuning::code_before_system_call> code{};
    const auto begin = look.user_at - code.size();
    const bool is_read = memory_.read(begin, code) == code.size();
    const bool is_behind_syscall =
        is_read && std::memcmp(code.data() + code.size() - syscall_instruction.size(),
                               syscall_instruction.data(), syscall_instruction.size()) == 0;
    // The instruction leaves where it goes on in rcx.
    if (look.general[rcx] != look.user_at.value || (is_read && !is_behind_syscall))
        return "fault or interrupt";
    const auto number = is_read ? number_loaded_in(code) : std::nullopt;
    return number ? name_of_call(*number) : "";
}

const std::string& KernelEntries::name_of(const proc::ThreadClock::Look& look) {
    const auto [known, is_new] = known_.try_emplace(look.user_at);
    if (is_new) known->second = find(look);
    return known->second;
}

}  // namespace shadowprof::sampling
