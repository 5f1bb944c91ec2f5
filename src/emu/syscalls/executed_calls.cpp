// What has changed after a call was executed in a replica.
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>

#include "base/page.h"
#include "emu/syscalls/rules/signals.h"
#include "emu/syscalls/system_calls.h"
#include "proc/call_facts.h"

namespace shadowprof::emu {

namespace {

void cut_out(std::vector<AddressRange>& ranges, AddressRange gone) {
    std::vector<AddressRange> left;
    for (const auto& range : ranges) {
        const AddressRange before{range.begin, std::min(range.end, gone.begin)};
        const AddressRange after{std::max(range.begin, gone.end), range.end};
        if (!before.empty()) left.push_back(before);
        if (!after.empty()) left.push_back(after);
    }
    ranges = std::move(left);
}

// To be called where something else is mapped now, or nothing.
void forget_sharing(GuestFacts& facts, Address begin, std::uint64_t size) {
    const AddressRange gone{begin, {round_up_to_page(begin.value + size)}};
    cut_out(facts.shared_mappings, gone);
    cut_out(facts.device_memory, gone);
}

}  // namespace

void note_executed(const SystemCall& call, std::int64_t result, GuestFacts& facts) {
    auto& descriptors = facts.descriptors;
    const auto& arguments = call.arguments;
    const auto fd = static_cast<int>(arguments[0]);
    if (call.number == SYS_close) descriptors.close(fd);  // whatever the result
    if (result < 0) return;

    // The real descriptor cannot be asked whether it closes on exec: it has been moved to another
    // number since.
    const auto& call_facts = proc::facts_of_call(call.number);
    const auto closes_on_exec = call_facts.asks_for_close_on_exec(arguments);
    const auto new_fd = static_cast<int>(result);
    switch (call_facts.descriptor.from) {
        case proc::NewDescriptor::From::nowhere:
            break;
        case proc::NewDescriptor::From::opening:
            descriptors.opened(new_fd, closes_on_exec);
            break;
        case proc::NewDescriptor::From::duplicating:
            if (descriptors.at(fd).is_held) descriptors.duplicate(fd, new_fd, closes_on_exec);
            break;
    }
    switch (call.number) {
        case SYS_close_range:
            if ((arguments[2] & CLOSE_RANGE_CLOEXEC) == 0) {
                descriptors.close_range(static_cast<unsigned>(arguments[0]),
                                        static_cast<unsigned>(arguments[1]));
            } else {
                descriptors.close_range_on_exec(static_cast<unsigned>(arguments[0]),
                                                static_cast<unsigned>(arguments[1]));
            }
            break;
        case SYS_mmap:
            forget_sharing(facts, {static_cast<std::uint64_t>(result)}, arguments[1]);
            if ((arguments[3] & MAP_ANONYMOUS) == 0) {
                facts.mapped_here.insert(descriptors.at(static_cast<int>(arguments[4])).id);
            }
            // It was mapped privately, and must not become writable: a shared mapping of a file
            // that was opened for reading could not.
            if ((arguments[3] & MAP_ANONYMOUS) == 0 && (arguments[3] & MAP_TYPE) != MAP_PRIVATE) {
                const Address begin{static_cast<std::uint64_t>(result)};
                facts.shared_mappings.push_back({begin, begin + arguments[1]});
            }
            break;
        case SYS_munmap:
            forget_sharing(facts, {arguments[0]}, arguments[1]);
            break;
        case SYS_rt_sigaction: {
            // The program may catch it from now on.
            const auto now_acts = facts.idle_signals & signal_bit(static_cast<int>(arguments[0]));
            if (arguments[1] != 0) {
                facts.pending_signals |= now_acts;
                facts.idle_signals &= ~now_acts;
            }
            break;
        }
        case SYS_sigaltstack:
            facts.has_set_signal_stack |= arguments[0] != 0;
            break;
        case SYS_umask:
            facts.creation_mask = static_cast<mode_t>(arguments[0]) & 0777;
            break;
        default:
            break;
    }
}

std::optional<End> end_for_want_of_room(const SystemCall& call, std::int64_t result) {
    const bool maps = call.number == SYS_mmap || call.number == SYS_mremap;
    const bool moves_break = call.number == SYS_brk && call.arguments[0] != 0;
    const bool found_none = (maps && result == -ENOMEM) ||
                            (moves_break && result != static_cast<std::int64_t>(call.arguments[0]));
    if (!found_none) return {};
    return End{system_call_end_reason(call.number) + " that found no room"};
}

}  // namespace shadowprof::emu
