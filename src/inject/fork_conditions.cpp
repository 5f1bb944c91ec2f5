// What may be against replicas:
//
//   seccomp         A filter may end a process for a system call it does not expect, such as ours.
//                   If the program has the filters that we have, a child of ours tries. Other
//                   filters could be suspended (PTRACE_O_SUSPEND_SECCOMP), but not beyond our end.
//   shadow stacks   The stub and translated code return where nobody called from.
//   pid namespaces  The init of one cannot have siblings and adopts every orphan. And if a process
//                   has a new namespace for its children, the replica would become its init.
//   memory          What program and replica write is copied, in the worst case everything.
//   processes       A replica counts as a process of its user and of its control group. Where few
//                   are allowed (RLIMIT_NPROC, pids.max), replicas could keep the program from
//                   forking, or from starting a thread.
//   its end         When a program's first thread has ended, others may go on; but /proc says
//                   nothing of its memory and descriptors any more.
#include "inject/fork_conditions.h"

#include <asm/prctl.h>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <sstream>

#include "base/page.h"
#include "inject/fork_stub.h"
#include "inject/tuning.h"
#include "proc/control_groups.h"
#include "proc/proc_text.h"
#include "ptrace/system.h"

namespace shadowprof::inject {
namespace {

long number_in(std::string_view status, const char* key) {
    const auto text = proc::status_field(status, key);
    return text.empty() ? 0 : std::atol(text.c_str());
}

std::string link_of(const std::string& path) {
    std::array<char, PATH_MAX> text{};
    const auto length = readlink(path.c_str(), text.data(), text.size());
    return length <= 0 ? std::string{} : std::string(text.data(), static_cast<std::size_t>(length));
}

std::string namespace_of(pid_t pid, const char* kind) {
    return link_of(fmt::format("/proc/{}/ns/{}", pid, kind));
}

bool is_in_our_container(pid_t pid) {
    for (const char* kind : {"user", "mnt", "pid", "net"})
        if (namespace_of(pid, kind) != namespace_of(getpid(), kind)) return false;
    return true;
}

std::string last_word(const std::string& text) {
    return text.substr(text.find_last_of(" \t") + 1);
}

// Clones a process that may share our stack, and therefore ends at once. Returns what clone(2) did.
std::int64_t clone_and_exit(unsigned long flags) {
    std::int64_t result = 0;
    register std::uint64_t parent_tid asm("r10") = 0;
    register std::uint64_t tls asm("r8") = 0;
    asm volatile(
        "syscall\n"
        "test %%rax, %%rax\n"
        "jnz 1f\n"
        "mov %[exit], %%eax\n"
        "xor %%edi, %%edi\n"
        "syscall\n"
        "1:"
        : "=a"(result)
        : "a"(SYS_clone), "D"(flags), "S"(0), "d"(0), "r"(parent_tid),
          "r"(tls), [exit] "i"(SYS_exit)
        : "rcx", "r11", "memory");
    return result;
}

// The processes that the trying child created, which may be our children.
struct Tried {
    volatile pid_t intermediary, newborn;
};

// Runs in a child of ours, and ends it.
[[noreturn]] void try_calls(const CloneFlags& flags, Tried& tried) {
    const auto file = static_cast<int>(syscall(SYS_memfd_create, "shadowprof", MFD_CLOEXEC));
    void* area = mmap(nullptr, page_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (area == MAP_FAILED || mprotect(area, page_size, PROT_READ | PROT_EXEC) != 0) _exit(1);
    madvise(area, page_size, MADV_DONTFORK);
    munmap(area, page_size);
    personality(static_cast<unsigned long>(personality(0xffffffff)));
    unsigned long gs = 0;
    syscall(SYS_arch_prctl, ARCH_GET_GS, &gs);
    int does_adopt = 0;
    prctl(PR_GET_CHILD_SUBREAPER, &does_adopt);
    tried.intermediary = static_cast<pid_t>(clone_and_exit(flags.intermediary));
    if (tried.intermediary < 0) _exit(1);
    sched_yield();
    int nobody_waits = 0;
    syscall(SYS_futex, &nobody_waits, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    // These may be unknown or forbidden, but must not be what ends us.
    syscall(SYS_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE);
    setpgid(0, 0);
    tried.newborn = static_cast<pid_t>(clone_and_exit(flags.newborn));
    if (tried.newborn < 0) _exit(1);
    syscall(SYS_wait4, tried.intermediary, nullptr, __WALL | WNOHANG, nullptr);
    const timespec none{};
    nanosleep(&none, nullptr);
    _exit(0);
}

bool may_make_calls(bool launched) {
    void* shared =
        mmap(nullptr, sizeof(Tried), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return false;
    auto& tried = *new (shared) Tried{};
    const pid_t child = fork();
    if (child == 0) try_calls(launched ? sibling_clone_flags : grandchild_clone_flags, tried);
    int status = -1;
    if (child > 0) waitpid(child, &status, 0);
    // Siblings of the child's are our children as well; others are init's.
    for (const pid_t sibling : {tried.intermediary, tried.newborn})
        if (launched && sibling > 0) waitpid(sibling, nullptr, __WALL);
    munmap(shared, sizeof(Tried));
    return status == 0;
}

// Filters can only be added, and ours stay what they are.
bool may_make_calls_as_we_do(bool launched) {
    if (launched) {
        static const bool as_siblings = may_make_calls(true);
        return as_siblings;
    }
    static const bool as_grandchildren = may_make_calls(false);
    return as_grandchildren;
}

// The limit does not bind the real user 0. It is read from /proc, for prlimit(2) reports other
// processes' limits only with CAP_SYS_RESOURCE, which containers lack.
bool may_have_few_processes(pid_t pid) {
    constexpr std::string_view key = "Max processes";
    const auto limits = proc::read_proc_file(fmt::format("/proc/{}/limits", pid));
    const auto at = limits.find(key);
    if (at == std::string::npos) return false;
    const auto value = limits.find_first_not_of(' ', at + key.size());
    // Without a limit there is a word.
    return value != std::string::npos && limits[value] >= '0' && limits[value] <= '9' &&
           std::atol(&limits[value]) < tuning::enough_processes;
}

// How many more processes there is room for in the groups that the program is in.
double room_in_groups(pid_t pid) {
    const auto room = [](const std::string& folder) {
        std::istringstream most_text{proc::read_proc_file(folder + "/pids.max")};
        std::istringstream current_text{proc::read_proc_file(folder + "/pids.current")};
        double most = 0, current = 0;  // without a limit there is a word
        return most_text >> most && current_text >> current
                   ? most - current
                   : std::numeric_limits<double>::infinity();
    };
    return proc::tightest_limit(pid, "pids", room, room);
}

}  // namespace

std::string why_never_to_call(pid_t pid, pid_t tid, bool launched) {
    const auto theirs = confinement_of(pid, tid);
    const auto ours = confinement_of(getpid(), getpid());
    if (!theirs || !ours) return "it has ended";
    if (theirs->shadow_stack) return "it uses shadow stacks (CET)";
    if (theirs->seccomp_mode == 0) return {};
    if (theirs->seccomp_mode != ours->seccomp_mode ||
        theirs->seccomp_filters != ours->seccomp_filters ||
        (!launched && !is_in_our_container(pid)))
        return "it has a seccomp filter that shadowprof is not under itself, which might end it";
    if (!may_make_calls_as_we_do(launched))
        return "the seccomp filter that it and shadowprof are under does not allow the system "
               "calls that are needed";
    return {};
}

std::string why_never_to_fork(pid_t pid, pid_t tid, bool launched) {
    const auto status = proc::read_proc_file(fmt::format("/proc/{}/status", pid));
    if (last_word(proc::status_field(status, "NSpid")) == "1")
        return "it is the init of its pid namespace";
    if (!ChildrensNamespace{pid}.is_its_own(tid)) return ChildrensNamespace::is_another;
    return why_never_to_call(pid, tid, launched);
}

ChildrensNamespace::ChildrensNamespace(pid_t pid) : pid_(pid), own_(namespace_of(pid, "pid")) {}

ChildrensNamespace::~ChildrensNamespace() {
    if (link_ >= 0) close(link_);
}

void ChildrensNamespace::look_at(pid_t tid) {
    if (link_ >= 0) close(link_);
    const auto path = fmt::format("/proc/{}/task/{}/ns/pid_for_children", pid_, tid);
    link_ = open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
    tid_ = tid;
}

// Empty as long as the children's namespace has no first process.
std::string ChildrensNamespace::of_children() const {
    std::array<char, 64> text{};
    const auto length = readlinkat(link_, "", text.data(), text.size());
    return length <= 0 ? std::string{} : std::string(text.data(), static_cast<std::size_t>(length));
}

bool ChildrensNamespace::is_its_own(pid_t tid) {
    if (own_.empty() || (tid == tid_ && of_children() == own_)) return true;
    look_at(tid);
    return of_children() == own_;
}

std::optional<Obstacle> obstacle_now(pid_t pid) {
    const auto status = proc::read_proc_file(fmt::format("/proc/{}/status", pid));
    if (proc::status_field(status, "State").starts_with('Z'))
        return Obstacle{"its first thread has ended"};
    if (number_in(status, "Uid") != 0 && may_have_few_processes(pid))
        return Obstacle{"its limit on processes (RLIMIT_NPROC) is low, and replicas count"};
    if (const auto room = room_in_groups(pid); room < tuning::enough_room_in_group)
        return Obstacle{fmt::format("its control group has room for only {:.0f} processes more "
                                    "(pids.max), and replicas count",
                                    std::max(room, 0.0)),
                        true};
    const auto wanted = number_in(status, "RssAnon");
    constexpr long kilobytes_in_megabyte = 1024;
    const auto on_machine = number_in(proc::read_proc_file("/proc/meminfo"), "MemAvailable");
    const auto available = static_cast<long>(std::min<double>(
        static_cast<double>(on_machine), proc::memory_left_in_groups(pid) / kilobytes_in_megabyte));
    if (wanted <= available) return {};
    return Obstacle{fmt::format("only {} MB of memory are available, and it has {} MB of its own",
                                available / kilobytes_in_megabyte, wanted / kilobytes_in_megabyte),
                    true};
}

std::optional<Confinement> confinement_of(pid_t pid, pid_t tid) {
    return confinement_in(proc::read_proc_file(fmt::format("/proc/{}/task/{}/status", pid, tid)));
}

std::optional<Confinement> confinement_in(std::string_view status) {
    if (status.empty()) return {};
    return Confinement{
        static_cast<int>(number_in(status, "Seccomp")),
        static_cast<int>(number_in(status, "Seccomp_filters")),
        proc::status_field(status, "x86_Thread_features").find("shstk") != std::string::npos};
}

bool shares_pid_namespace(pid_t pid) {
    return namespace_of(pid, "pid") == namespace_of(getpid(), "pid");
}

std::optional<pid_t> pid_in_our_namespace(pid_t number, pid_t neighbour) {
    const auto theirs = namespace_of(neighbour, "pid");
    const std::unique_ptr<DIR, int (*)(DIR*)> processes{opendir("/proc"), closedir};
    if (!processes || theirs.empty()) return {};
    while (const dirent* entry = readdir(processes.get())) {
        const pid_t candidate = std::atoi(entry->d_name);
        if (candidate <= 0) continue;
        const auto status = proc::read_proc_file(fmt::format("/proc/{}/status", candidate));
        if (last_word(proc::status_field(status, "NSpid")) == std::to_string(number) &&
            namespace_of(candidate, "pid") == theirs)
            return candidate;
    }
    return {};
}

}  // namespace shadowprof::inject
