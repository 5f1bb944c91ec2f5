#include "inject/newborns.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "base/page.h"
#include "inject/fork_conditions.h"
#include "inject/fork_stub.h"
#include "inject/tuning.h"
#include "proc/memory.h"

namespace shadowprof::inject {

Newborns::Newborns(const SharedArea& area, pid_t process, bool are_our_children)
    : area_(area),
      process_(process),
      are_our_children_(are_our_children),
      same_pids_(shares_pid_namespace(process)) {}

Newborns::~Newborns() {
    for (std::size_t number = 0; number < uses_.size(); ++number) {
        const auto& slot = area_.slot(number);
        auto& use = uses_.at(number);
        if (use.is_waited_for.exchange(true) || load_acquire(slot.newborn) != use.number) continue;
        bury(load_acquire(slot.pid));
        reap_intermediary(slot);
    }
}

void Newborns::expect(const PendingReplica& pending) {
    auto& use = uses_.at(pending.slot);
    use.number = pending.number;
    use.begun = pending.begun;
    use.is_waited_for = false;
}

bool Newborns::is_settled(std::size_t number) {
    auto& use = uses_.at(number);
    const auto& slot = area_.slot(number);
    if (use.number == 0) return true;
    if (load_acquire(slot.newborn) != use.number) return false;
    if (!use.is_waited_for && Clock::now() - use.begun > tuning::newborn_given_up_after &&
        !use.is_waited_for.exchange(true)) {
        bury(load_acquire(slot.pid));
        reap_intermediary(slot);
    }
    return use.is_waited_for;
}

std::optional<pid_t> Newborns::wait_for(const PendingReplica& pending, std::string& why) {
    auto& use = uses_.at(pending.slot);
    const auto is_too_late = [&] {
        return Clock::now() - pending.begun > tuning::newborn_given_up_after;
    };
    if (is_too_late() || use.is_waited_for.exchange(true)) {
        why = "the replica was not taken in time";
        return {};
    }
    const auto& slot = area_.slot(pending.slot);
    std::uint32_t newborn = 0;
    while ((newborn = load_acquire(slot.newborn)) != pending.number) {
        const bool late = is_too_late();
        if (late || is_abandoned_) {
            why = late ? "the program did not get round to forking" : "nobody waits for it";
            use.is_waited_for = false;  // should it still be born, it is buried
            return {};
        }
        // Failures are not announced; the program may also have ended.
        await_change(slot.newborn, newborn, tuning::between_looks_for_newborn);
    }
    reap_intermediary(slot);
    const pid_t pid = load_acquire(slot.pid);
    if (pid > 0) {
        const auto ours = same_pids_ ? pid : pid_in_our_namespace(pid, process_);
        if (!ours) why = "the replica is not to be found in this pid namespace";
        if (!ours || is_copy(*ours)) return ours;
    }
    constexpr pid_t least_error = -4095;
    if (pid > 0 || pid < least_error) {
        why = program_wrote_into_it;
        return {};
    }
    why = pid == adopts_orphans
              ? because_it_adopts
              : fmt::format("the program could not fork ({})", std::strerror(-pid));
    return {};
}

bool Newborns::is_newborn(const ptrace::Registers& registers, const PendingReplica& pending) const {
    const auto code = area_.place().begin;
    return registers.rip() >= code && registers.rip() < code + page_size &&
           registers.raw.rbx == area_.place_of_slot(pending.slot).value;
}

// ---- The program can write any number in place of a pid

bool Newborns::is_of_process(pid_t pid) const {
    return pid == process_ || tgkill(process_, pid, 0) == 0;
}

// Whether it is a process of its own that has our code where the program has it: no other process
// is traced, or killed.
bool Newborns::is_copy(pid_t pid) const {
    const auto code = stub().code;
    std::vector<std::byte> seen(code.size());
    return pid > 0 && !is_of_process(pid) &&
           proc::Memory{pid}.read(area_.place().begin, seen) == seen.size() &&
           std::equal(seen.begin(), seen.end(), code.begin());
}

// As our child it must not stay as a zombie. Nor must the intermediary.
void Newborns::bury(pid_t newborn) const {
    if (!are_our_children_) return;
    if (is_copy(newborn)) ::kill(newborn, SIGKILL);
    reap(newborn);
}

// Waits for a while: it may be about to end.
void Newborns::reap(pid_t pid) const {
    if (pid <= 0 || is_of_process(pid)) return;
    for (int tries = 0; tries < tuning::tries_to_reap; ++tries) {
        if (waitpid(pid, nullptr, __WALL | WNOHANG) != 0) return;
        std::this_thread::sleep_for(tuning::between_tries_to_reap);
    }
}

void Newborns::reap_intermediary(const StubSlot& slot) const {
    if (are_our_children_) reap(load_acquire(slot.to_reap));
}

}  // namespace shadowprof::inject
