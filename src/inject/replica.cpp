// A newborn waits in the stub, with nothing of the program's in its registers. We seize it, with
// PTRACE_O_EXITKILL in the same request, so that it is never ours without dying with us; stop it;
// see that it is where newborns wait; and only then give it the program's registers. It has its
// memory, extended state and signal handlers from the fork, and all its signals are blocked.
//
// Signals that are sent to a replica are dropped; only the faults that its own instructions cause
// are reported. Stops of its whole group are ignored as well.
#include "inject/replica.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>

#include "base/error.h"
#include "inject/tuning.h"
#include "proc/process_info.h"
#include "ptrace/system.h"
#include "ptrace/tracee.h"

namespace shadowprof::inject {
namespace {

constexpr std::uint64_t no_system_call = ~std::uint64_t{0};
constexpr unsigned long seize_options = PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD;

std::uint64_t nanoseconds_of(const timeval& time) {
    constexpr std::uint64_t of_second = 1'000'000'000, of_microsecond = 1000;
    return static_cast<std::uint64_t>(time.tv_sec) * of_second +
           static_cast<std::uint64_t>(time.tv_usec) * of_microsecond;
}

bool is_own_fault(const siginfo_t& info) {
    switch (info.si_signo) {
        case SIGSEGV:
        case SIGBUS:
        case SIGFPE:
        case SIGILL:
        case SIGTRAP:
            return info.si_code > 0;  // else somebody sent it
        default:
            return false;
    }
}

}  // namespace

Replica::Replica(pid_t pid, Address system_call)
    : pid_(pid),
      handle_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))),
      memory_(pid),
      system_call_(system_call) {}

std::unique_ptr<Replica> Replica::take(ForkSite& fork_site, const PendingReplica& pending,
                                       std::string& why) {
    auto& newborns = fork_site.newborns();
    const auto pid = newborns.wait_for(pending, why);
    if (!pid) return {};
    if (ptrace::request(PTRACE_SEIZE, *pid, seize_options) != 0) {
        why = fmt::format("a replica cannot be traced: {}", std::strerror(errno));
        newborns.bury(*pid);
        return {};
    }
    std::unique_ptr<Replica> replica{new Replica(*pid, fork_site.place().begin)};
    if (!replica->take_hold(newborns, pending)) {
        why = "a replica ended before it was taken";
        return {};
    }
    replica->give_way_to_program();
    return replica;
}

bool Replica::take_hold(const Newborns& newborns, const PendingReplica& pending) {
    if (handle_ < 0 || ptrace::request(PTRACE_INTERRUPT, pid_) != 0) return false;
    int status = 0;
    if (wait(status) != pid_ || !WIFSTOPPED(status)) {
        is_gone_ = true;
        return false;
    }
    const auto waiting = registers();
    if (!waiting) return false;
    if (newborns.is_newborn(*waiting, pending)) return set_registers(pending.registers);
    // The newborn ended by itself, and its number is another's by now.
    is_gone_ = ptrace::request(PTRACE_DETACH, pid_) == 0;
    return false;
}

// The program has precedence over its replicas, and a replica is the first to be killed where
// memory is short.
void Replica::give_way_to_program() const {
    const sched_param none{};
    sched_setscheduler(pid_, SCHED_IDLE, &none);
    // If that is refused; and the kernel counts its time as spare then.
    setpriority(PRIO_PROCESS, static_cast<id_t>(pid_), 19);
    // The program may be bound to the processor it is using.
    cpu_set_t ours;
    if (sched_getaffinity(0, sizeof ours, &ours) == 0) sched_setaffinity(pid_, sizeof ours, &ours);
    const auto path = fmt::format("/proc/{}/oom_score_adj", pid_);
    const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    constexpr char first[] = "1000";
    // A process that may not be dumped belongs to root; then it stays as likely as the program.
    if (write(file, first, sizeof first - 1) < 0) errno = 0;
    close(file);
}

Replica::~Replica() {
    end();
    if (handle_ >= 0) close(handle_);
}

std::uint64_t Replica::end() {
    kill();
    int status = 0;
    while (!is_gone_ && (has_several_ ? wait_for_any(status) > 0 : wait(status) == pid_)) {
    }
    return computed_;
}

pid_t Replica::wait(int& status, int flags) {
    rusage usage{};
    const auto pid = wait4(tid_, &status, __WALL | flags, &usage);
    note_end(pid, status, usage);
    return pid;
}

