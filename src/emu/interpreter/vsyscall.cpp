#include "emu/interpreter/vsyscall.h"

#include <sched.h>
#include <sys/time.h>

#include <ctime>

#include "decoder/instruction.h"

namespace shadowprof::emu {

namespace {

// A null pointer means that the caller does not want the value.
template <typename T>
bool give(MemoryView& view, std::uint64_t pointer, const T& value) {
    if (pointer == 0) return true;
    return view.write({pointer}, std::as_bytes(std::span{&value, 1})) == sizeof value;
}

}  // namespace

std::optional<Address> emulate_vsyscall(Address at, std::uint64_t* general, MemoryView& view) {
    const auto first = general[decoder::rdi], second = general[decoder::rsi];
    std::uint64_t result = 0;
    switch (at - vsyscall_page.begin) {
        case 0x000: {
            timeval now{};
            struct timezone zone {};
            ::gettimeofday(&now, &zone);
            if (!give(view, first, now) || !give(view, second, zone)) return {};
            break;
        }
        case 0x400: {
            const auto now = ::time(nullptr);
            if (!give(view, first, now)) return {};
            result = static_cast<std::uint64_t>(now);
            break;
        }
        case 0x800: {
            unsigned processor = 0, node = 0;
            ::getcpu(&processor, &node);
            if (!give(view, first, processor) || !give(view, second, node)) return {};
            break;
        }
        default:
            return {};
    }
    Address back;
    if (view.read({general[decoder::rsp]}, std::as_writable_bytes(std::span{&back.value, 1})) !=
        sizeof back.value)
        return {};
    general[decoder::rsp] += 8;
    general[decoder::rax] = result;
    return back;
}

}  // namespace shadowprof::emu
