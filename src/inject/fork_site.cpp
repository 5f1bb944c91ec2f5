// Forking a replica of a program that must not come to harm if we are killed half-way.
//
// A thread of the program is stopped at an arbitrary instruction and made to call clone(2). The
// registers it does that with are borrowed; so there must be no moment at which only we know what
// they were. What we do, each line one request to the kernel, and what is true after it:
//
//   write a signal frame into a slot  nothing has changed: the frame says how the program goes on
//   set the registers                 the thread is before the stub's first instruction: whether it
//                                     is us or the end of us that lets it go on, it blocks all
//                                     signals, clones, and returns through the frame
//   block its signals                 as the stub would: but now no handler sees the stub. (The
//                                     other way round, our end would leave them blocked.)
//   let it go on
//
// The stub (nursery_stub.cpp) uses no stack. Rt_sigreturn(2) sets registers, extended state and the
// signal mask at once, so that a signal is delivered before or after, never between.
//
// The newborn does not return. It says who it is, where we see it, and sleeps, until a worker
// thread of ours takes it (replica.cpp), or for a second.
//
// Whose child it is. A program that we started has us as its parent, and a replica made with
// CLONE_PARENT is our child too: the program sees nothing of it at all. (So the program is started
// by a thread that waits for nothing, see launch.cpp: the Tracer would be told of its siblings.)
// Where we attached, the program's parent would be surprised by a child; there the replica is made
// by a child of the program's thread, which ends and is reaped, and goes to the namespace's init.
//
// A slot is used again when its newborn has been seen to and its thread is seen to have returned: a
// frame that is still to be read must not be written. The thread says when nothing is left to do
// but to return; that it has returned is certain if it is seen elsewhere, has ended, or has
// computed for longer since than a few instructions take.
#include "inject/fork_site.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <new>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "inject/fork_stub.h"
#include "inject/movable.h"
#include "inject/planned_calls.h"
#include "inject/signal_frame.h"
#include "proc/maps.h"
#include "proc/memory.h"
#include "proc/proc_text.h"
#include "proc/process_info.h"
#include "ptrace/tracee.h"