// This thread of ours traces nobody else.
pid_t Replica::wait_for_any(int& status) {
    rusage usage{};
    const auto pid = wait4(-1, &status, __WALL | __WNOTHREAD, &usage);
    note_end(pid, status, usage);
    return pid;
}

// The first thread ends last.
void Replica::note_end(pid_t tid, int status, const rusage& usage) {
    if (tid <= 0 || WIFSTOPPED(status)) return;
    is_ending_ = true;
    if (tid != pid_) return;
    is_gone_ = true;
    computed_ = nanoseconds_of(usage.ru_utime) + nanoseconds_of(usage.ru_stime);
}

void Replica::kill() {
    if (handle_ >= 0 && !is_gone_) syscall(SYS_pidfd_send_signal, handle_, SIGKILL, nullptr, 0);
}

std::optional<ptrace::Registers> Replica::registers() const {
    return ptrace::registers_of(tid_);
}
bool Replica::set_registers(const ptrace::Registers& registers) {
    return ptrace::set_registers_of(tid_, registers);
}
std::optional<ptrace::ExtendedState> Replica::extended_state() const {
    return ptrace::extended_state_of(tid_);
}
bool Replica::set_extended_state(const ptrace::ExtendedState& state) {
    return ptrace::set_extended_state_of(tid_, state);
}

std::optional<int> Replica::go(Way way, std::optional<std::uint64_t> until) {
    constexpr __ptrace_request requests[] = {PTRACE_SYSEMU, PTRACE_SYSEMU_SINGLESTEP,
                                             PTRACE_SYSCALL};
    while (!is_ending_) {
        ptrace::request(requests[static_cast<std::size_t>(way)], tid_);
        int status = 0;
        if (!await_stop(status, until)) break;
        if (is_ending_) break;
        if (status >> 16 != PTRACE_EVENT_STOP) return WSTOPSIG(status);
        if (until && proc::process_cpu_time(pid_).value_or(*until) >= *until) return was_stopped;
    }
    return {};
}

bool Replica::await_stop(int& status, std::optional<std::uint64_t> until) {
    if (!until) return wait(status) == tid_;
    constexpr timespec between_looks{
        0, std::chrono::nanoseconds{tuning::between_looks_at_replica}.count()};
    bool is_asked = false;
    while (true) {
        const auto stopped = wait(status, WNOHANG);
        if (stopped != 0) return stopped == pid_;
        if (!is_asked && proc::process_cpu_time(pid_).value_or(*until) >= *until)
            is_asked = ptrace::request(PTRACE_INTERRUPT, pid_) == 0;
        nanosleep(&between_looks, nullptr);
    }
}

Replica::Stop Replica::run() {
    return run(Way::program, {});
}

Replica::Stop Replica::run_for(std::uint64_t nanoseconds) {
    return run(Way::program, proc::process_cpu_time(pid_).value_or(0) + nanoseconds);
}

Replica::Stop Replica::step() {
    const auto stop = run(Way::step_of_program, {});
    const bool is_it = stop.kind == StopKind::signal && stop.info.si_signo == SIGTRAP;
    return is_it ? Stop{StopKind::late, {}} : stop;
}

bool Replica::write_code(Address to, std::span<const std::byte> bytes) {
    // Word by word: none of them reaches into another page.
    while (!bytes.empty()) {
        const auto offset = to.value % sizeof(std::uint64_t);
        const auto place = Address{to.value - offset};
        const auto before = memory_.read_as<std::uint64_t>(place);
        if (!before) return false;
        auto word = *before;
        const auto here = std::min(bytes.size(), sizeof word - offset);
        std::memcpy(reinterpret_cast<std::byte*>(&word) + offset, bytes.data(), here);
        if (ptrace::request(PTRACE_POKEDATA, pid_, place.value, reinterpret_cast<void*>(word)) != 0)
            return false;
        bytes = bytes.subspan(here);
        to = to + here;
    }
    return true;
}

Replica::Stop Replica::run(Way way, std::optional<std::uint64_t> until) {
    while (const auto signal = go(way, until)) {
        if (*signal == was_stopped) return {StopKind::late, {}};
        if (const auto stop = stop_for(*signal)) return *stop;
    }
    return {StopKind::gone, {}};
}

// Nothing if the signal is not to reach it.
std::optional<Replica::Stop> Replica::stop_for(int signal) const {
    if (signal == ptrace::system_call_stop) return Stop{StopKind::system_call, {}};
    Stop stop{StopKind::signal, {}};
    if (ptrace::request(PTRACE_GETSIGINFO, tid_, 0, &stop.info) == 0 && is_own_fault(stop.info))
        return stop;
    return {};
}

std::optional<std::int64_t> Replica::call(std::uint64_t number,
                                          std::initializer_list<std::uint64_t> arguments) {
    const auto before = registers();
    if (!before) return {};
    auto calling = *before;
    calling.raw.rip = system_call_.value;
    calling.raw.rax = number;
    calling.raw.orig_rax = no_system_call;
    constexpr unsigned long long user_regs_struct::*places[] = {
        &user_regs_struct::rdi, &user_regs_struct::rsi, &user_regs_struct::rdx,
        &user_regs_struct::r10, &user_regs_struct::r8,  &user_regs_struct::r9};
    SHADOWPROF_ASSERT(arguments.size() <= std::size(places), "a system call has six arguments");
    std::size_t at = 0;
    for (const auto argument : arguments) calling.raw.*places[at++] = argument;
    if (!set_registers(calling)) return {};
    // If it stands at a call that was not executed, the first exit belongs to that call.
    bool entered = false;
    while (const auto signal = go(Way::system_calls)) {
        if (*signal != ptrace::system_call_stop) continue;
        if (ptrace::event_message(tid_) == ptrace::message_of_system_call_entry) {
            entered = true;
        } else if (entered) {
            const auto after = registers();
            if (!after || !set_registers(*before)) return {};
            return after->result();
        }
    }
    return {};
}

// The new thread is traced from its start (PTRACE_O_TRACECLONE), with our options.
std::optional<pid_t> Replica::add_thread() {
    constexpr unsigned long options = seize_options | PTRACE_O_TRACECLONE;
    constexpr std::uint64_t flags =
        CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    if (ptrace::request(PTRACE_SETOPTIONS, tid_, options) != 0) return {};
    has_several_ = true;
    const auto result = call(SYS_clone, {flags, 0, 0, 0, 0});
    ptrace::request(PTRACE_SETOPTIONS, tid_, seize_options);
    if (!result || *result < 0) return {};
    while (true) {
        int status = 0;
        const auto tid = wait_for_any(status);
        if (tid <= 0 || is_ending_) return {};
        const auto running = std::ranges::find(running_, tid);
        if (running == running_.end()) return tid;
        running_.erase(running);
        stopped_.emplace_back(tid, status);
    }
}

void Replica::end_thread() {
    const auto tid = std::exchange(tid_, pid_);
    auto registers = ptrace::registers_of(tid);
    if (!registers) return;
    registers->raw.rip = system_call_.value;
    registers->raw.rax = SYS_exit;
    registers->raw.orig_rax = no_system_call;
    if (!ptrace::set_registers_of(tid, *registers) || ptrace::request(PTRACE_CONT, tid) != 0)
        return;
    int status = 0;
    while (wait4(tid, &status, __WALL, nullptr) == tid && WIFSTOPPED(status))
        ptrace::request(PTRACE_CONT, tid);
}

void Replica::resume(pid_t tid) {
    if (ptrace::request(PTRACE_SYSEMU, tid) == 0) running_.push_back(tid);
}

void Replica::let_go() {
    resume(tid_);
}

Replica::Stop Replica::await() {
    while (!is_ending_) {
        int status = 0;
        if (!stopped_.empty()) {
            std::tie(tid_, status) = stopped_.front();
            stopped_.erase(stopped_.begin());
        } else {
            tid_ = wait_for_any(status);
            if (tid_ <= 0 || is_ending_) break;
            std::erase(running_, tid_);
        }
        if (status >> 16 != PTRACE_EVENT_STOP)
            if (const auto stop = stop_for(WSTOPSIG(status))) return *stop;
        resume(tid_);
    }
    tid_ = pid_;
    return {StopKind::gone, {}};
}

void Replica::stop_others() {
    for (const auto tid : std::exchange(running_, {})) {
        int status = 0;
        ptrace::request(PTRACE_INTERRUPT, tid);
        rusage usage{};
        const auto stopped = wait4(tid, &status, __WALL, &usage);
        note_end(stopped, status, usage);
        if (stopped != tid || !WIFSTOPPED(status)) continue;
        if (status >> 16 == PTRACE_EVENT_STOP)
            held_.push_back(tid);
        else
            stopped_.emplace_back(tid, status);
    }
}

void Replica::let_others_go_on() {
    for (const auto tid : std::exchange(held_, {})) resume(tid);
}

}  // namespace shadowprof::inject