namespace shadowprof::inject {
namespace {

// A page of code, the stub and then that for the rests of calls, a page with an answer of the first
// calls and then a word for each of those rests, and the slots.
constexpr std::size_t rests_at = 1024;
constexpr std::size_t answer_at = page_size;
constexpr std::size_t words_of_rests_at = answer_at + 64;
constexpr std::size_t slots_at = 2 * page_size;

// Longer than births of small programs take. Of others it is a small part that who is between may
// lose to us, and meanwhile nobody serves the program's other threads.
constexpr auto longest_return = std::chrono::microseconds{500};

constexpr const char* adopts =
    "it adopts orphans (PR_SET_CHILD_SUBREAPER), so replicas would become its children";
constexpr const char* dispatches_its_calls =
    "it answers system calls itself (PR_SET_SYSCALL_USER_DISPATCH)";

// When nobody will take a newborn any more.
constexpr auto given_up_after = std::chrono::seconds{3};

// Of a thread's processor time: many times what the end of the stub takes.
constexpr std::uint64_t surely_returned_ns = 10'000'000;

constexpr std::uint64_t flags_that_disturb = 0x100 | 0x400 | 0x40000;  // TF, DF, AC

// A call that our interruption made the kernel break off, to be issued again: it is put back to
// before it.
void issue_again(ptrace::Thread& stopped) {
    auto registers = stopped.registers();
    if (!registers || !registers->in_system_call()) return;
    constexpr std::int64_t restart_sys = -512, restart_no_intr = -513, restart_no_hand = -514,
                           restart_block = -516;
    switch (registers->result()) {
        case restart_sys:
        case restart_no_intr:
        case restart_no_hand:
            registers->raw.rax = registers->raw.orig_rax;
            break;
        case restart_block:
            registers->raw.rax = SYS_restart_syscall;
            break;
        default:
            return;
    }
    registers->raw.rip -= ptrace::system_call_length;
    registers->raw.orig_rax = ~0ull;
    stopped.set_registers(*registers);
}

template <typename T>
T load(const T& word) {
    return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

// Or until it is announced anew, or so long.
void await_change(const std::uint32_t& word, std::uint32_t value, Clock::duration longest) {
    const timespec time{0, std::chrono::nanoseconds{longest}.count()};
    syscall(SYS_futex, &word, FUTEX_WAIT, value, &time, nullptr, 0);
}

}  // namespace

ForkSite::ForkSite(pid_t pid, bool sibling, const Confinement& confinement)
    : pid_(pid),
      same_pids_(shares_pid_namespace(pid)),
      confinement_(confinement),
      childrens_namespace_(pid),
      sibling_(sibling) {}

std::unique_ptr<ForkSite> ForkSite::create(ptrace::Tracer& tracer, ptrace::Thread& stopped,
                                           std::size_t file_size, std::string& why) {
    const std::size_t area_size = slots_at + slots * StubSlot::size;
    SHADOWPROF_ASSERT(file_size >= area_size && file_size % page_size == 0, "the area comes first");
    rlimit longest{};
    if (getrlimit(RLIMIT_FSIZE, &longest) == 0 && longest.rlim_cur < file_size) {
        why = "the limit on the size of files (ulimit -f) is too low for a replica's code";
        return {};
    }
    why = why_never_to_fork(tracer.pid(), stopped.tid(), tracer.launched());
    const auto confinement = confinement_of(tracer.pid(), stopped.tid());
    if (!why.empty() || !confinement) return {};
    std::unique_ptr<ForkSite> fork_site{
        new ForkSite(tracer.pid(), tracer.launched(), *confinement)};

    enum : std::size_t { open_file, map, protect, ask, close_file };
    std::array<std::int64_t, 5> results{};
    Plan plan;
    plan.text = "shadowprof";
    plan.calls = {
        {SYS_memfd_create, {PlannedArgument::the_text(), MFD_CLOEXEC}},
        {SYS_mmap,
         {0, area_size, PROT_READ | PROT_WRITE, MAP_SHARED, PlannedArgument::result_of(open_file),
          0}},
        {SYS_mprotect, {PlannedArgument::result_of(map), page_size, PROT_READ | PROT_EXEC}},
        {SYS_prctl, {PR_GET_CHILD_SUBREAPER, PlannedArgument::result_of(map, answer_at)}},
        {SYS_close, {PlannedArgument::result_of(open_file)}},
    };
    std::string trouble;
    const auto returned = [&](std::size_t call, std::int64_t result) {
        results.at(call) = result;
        if (call != open_file || result < 0) return;
        const auto path =
            fmt::format("/proc/{}/task/{}/fd/{}", tracer.pid(), stopped.tid(), result);
        fork_site->file_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
        if (fork_site->file_ < 0 || ftruncate(fork_site->file_, static_cast<off_t>(file_size)) != 0)
            trouble = fmt::format("memory shared with the program: {}", std::strerror(errno));
    };
    if (!carry_out(tracer, stopped, plan, returned, why)) {
        if (why.empty() && dispatches_system_calls(stopped.tid())) why = dispatches_its_calls;
        return {};
    }
    why = trouble;
    if (!why.empty()) return {};
    for (const auto call : {open_file, map, protect}) {
        if (results.at(call) >= 0) continue;
        constexpr const char* names[] = {"memfd_create", "mmap", "mprotect"};
        why = fmt::format("the program may not map a little shared memory ({}: {})", names[call],
                          std::strerror(static_cast<int>(-results.at(call))));
        return {};
    }
    fork_site->place_.begin = {static_cast<std::uint64_t>(results.at(map))};
    fork_site->place_.end = fork_site->place_.begin + area_size;
    void* ours = mmap(nullptr, area_size, PROT_READ | PROT_WRITE, MAP_SHARED, fork_site->file_, 0);
    if (ours == MAP_FAILED) {
        why = fmt::format("mmap: {}", std::strerror(errno));
        return {};
    }
    fork_site->ours_ = static_cast<std::byte*>(ours);
    const auto code = stub().code;
    static_assert(rests_at + most_rests * RestOfCall::room <= page_size);
    SHADOWPROF_ASSERT(code.size() <= rests_at, "the rests of calls lie behind it");
    std::memcpy(ours, code.data(), code.size());
    for (std::size_t number = 0; number < slots; ++number)
        (new (&fork_site->slot(number)) StubSlot)->patience = {patience.count(), 0};
    int does_adopt = 0;
    std::memcpy(&does_adopt, fork_site->ours_ + answer_at, sizeof does_adopt);
    if (does_adopt && !tracer.launched()) {
        why = adopts;
        return {};
    }
    fork_site->prepare();
    return fork_site;
}

ForkSite::~ForkSite() {
    for (std::size_t number = 0; ours_ && number < slots; ++number) {
        const auto& slot = this->slot(number);
        if (uses_.at(number).is_looked_for.exchange(true) || load(slot.newborn) != slot.number)
            continue;
        bury(load(slot.pid));
        reap_one_between(slot);
    }
    if (ours_) munmap(ours_, place_.size());
    if (file_ >= 0) close(file_);
}

StubSlot& ForkSite::slot(std::size_t number) const {
    return *std::launder(reinterpret_cast<StubSlot*>(ours_ + slots_at + number * StubSlot::size));
}

Address ForkSite::place_of(std::size_t slot) const {
    return place_.begin + (slots_at + slot * StubSlot::size);
}

// What is likely to be against any other thread's fork, too, and at any other time.
std::optional<Obstacle> ForkSite::obstacle_to(pid_t tid, std::string_view status) {
    if (const auto confinement = confinement_in(status); confinement && confinement != confinement_)
        return Obstacle{"it has a seccomp filter that it had not when profiling began"};
    // A copy of such a page needs another one, and there may be none.
    if (const auto huge = proc::status_field(status, "HugetlbPages");
        !huge.empty() && !huge.starts_with("0 "))
        return Obstacle{"it uses huge pages of a pool (MAP_HUGETLB), which copies may exhaust"};
    if (!childrens_namespace_.is_its_own(tid)) return Obstacle{ChildrensNamespace::is_another};
    return {};
}

void ForkSite::look_at(const ptrace::Thread& thread) {
    look_.tid = thread.tid();
    look_.times_let_go = thread.times_let_go();
    look_.status = status_.of(pid_, thread.tid());
    look_.obstacle = obstacle_to(thread.tid(), look_.status);
}

void ForkSite::look_ahead(const ptrace::Thread& asked) {
    if (asked.is_asked()) look_at(asked);
}

// What was seen then is still so if the thread has made no system call since, for nothing else
// changes it. Since it was asked it can have made one, behind which it has stopped. (What another
// thread can change, it can change until the clone as well.)
bool ForkSite::has_looked_at(const ptrace::Thread& stopped, const ThreadState& state) const {
    return look_.tid == stopped.tid() && look_.times_let_go == stopped.times_let_go() &&
           !state.was_in_system_call;
}

std::optional<PendingReplica> ForkSite::fork(ptrace::Thread& stopped) {
    if (!free_slot_ || obstacle_now_) prepare();
    obstacle_ = obstacle_now_;
    if (!free_slot_ || obstacle_) return {};
    const auto state = state_if_movable(stopped);
    if (!state) {
        if (dispatches_system_calls(stopped.tid())) obstacle_ = Obstacle{dispatches_its_calls};
        return {};
    }
    if (place_.contains(state->registers.rip()) ||
        is_about_to_resume_a_sleep(stopped, state->registers))
        return {};
    if (!has_looked_at(stopped, *state)) look_at(stopped);
    const auto status = look_.status;
    obstacle_ = look_.obstacle;
    if (obstacle_ || status.empty()) return {};
    for (auto& use : uses_)
        if (use.thread == stopped.tid()) use.left = true;
    auto extended = stopped.extended_state();
    if (!extended) return {};
    const auto index = *free_slot_;
    auto& slot = this->slot(index);
    if (!write_signal_frame(slot.frame, place_of(index) + StubSlot::head_size, state->registers,
                            *extended, state->signal_mask))
        return {};
    const auto last_number = std::exchange(slot.number, ++births_);
    slot.to_reap = 0;
    // After an exec the area is not there any more. And who makes all its memory read-only, to be
    // told by SIGSEGV what it writes to, would be told of the stub while all signals are blocked.
    const auto seen = ptrace::word_at(stopped.tid(), place_of(index) + offsetof(StubSlot, number));
    const bool is_there = seen && static_cast<std::uint32_t>(*seen) == slot.number;
    const auto to_reap = std::as_bytes(std::span{&slot.to_reap, 1});
    if (!is_there || !proc::Memory{stopped.tid()}.write(
                         place_of(index) + offsetof(StubSlot, to_reap), to_reap)) {
        slot.number = last_number;
        obstacle_ =
            Obstacle{is_there ? "it has made shadowprof's memory read-only"
                     : seen   ? "it has put something else in the place of shadowprof's memory"
                              : "its memory cannot be read (any more)"};
        return {};
    }

    auto there = state->registers;
    const auto way = stub();
    there.raw.rip = (place_.begin + (sibling_ ? way.fork_sibling : way.fork_grandchild)).value;
    there.raw.rbx = place_of(index).value;
    there.raw.eflags &= ~flags_that_disturb;
    PendingReplica birth{index,
                         slot.number,
                         state->registers,
                         std::move(*extended),
                         Clock::now(),
                         state->signal_mask,
                         stopped.tid(),
                         {},
                         {}};
    if (!stopped.set_registers(there) || !stopped.set_signal_mask(ptrace::all_signals) ||
        !stopped.resume())
        return {};
    if (const auto signals = proc::signal_sets_in(status)) birth.signals = *signals;
    birth.identity = proc::identity_in(status);
    auto& use = uses_.at(index);
    use.thread = stopped.tid();
    use.begun = birth.begun;
    use.left = false;
    use.cpu_time.reset();
    use.is_looked_for = false;
    free_slot_.reset();
    return birth;
}

// A handler may run in the midst of it: that its thread is seen elsewhere says nothing before it is
// complete.
bool ForkSite::has_returned(std::size_t number, Rest& use) const {
    return use.number == 0 || (load(complete_word(number)) == use.number && has_returned(use));
}

std::uint32_t& ForkSite::complete_word(std::size_t rest) const {
    return *std::launder(reinterpret_cast<std::uint32_t*>(ours_ + words_of_rests_at) + rest);
}

Address ForkSite::place_of_rest(std::size_t number) const {
    return place_.begin + (rests_at + number * RestOfCall::room);
}

ForkSite::Rest* ForkSite::rest_made_by(const ptrace::Thread& stopped, Address stands_at) {
    for (std::size_t number = 0; number < most_rests; ++number) {
        auto& use = rests_.at(number);
        if (use.number != 0 && use.thread == stopped.tid() &&
            stands_at == RestOfCall::behind_call(place_of_rest(number)))
            return &use;
    }
    return nullptr;
}

bool ForkSite::finish_call(ptrace::Thread& stopped, RestOfCall rest) {
    std::size_t index = 0;
    while (index < most_rests && !has_returned(index, rests_.at(index))) ++index;
    if (index == most_rests) return false;
    auto* const before = rest_made_by(stopped, rest.program.rip());
    if (before != nullptr) rest.continues(before->what);
    auto& use = rests_.at(index);
    const auto place = place_of_rest(index);
    const auto number = ++rests_so_far_;
    const auto word = place_.begin + (words_of_rests_at + index * sizeof number);
    const auto code = rest.code(place, word, number);
    std::memcpy(ours_ + (place - place_.begin), code.data(), code.size());
    // After an exec the area is not there any more.
    std::vector<std::byte> seen(code.size());
    if (proc::Memory{stopped.tid()}.read(place, seen) != seen.size() || seen != code) return false;
    use.thread = stopped.tid();
    use.left = false;
    use.cpu_time.reset();
    use.number = number;
    if (!stopped.set_registers(rest.at(place))) {
        use.number = 0;
        return false;
    }
    use.what = std::move(rest);
    if (before != nullptr) before->number = 0;
    return true;
}

// The thread that last used it has.
bool ForkSite::has_returned(std::size_t number) {
    auto& use = uses_.at(number);
    const auto& slot = this->slot(number);
    if (slot.number == 0 || use.left) return true;
    return load(slot.complete) == slot.number && has_returned(use);
}

bool ForkSite::has_returned(Use& use) const {
    if (use.left) return true;
    if (const auto next = proc::goes_on_at(pid_, use.thread); next && !place_.contains(*next)) {
        use.left = true;
        return true;
    }
    const auto now = proc::thread_cpu_time(pid_, use.thread);
    if (now && !use.cpu_time) use.cpu_time = now;
    use.left = !now || *now - *use.cpu_time > surely_returned_ns;
    return use.left;
}

// A filter that came later forbids what it likes.
bool ForkSite::may_be_removed_by(const ptrace::Thread& stopped) const {
    return confinement_of(pid_, stopped.tid()) == confinement_ &&
           !dispatches_system_calls(stopped.tid());
}

bool ForkSite::is_there() const {
    struct stat ours {};
    const auto maps = proc::Maps::of(pid_);
    if (!maps || fstat(file_, &ours) != 0) return false;
    for (auto at = place_.begin; at < place_.end;) {
        const auto* const mapping = maps->mapping_at(at);
        if (mapping == nullptr || mapping->inode != ours.st_ino || !mapping->shared) return false;
        at = mapping->range.end;
    }
    return true;
}

bool ForkSite::remove(ptrace::Tracer& tracer, ptrace::Thread& stopped) {
    if (!may_be_removed_by(stopped)) return false;
    issue_again(stopped);
    const auto state = state_if_movable(stopped);
    if (!state || place_.contains(state->registers.rip())) return false;
    for (auto& use : uses_)
        if (use.thread == stopped.tid()) use.left = true;
    for (std::size_t number = 0; number < slots; ++number)
        if (!has_returned(number)) return false;
    for (std::size_t number = 0; number < most_rests; ++number)
        if (!has_returned(number, rests_.at(number))) return false;
    if (!is_there()) return true;
    Plan plan;
    plan.calls = {{SYS_munmap, {place_.begin.value, place_.size()}}};
    std::string why;
    return carry_out(
        tracer, stopped, plan, [](std::size_t, std::int64_t) {}, why);
}

bool ForkSite::has_returned(const PendingReplica& birth) const {
    return load(slot(birth.slot).complete) == birth.number;
}

void ForkSite::await_return(const PendingReplica& birth) const {
    const auto& slot = this->slot(birth.slot);
    const auto given_up = birth.begun + longest_return;
    for (auto now = Clock::now(); !has_returned(birth) && now < given_up; now = Clock::now()) {
        if (const auto newborn = load(slot.newborn); newborn != birth.number)
            await_change(slot.newborn, newborn, given_up - now);
        else
            sched_yield();
    }
}

bool ForkSite::is_free(std::size_t number) {
    auto& use = uses_.at(number);
    const auto& slot = this->slot(number);
    if (slot.number == 0) return true;
    if (!has_returned(number) || load(slot.newborn) != slot.number) return false;
    if (!use.is_looked_for && Clock::now() - use.begun > given_up_after &&
        !use.is_looked_for.exchange(true)) {
        bury(load(slot.pid));
        reap_one_between(slot);
    }
    return use.is_looked_for;
}

void ForkSite::prepare() {
    free_slot_.reset();
    for (std::uint32_t candidate = 0; candidate < slots; ++candidate)
        if (is_free(candidate)) free_slot_ = candidate;
    if (Clock::now() < next_look_) return;
    next_look_ = Clock::now() + std::chrono::milliseconds{100};
    obstacle_now_ = inject::obstacle_now(pid_);
}

void ForkSite::bury(pid_t newborn) const {
    if (!sibling_ || newborn <= 0) return;
    ::kill(newborn, SIGKILL);
    waitpid(newborn, nullptr, __WALL);
}

void ForkSite::reap_one_between(const StubSlot& slot) const {
    if (const auto pid = load(slot.to_reap); sibling_ && pid > 0) waitpid(pid, nullptr, __WALL);
}

std::optional<pid_t> ForkSite::wait_for(const PendingReplica& birth, std::string& why) {
    auto& use = uses_.at(birth.slot);
    if (Clock::now() - birth.begun > given_up_after || use.is_looked_for.exchange(true)) {
        why = "the replica was not taken in time";
        return {};
    }
    const auto& slot = this->slot(birth.slot);
    std::uint32_t newborn = 0;
    while ((newborn = load(slot.newborn)) != birth.number) {
        if (Clock::now() - birth.begun > given_up_after) {
            why = "the program did not get round to forking";
            use.is_looked_for = false;  // should it still be born, it is buried
            return {};
        }
        if (abandoned_) {
            why = "nobody waits for it";
            use.is_looked_for = false;
            return {};
        }
        // Failures are not announced; the program may also have ended.
        await_change(slot.newborn, newborn, std::chrono::milliseconds{20});
    }
    reap_one_between(slot);
    const pid_t pid = load(slot.pid);
    if (pid > 0 && same_pids_) return pid;
    if (pid > 0) {
        const auto ours = pid_in_our_namespace(pid, pid_);
        if (!ours) why = "the replica is not to be found in this pid namespace";
        return ours;
    }
    why = pid == adopts_orphans
              ? adopts
              : fmt::format("the program could not fork ({})", std::strerror(-pid));
    return {};
}

bool ForkSite::is_newborn(const ptrace::Registers& registers, const PendingReplica& birth) const {
    return registers.rip() >= place_.begin && registers.rip() < place_.begin + page_size &&
           registers.raw.rbx == place_of(birth.slot).value;
}

}  // namespace shadowprof::inject
