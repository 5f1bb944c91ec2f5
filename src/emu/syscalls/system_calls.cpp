#include "emu/syscalls/system_calls.h"

#include <linux/close_range.h>

#include <algorithm>
#include <iterator>

#include "emu/syscalls/replica_rules.h"

namespace shadowprof::emu {

Descriptor GuestQueries::descriptor(int) {
    return {std::make_shared<OpenFile>(), {}};
}
Descriptor GuestQueries::opened_descriptor(int fd) {
    return descriptor(fd);
}
bool GuestQueries::has_other_names(int) {
    return true;
}
std::optional<PathStatus> GuestQueries::status_of(int, const std::string&, bool) {
    return {};
}
std::optional<int> GuestQueries::access_to(int, const std::string&, int) {
    return {};
}
bool GuestQueries::is_made_up(std::uint64_t) {
    return true;
}
std::shared_ptr<FileContents> GuestQueries::contents_of(int, const std::string&) {
    return nullptr;
}
std::optional<std::uint64_t> GuestQueries::process_cpu_time() {
    return {};
}
std::optional<std::uint64_t> GuestQueries::thread_cpu_time() {
    return {};
}
std::optional<struct rusage> GuestQueries::usage(int) {
    return {};
}
std::optional<AddressRange> GuestQueries::scratch() const {
    return {};
}
bool GuestQueries::is_mapped(const FileId&, Mapped) {
    return false;
}

Descriptor& Descriptors::descriptor_at(int fd) {
    auto& descriptor = descriptors_[fd];
    if (!descriptor.file) {
        const bool was_closed = contain(closed_ranges_, fd);
        descriptor = fd < 0 || was_closed ? closed_descriptor() : queries_.descriptor(fd);
        if (contain(ranges_to_close_on_exec_, fd)) descriptor.closes_on_exec = true;
    }
    return descriptor;
}

bool Descriptors::contain(const Ranges& ranges, int fd) {
    const auto number = static_cast<unsigned>(fd);
    return std::any_of(ranges.begin(), ranges.end(), [&](const auto& range) {
        return range.first <= number && number <= range.second;
    });
}

Descriptor Descriptors::closed_descriptor() {
    auto file = std::make_shared<OpenFile>();
    file->kind = OpenFile::Kind::closed;
    return {std::move(file), false};
}

std::optional<int> Descriptors::lowest_free(int from) {
    for (;; ++from) {
        const auto& file = at(from);
        if (file.kind == OpenFile::Kind::closed) return from;
        if (!file.is_certain()) return {};
    }
}

void Descriptors::close(int fd) {
    descriptors_[fd] = closed_descriptor();
}

void Descriptors::close_range(unsigned first, unsigned last) {
    for (auto& [fd, descriptor] : descriptors_) {
        const auto number = static_cast<unsigned>(fd);
        if (first <= number && number <= last) descriptor = closed_descriptor();
    }
    closed_ranges_.emplace_back(first, last);
}

void Descriptors::close_range_on_exec(unsigned first, unsigned last) {
    for (auto& [fd, descriptor] : descriptors_) {
        const auto number = static_cast<unsigned>(fd);
        if (first <= number && number <= last) descriptor.closes_on_exec = true;
    }
    ranges_to_close_on_exec_.emplace_back(first, last);
}

void Descriptors::duplicate(int from, int to, std::optional<bool> closes_on_exec) {
    descriptors_[to] = {shared_at(from), closes_on_exec};
}

void Descriptors::opened(int fd, std::optional<bool> closes_on_exec) {
    auto& descriptor = descriptors_[fd] = queries_.opened_descriptor(fd);
    descriptor.closes_on_exec = closes_on_exec;
    descriptor.file->opened_here = true;
    descriptor.file->is_held = true;
    if (flags_to_open_with_) descriptor.file->status_flags = flags_to_open_with_;
}

namespace {

using namespace rules;
using enum SystemCallClass;

struct Row {
    std::int32_t number;
    std::string_view name;
    SystemCallClass kind;
    BurstRule in_burst;
    ReplicaRule in_replica;
};

// The rules are in system_call_answers.h and system_call_replica_rules.h. Numbers in angle brackets
// say which argument holds what the rule is about: the path and its directory, the process …
// clang-format off
constexpr Row rows[] = {
    {  0, "read",                    input,         ends,                             reads},
    {  1, "write",                   output,        accepts_write,                    accepts_write},
    {  2, "open",                    miscellaneous, ends,                             opens},
    {  3, "close",                   miscellaneous, closes_if_known,                  closes},
    {  4, "stat",                    benign,        ends,                             tells_status},
    {  5, "fstat",                   benign,        tells_file_status,                tells_file_status},
    {  6, "lstat",                   benign,        ends,                             tells_status},
    {  7, "poll",                    input,         sleeps_no_time_if_no_descriptors, sleeps_no_time_if_no_descriptors},
    {  8, "lseek",                   miscellaneous, moves_own_offset,                 moves_own_offset},
    {  9, "mmap",                    miscellaneous, ends,                             maps},
    { 10, "mprotect",                miscellaneous, ends,                             executes.when(leaves_sharing_alone)},
    { 11, "munmap",                  benign,        ends,                             executes.when(leaves_engine_alone)},
    { 12, "brk",                     benign,        ends,                             executes_if_room},
    { 13, "rt_sigaction",            benign,        ends,                             executes.when(asks_for_no_lost_action)},
    { 14, "rt_sigprocmask",          benign,        keeps_signal_mask,                keeps_signal_mask},
    { 15, "rt_sigreturn",            unsafe,        ends,                             ends},
    { 16, "ioctl",                   unsafe,        ioctl_if_known,                   controls_device},
    { 17, "pread64",                 input,         ends,                             preads},
    { 18, "pwrite64",                output,        accepts_pwrite,                   accepts_pwrite},
    { 19, "readv",                   input,         ends,                             readvs},
    { 20, "writev",                  output,        accepts_writev,                   accepts_writev},
    { 21, "access",                  benign,        ends,                             looks_whether_allowed<0>},
    { 22, "pipe",                    unsafe,        ends,                             ends},
    { 23, "select",                  input,         select_sleeps_no_time,            select_sleeps_no_time},
    { 24, "sched_yield",             benign,        succeeds,                         succeeds},
    { 25, "mremap",                  miscellaneous, ends,                             executes_if_room.when(moves_private_memory)},
    { 26, "msync",                   output,        ends,                             synchronises_memory},
    { 27, "mincore",                 benign,        ends,                             executes},
    { 28, "madvise",                 miscellaneous, takes_hints,                      advises},
    { 29, "shmget",                  unsafe,        ends,                             ends},
    { 30, "shmat",                   unsafe,        ends,                             ends},
    { 31, "shmctl",                  unsafe,        ends,                             ends},
    { 32, "dup",                     miscellaneous, ends,                             duplicates},
    { 33, "dup2",                    miscellaneous, ends,                             duplicates_onto},
    { 34, "pause",                   input,         ends,                             ends},
    { 35, "nanosleep",               benign,        sleeps_no_time,                   sleeps_no_time},
    { 36, "getitimer",               unsafe,        ends,                             ends},
    { 37, "alarm",                   output,        ends,                             ends},
    { 38, "setitimer",               output,        succeeds_unless_asked<2>,         succeeds_unless_asked<2>},
    { 39, "getpid",                  benign,        tells_pid,                        tells_pid},
    { 40, "sendfile",                output,        ends,                             sends_file},
    { 41, "socket",                  unsafe,        ends,                             ends},
    { 42, "connect",                 unsafe,        ends,                             ends},
    { 43, "accept",                  input,         ends,                             ends},
    { 44, "sendto",                  output,        accepts_send,                     accepts_send},
    { 45, "recvfrom",                input,         ends,                             ends},
    { 46, "sendmsg",                 output,        accepts_sendmsg,                  accepts_sendmsg},
    { 47, "recvmsg",                 input,         ends,                             ends},
    { 48, "shutdown",                output,        descriptor_call_succeeds,         descriptor_call_succeeds},
    { 49, "bind",                    unsafe,        ends,                             ends},
    { 50, "listen",                  unsafe,        ends,                             ends},
    { 51, "getsockname",             unsafe,        ends,                             ends},
    { 52, "getpeername",             unsafe,        ends,                             ends},
    { 53, "socketpair",              unsafe,        ends,                             ends},
    { 54, "setsockopt",              output,        descriptor_call_succeeds,         descriptor_call_succeeds},
    { 55, "getsockopt",              unsafe,        ends,                             ends},
    { 56, "clone",                   unsafe,        ends,                             ends},
    { 57, "fork",                    unsafe,        ends,                             ends},
    { 58, "vfork",                   unsafe,        ends,                             ends},
    { 59, "execve",                  unsafe,        ends,                             ends},
    { 60, "exit",                    unsafe,        ends,                             ends},
    { 61, "wait4",                   input,         ends,                             ends},
    { 62, "kill",                    unsafe,        probe_succeeds,                   executes.when(is_probe<1>)},
    { 63, "uname",                   benign,        ends,                             executes},
    { 64, "semget",                  unsafe,        ends,                             ends},
    { 65, "semop",                   unsafe,        ends,                             ends},
    { 66, "semctl",                  unsafe,        ends,                             ends},
    { 67, "shmdt",                   miscellaneous, ends,                             executes},
    { 68, "msgget",                  unsafe,        ends,                             ends},
    { 69, "msgsnd",                  output,        succeeds,                         succeeds},
    { 70, "msgrcv",                  input,         ends,                             ends},
    { 71, "msgctl",                  unsafe,        ends,                             ends},
    { 72, "fcntl",                   miscellaneous, fcntl_if_known,                   controls_descriptor},
    { 73, "flock",                   output,        descriptor_call_succeeds,         locks_file},
    { 74, "fsync",                   output,        file_call_succeeds,               file_call_succeeds},
    { 75, "fdatasync",               output,        file_call_succeeds,               file_call_succeeds},
    { 76, "truncate",                output,        ends,                             changes_file<0>},
    { 77, "ftruncate",               output,        accepts_resize,                   accepts_resize},
    { 78, "getdents",                input,         ends,                             executes.when(is_own_directory)},
    { 79, "getcwd",                  benign,        ends,                             executes},
    { 80, "chdir",                   miscellaneous, ends,                             looks_up<0>},
    { 81, "fchdir",                  miscellaneous, ends,                             executes.when(is_directory)},
    { 82, "rename",                  output,        ends,                             gives_name<0, no_directory, 1, no_directory>},
    { 83, "mkdir",                   output,        ends,                             creates<0>},
    { 84, "rmdir",                   output,        ends,                             removes<0>},
    { 85, "creat",                   miscellaneous, ends,                             creates_file},
    { 86, "link",                    output,        ends,                             gives_name<0, no_directory, 1, no_directory>},
    { 87, "unlink",                  output,        ends,                             removes<0>},
    { 88, "symlink",                 output,        ends,                             creates<1>},
    { 89, "readlink",                benign,        ends,                             looks_up<0>},
    { 90, "chmod",                   output,        ends,                             changes_file<0>},
    { 91, "fchmod",                  output,        file_change_succeeds,             changes_open_file},
    { 92, "chown",                   output,        ends,                             changes_file<0>},
    { 93, "fchown",                  output,        file_change_succeeds,             changes_open_file},
    { 94, "lchown",                  output,        ends,                             changes_file<0>},
    { 95, "umask",                   benign,        ends,                             executes},
    { 96, "gettimeofday",            benign,        tells_time_of_day,                tells_time_of_day},
    { 97, "getrlimit",               benign,        ends,                             executes},
    { 98, "getrusage",               benign,        ends,                             tells_usage},
    { 99, "sysinfo",                 benign,        ends,                             executes},
    {100, "times",                   benign,        ends,                             tells_times},
    {101, "ptrace",                  unsafe,        ends,                             ends},
    {102, "getuid",                  benign,        tells_uid,                        executes},
    {103, "syslog",                  unsafe,        ends,                             ends},
    {104, "getgid",                  benign,        tells_gid,                        executes},
    {105, "setuid",                  unsafe,        ends,                             ends},
    {106, "setgid",                  unsafe,        ends,                             ends},
    {107, "geteuid",                 benign,        tells_effective_uid,              executes},
    {108, "getegid",                 benign,        tells_effective_gid,              executes},
    {109, "setpgid",                 unsafe,        ends,                             ends},
    {110, "getppid",                 benign,        tells_parent,                     tells_parent},
    {111, "getpgrp",                 benign,        tells_group,                      tells_group},
    {112, "setsid",                  unsafe,        ends,                             ends},
    {113, "setreuid",                unsafe,        ends,                             ends},
    {114, "setregid",                unsafe,        ends,                             ends},
    {115, "getgroups",               benign,        ends,                             executes},
    {116, "setgroups",               unsafe,        ends,                             ends},
    {117, "setresuid",               unsafe,        ends,                             ends},
    {118, "getresuid",               benign,        tells_three_uids,                 executes},
    {119, "setresgid",               unsafe,        ends,                             ends},
    {120, "getresgid",               benign,        tells_three_gids,                 executes},
    {121, "getpgid",                 benign,        tells_group_of,                   asks_for_group},
    {122, "setfsuid",                unsafe,        ends,                             ends},
    {123, "setfsgid",                unsafe,        ends,                             ends},
    {124, "getsid",                  benign,        tells_session_of,                 asks_for_session},
    {125, "capget",                  benign,        ends,                             executes},
    {126, "capset",                  unsafe,        ends,                             ends},
    {127, "rt_sigpending",           benign,        tells_pending_signals,            tells_pending_signals},
    {128, "rt_sigtimedwait",         input,         ends,                             ends},
    {129, "rt_sigqueueinfo",         unsafe,        ends,                             ends},
    {130, "rt_sigsuspend",           input,         ends,                             ends},
    {131, "sigaltstack",             benign,        ends,                             executes.when(asks_for_no_lost_stack)},
    {132, "utime",                   output,        ends,                             changes_file<0>},
    {133, "mknod",                   output,        ends,                             creates<0>},
    {134, "uselib",                  unsafe,        is_not_implemented,               is_not_implemented},
    {135, "personality",             unsafe,        ends,                             executes.when(is_query)},
    {136, "ustat",                   benign,        ends,                             executes},
    {137, "statfs",                  benign,        ends,                             looks_up<0>},
    {138, "fstatfs",                 benign,        ends,                             executes.when(is_own_and_unchanged)},
    {139, "sysfs",                   benign,        ends,                             executes},
    {140, "getpriority",             benign,        ends,                             asks_about_target_process<PRIO_PROCESS>},
    {141, "setpriority",             output,        ends,                             sets_process_priority<PRIO_PROCESS>},
    {142, "sched_setparam",          output,        ends,                             schedules<0>},
    {143, "sched_getparam",          benign,        ends,                             asks_about_target<0>},
    {144, "sched_setscheduler",      output,        ends,                             schedules<0>},
    {145, "sched_getscheduler",      benign,        ends,                             asks_about_target<0>},
    {146, "sched_get_priority_max",  benign,        ends,                             executes},
    {147, "sched_get_priority_min",  benign,        ends,                             executes},
    {148, "sched_rr_get_interval",   benign,        ends,                             asks_about_target<0>},
    {149, "mlock",                   output,        ends,                             succeeds},
    {150, "munlock",                 output,        succeeds,                         succeeds},
    {151, "mlockall",                output,        ends,                             succeeds},
    {152, "munlockall",              output,        succeeds,                         succeeds},
    {153, "vhangup",                 unsafe,        ends,                             ends},
    {154, "modify_ldt",              unsafe,        ends,                             ends},
    {155, "pivot_root",              unsafe,        ends,                             ends},
    {156, "_sysctl",                 unsafe,        ends,                             ends},
    {157, "prctl",                   miscellaneous, names_thread,                     executes.when(is_harmless_option)},
    {158, "arch_prctl",              miscellaneous, ends,                             executes.when(leaves_gs_alone)},
    {159, "adjtimex",                unsafe,        ends,                             ends},
    {160, "setrlimit",               miscellaneous, ends,                             executes},
    {161, "chroot",                  unsafe,        ends,                             ends},
    {162, "sync",                    output,        succeeds,                         succeeds},
    {163, "acct",                    unsafe,        ends,                             ends},
    {164, "settimeofday",            unsafe,        ends,                             ends},
    {165, "mount",                   unsafe,        ends,                             ends},
    {166, "umount2",                 unsafe,        ends,                             ends},
    {167, "swapon",                  unsafe,        ends,                             ends},
    {168, "swapoff",                 unsafe,        ends,                             ends},
    {169, "reboot",                  unsafe,        ends,                             ends},
    {170, "sethostname",             unsafe,        ends,                             ends},
    {171, "setdomainname",           unsafe,        ends,                             ends},
    {172, "iopl",                    unsafe,        ends,                             ends},
    {173, "ioperm",                  unsafe,        ends,                             ends},
    {174, "create_module",           unsafe,        is_not_implemented,               is_not_implemented},
    {175, "init_module",             unsafe,        ends,                             ends},
    {176, "delete_module",           unsafe,        ends,                             ends},
    {177, "get_kernel_syms",         unsafe,        is_not_implemented,               is_not_implemented},
    {178, "query_module",            unsafe,        is_not_implemented,               is_not_implemented},
    {179, "quotactl",                unsafe,        ends,                             ends},
    {180, "nfsservctl",              unsafe,        is_not_implemented,               is_not_implemented},
    {181, "getpmsg",                 unsafe,        is_not_implemented,               is_not_implemented},
    {182, "putpmsg",                 unsafe,        is_not_implemented,               is_not_implemented},
    {183, "afs_syscall",             unsafe,        is_not_implemented,               is_not_implemented},
    {184, "tuxcall",                 unsafe,        is_not_implemented,               is_not_implemented},
    {185, "security",                unsafe,        is_not_implemented,               is_not_implemented},
    {186, "gettid",                  benign,        tells_tid,                        tells_tid},
    {187, "readahead",               output,        file_call_succeeds,               file_call_succeeds},
    {188, "setxattr",                output,        ends,                             changes_file<0>},
    {189, "lsetxattr",               output,        ends,                             changes_file<0>},
    {190, "fsetxattr",               output,        file_change_succeeds,             changes_open_file},
    {191, "getxattr",                benign,        ends,                             looks_at<0>},
    {192, "lgetxattr",               benign,        ends,                             looks_at<0>},
    {193, "fgetxattr",               benign,        ends,                             executes.when(is_own_and_unchanged)},
    {194, "listxattr",               benign,        ends,                             looks_at<0>},
    {195, "llistxattr",              benign,        ends,                             looks_at<0>},
    {196, "flistxattr",              benign,        ends,                             executes.when(is_own_and_unchanged)},
    {197, "removexattr",             output,        ends,                             changes_file<0>},
    {198, "lremovexattr",            output,        ends,                             changes_file<0>},
    {199, "fremovexattr",            output,        file_change_succeeds,             changes_open_file},
    {200, "tkill",                   unsafe,        thread_probe_succeeds,            thread_probe_succeeds},
    {201, "time",                    benign,        tells_seconds,                    tells_seconds},
    {202, "futex",                   miscellaneous, futex_without_others,             futex_without_others},
    {203, "sched_setaffinity",       output,        ends,                             schedules<0>},
    {204, "sched_getaffinity",       benign,        ends,                             asks_about_target<0>},
    {205, "set_thread_area",         unsafe,        is_not_implemented,               is_not_implemented},
    {206, "io_setup",                unsafe,        ends,                             ends},
    {207, "io_destroy",              unsafe,        ends,                             ends},
    {208, "io_getevents",            input,         ends,                             ends},
    {209, "io_submit",               unsafe,        ends,                             ends},
    {210, "io_cancel",               unsafe,        ends,                             ends},
    {211, "get_thread_area",         unsafe,        is_not_implemented,               is_not_implemented},
    {212, "lookup_dcookie",          unsafe,        ends,                             ends},
    {213, "epoll_create",            unsafe,        ends,                             ends},
    {214, "epoll_ctl_old",           unsafe,        is_not_implemented,               is_not_implemented},
    {215, "epoll_wait_old",          unsafe,        is_not_implemented,               is_not_implemented},
    {216, "remap_file_pages",        unsafe,        ends,                             ends},
    {217, "getdents64",              input,         ends,                             executes.when(is_own_directory)},
    {218, "set_tid_address",         benign,        tells_tid,                        tells_tid},
    {219, "restart_syscall",         unsafe,        ends,                             ends},
    {220, "semtimedop",              unsafe,        ends,                             ends},
    {221, "fadvise64",               output,        file_call_succeeds,               file_call_succeeds},
    {222, "timer_create",            unsafe,        ends,                             ends},
    {223, "timer_settime",           output,        succeeds_unless_asked<3>,         succeeds_unless_asked<3>},
    {224, "timer_gettime",           unsafe,        ends,                             ends},
    {225, "timer_getoverrun",        unsafe,        ends,                             ends},
    {226, "timer_delete",            output,        succeeds,                         succeeds},
    {227, "clock_settime",           unsafe,        ends,                             ends},
    {228, "clock_gettime",           benign,        tells_clock,                      reads_clock},
    {229, "clock_getres",            benign,        tells_clock_resolution,           executes.when(is_clock_for_all)},
    {230, "clock_nanosleep",         benign,        sleeps_no_time_if_relative,       sleeps_no_time_if_relative},
    {231, "exit_group",              unsafe,        ends,                             ends},
    {232, "epoll_wait",              input,         ends,                             ends},
    {233, "epoll_ctl",               output,        accepts_watch,                    watches},
    {234, "tgkill",                  unsafe,        thread_probe_succeeds,            thread_probe_succeeds},
    {235, "utimes",                  output,        ends,                             changes_file<0>},
    {236, "vserver",                 unsafe,        is_not_implemented,               is_not_implemented},
    {237, "mbind",                   miscellaneous, ends,                             executes.when(moves_no_pages)},
    {238, "set_mempolicy",           benign,        ends,                             executes},
    {239, "get_mempolicy",           benign,        ends,                             executes},
    {240, "mq_open",                 unsafe,        ends,                             ends},
    {241, "mq_unlink",               unsafe,        ends,                             ends},
    {242, "mq_timedsend",            output,        descriptor_call_succeeds,         descriptor_call_succeeds},
    {243, "mq_timedreceive",         input,         ends,                             ends},
    {244, "mq_notify",               unsafe,        ends,                             ends},
    {245, "mq_getsetattr",           unsafe,        ends,                             ends},
    {246, "kexec_load",              unsafe,        ends,                             ends},
    {247, "waitid",                  input,         ends,                             ends},
    {248, "add_key",                 unsafe,        ends,                             ends},
    {249, "request_key",             unsafe,        ends,                             ends},
    {250, "keyctl",                  unsafe,        ends,                             ends},
    {251, "ioprio_set",              output,        ends,                             sets_process_priority<1>},
    {252, "ioprio_get",              benign,        ends,                             asks_about_target_process<1>},
    {253, "inotify_init",            unsafe,        ends,                             ends},
    {254, "inotify_add_watch",       unsafe,        ends,                             ends},
    {255, "inotify_rm_watch",        unsafe,        ends,                             ends},
    {256, "migrate_pages",           unsafe,        ends,                             ends},
    {257, "openat",                  miscellaneous, ends,                             opens_at},
    {258, "mkdirat",                 output,        ends,                             creates<1, 0>},
    {259, "mknodat",                 output,        ends,                             creates<1, 0>},
    {260, "fchownat",                output,        ends,                             changes_file<1, 0>},
    {261, "futimesat",               output,        ends,                             touches},
    {262, "newfstatat",              benign,        tells_file_status_at,             tells_status_at},
    {263, "unlinkat",                output,        ends,                             removes<1, 0>},
    {264, "renameat",                output,        ends,                             gives_name<1, 0, 3, 2>},
    {265, "linkat",                  output,        ends,                             gives_name<1, 0, 3, 2>},
    {266, "symlinkat",               output,        ends,                             creates<2, 1>},
    {267, "readlinkat",              benign,        ends,                             looks_up<1, 0>},
    {268, "fchmodat",                output,        ends,                             changes_file<1, 0>},
    {269, "faccessat",               benign,        ends,                             looks_whether_allowed<1, 0>},
    {270, "pselect6",                input,         pselect_sleeps_no_time,           pselect_sleeps_no_time},
    {271, "ppoll",                   input,         ppoll_sleeps_no_time,             ppoll_sleeps_no_time},
    {272, "unshare",                 unsafe,        ends,                             ends},
    {273, "set_robust_list",         benign,        succeeds,                         succeeds},
    {274, "get_robust_list",         unsafe,        ends,                             ends},
    {275, "splice",                  unsafe,        ends,                             ends},
    {276, "tee",                     unsafe,        ends,                             ends},
    {277, "sync_file_range",         output,        file_call_succeeds,               file_call_succeeds},
    {278, "vmsplice",                unsafe,        ends,                             ends},
    {279, "move_pages",              unsafe,        ends,                             ends},
    {280, "utimensat",               output,        ends,                             touches},
    {281, "epoll_pwait",             input,         ends,                             ends},
    {282, "signalfd",                unsafe,        ends,                             ends},
    {283, "timerfd_create",          unsafe,        ends,                             ends},
    {284, "eventfd",                 unsafe,        ends,                             ends},
    {285, "fallocate",               output,        accepts_allocation,               accepts_allocation},
    {286, "timerfd_settime",         output,        succeeds_unless_asked<3>,         succeeds_unless_asked<3>},
    {287, "timerfd_gettime",         unsafe,        ends,                             ends},
    {288, "accept4",                 input,         ends,                             ends},
    {289, "signalfd4",               unsafe,        ends,                             ends},
    {290, "eventfd2",                unsafe,        ends,                             ends},
    {291, "epoll_create1",           unsafe,        ends,                             ends},
    {292, "dup3",                    miscellaneous, ends,                             duplicates_onto},
    {293, "pipe2",                   unsafe,        ends,                             ends},
    {294, "inotify_init1",           unsafe,        ends,                             ends},
    {295, "preadv",                  input,         ends,                             preadvs},
    {296, "pwritev",                 output,        accepts_pwritev,                  accepts_pwritev},
    {297, "rt_tgsigqueueinfo",       unsafe,        ends,                             ends},
    {298, "perf_event_open",         unsafe,        ends,                             ends},
    {299, "recvmmsg",                input,         ends,                             ends},
    {300, "fanotify_init",           unsafe,        ends,                             ends},
    {301, "fanotify_mark",           unsafe,        ends,                             ends},
    {302, "prlimit64",               miscellaneous, ends,                             limits_resources},
    {303, "name_to_handle_at",       benign,        ends,                             looks_up<1, 0>},
    {304, "open_by_handle_at",       unsafe,        ends,                             ends},
    {305, "clock_adjtime",           unsafe,        ends,                             ends},
    {306, "syncfs",                  output,        descriptor_call_succeeds,         descriptor_call_succeeds},
    {307, "sendmmsg",                output,        accepts_sendmmsg,                 accepts_sendmmsg},
    {308, "setns",                   unsafe,        ends,                             ends},
    {309, "getcpu",                  benign,        tells_processor,                  executes},
    {310, "process_vm_readv",        unsafe,        ends,                             ends},
    {311, "process_vm_writev",       unsafe,        ends,                             ends},
    {312, "kcmp",                    unsafe,        ends,                             ends},
    {313, "finit_module",            unsafe,        ends,                             ends},
    {314, "sched_setattr",           output,        ends,                             schedules<0>},
    {315, "sched_getattr",           benign,        ends,                             asks_about_target<0>},
    {316, "renameat2",               output,        ends,                             gives_name<1, 0, 3, 2>},
    {317, "seccomp",                 unsafe,        ends,                             ends},
    {318, "getrandom",               benign,        gives_random_bytes,               gives_random_bytes},
    {319, "memfd_create",            unsafe,        ends,                             ends},
    {320, "kexec_file_load",         unsafe,        ends,                             ends},
    {321, "bpf",                     unsafe,        ends,                             ends},
    {322, "execveat",                unsafe,        ends,                             ends},
    {323, "userfaultfd",             unsafe,        ends,                             ends},
    {324, "membarrier",              benign,        barrier_succeeds,                 passes_barrier},
    {325, "mlock2",                  output,        ends,                             succeeds},
    {326, "copy_file_range",         unsafe,        ends,                             ends},
    {327, "preadv2",                 input,         ends,                             preadv2s},
    {328, "pwritev2",                output,        accepts_pwritev2,                 accepts_pwritev2},
    {329, "pkey_mprotect",           miscellaneous, ends,                             executes.when(leaves_sharing_alone)},
    {330, "pkey_alloc",              benign,        ends,                             executes},
    {331, "pkey_free",               benign,        ends,                             executes},
    {332, "statx",                   benign,        ends,                             tells_extended_status},
    {333, "io_pgetevents",           input,         ends,                             ends},
    {334, "rseq",                    benign,        ends,                             ends},
    {335, "uretprobe",               unsafe,        ends,                             ends},
    {336, "uprobe",                  unsafe,        ends,                             ends},
    {424, "pidfd_send_signal",       unsafe,        ends,                             ends},
    {425, "io_uring_setup",          unsafe,        ends,                             ends},
    {426, "io_uring_enter",          unsafe,        ends,                             ends},
    {427, "io_uring_register",       unsafe,        ends,                             ends},
    {428, "open_tree",               unsafe,        ends,                             ends},
    {429, "move_mount",              unsafe,        ends,                             ends},
    {430, "fsopen",                  unsafe,        ends,                             ends},
    {431, "fsconfig",                unsafe,        ends,                             ends},
    {432, "fsmount",                 unsafe,        ends,                             ends},
    {433, "fspick",                  unsafe,        ends,                             ends},
    {434, "pidfd_open",              unsafe,        ends,                             ends},
    {435, "clone3",                  unsafe,        ends,                             ends},
    {436, "close_range",             miscellaneous, ends,                             executes},
    {437, "openat2",                 miscellaneous, ends,                             opens_how},
    {438, "pidfd_getfd",             unsafe,        ends,                             ends},
    {439, "faccessat2",              benign,        ends,                             looks_whether_allowed<1, 0>},
    {440, "process_madvise",         unsafe,        ends,                             ends},
    {441, "epoll_pwait2",            input,         ends,                             ends},
    {442, "mount_setattr",           unsafe,        ends,                             ends},
    {443, "quotactl_fd",             unsafe,        ends,                             ends},
    {444, "landlock_create_ruleset", unsafe,        ends,                             ends},
    {445, "landlock_add_rule",       unsafe,        ends,                             ends},
    {446, "landlock_restrict_self",  unsafe,        ends,                             ends},
    {447, "memfd_secret",            unsafe,        ends,                             ends},
    {448, "process_mrelease",        unsafe,        ends,                             ends},
    {449, "futex_waitv",             input,         ends,                             ends},
    {450, "set_mempolicy_home_node", benign,        ends,                             executes.when(concerns_no_shared_memory)},
    {451, "cachestat",               benign,        ends,                             executes.when(is_own_and_unchanged)},
    {452, "fchmodat2",               output,        ends,                             changes_file<1, 0>},
    {453, "map_shadow_stack",        unsafe,        ends,                             ends},
    {454, "futex_wake",              miscellaneous, succeeds,                         succeeds},
    {455, "futex_wait",              miscellaneous, waits_only_in_vain,               waits_only_in_vain},
    {456, "futex_requeue",           miscellaneous, ends,                             ends},
    {457, "statmount",               benign,        ends,                             executes},
    {458, "listmount",               benign,        ends,                             executes},
    {459, "lsm_get_self_attr",       benign,        ends,                             executes},
    {460, "lsm_set_self_attr",       unsafe,        ends,                             ends},
    {461, "lsm_list_modules",        benign,        ends,                             executes},
    {462, "mseal",                   miscellaneous, ends,                             executes.when(leaves_engine_alone)},
    {463, "setxattrat",              output,        ends,                             changes_file<1, 0>},
    {464, "getxattrat",              benign,        ends,                             looks_at<1, 0>},
    {465, "listxattrat",             benign,        ends,                             looks_at<1, 0>},
    {466, "removexattrat",           output,        ends,                             changes_file<1, 0>},
    {467, "open_tree_attr",          unsafe,        ends,                             ends},
    {468, "file_getattr",            benign,        ends,                             looks_at<1, 0>},
    {469, "file_setattr",            output,        ends,                             changes_file<1, 0>},
};
// clang-format on

constexpr bool by_number(const Row& a, const Row& b) {
    return a.number < b.number;
}
static_assert(std::is_sorted(std::begin(rows), std::end(rows), by_number));

const Row* find_row(std::int32_t number) {
    const auto row = std::lower_bound(std::begin(rows), std::end(rows), number,
                                      [](const Row& r, std::int32_t n) { return r.number < n; });
    return row != std::end(rows) && row->number == number ? row : nullptr;
}

std::string words(const ReplicaRule& rule) {
    std::string text = rule.text;
    if (rule.proviso != nullptr) {
        text += std::string(", if ") + rule.proviso->text + "; otherwise ends";
    }
    return text;
}

}  // namespace

std::string_view to_string(SystemCallClass kind) {
    switch (kind) {
        case benign:
            return "benign";
        case output:
            return "output";
        case input:
            return "input";
        case miscellaneous:
            return "miscellaneous";
        case unsafe:
            return "unsafe";
    }
    return "";
}

std::string system_call_end_reason(std::int32_t number) {
    if (const auto* row = find_row(number)) return "system call " + std::string(row->name);
    return "system call #" + std::to_string(number);
}

std::optional<Answer> answer_in_burst(const SystemCall& call, GuestFacts& facts,
                                      GuestMemory& memory) {
    const auto* row = find_row(call.number);
    if (row == nullptr) return {};
    Request request{call, row->name, facts, memory};
    return row->in_burst.answer(request);
}

ReplicaAction decide_in_replica(const SystemCall& call, GuestFacts& facts, GuestMemory& memory) {
    const auto* row = find_row(call.number);
    if (row == nullptr) return End{system_call_end_reason(call.number)};
    Request request{call, row->name, facts, memory};
    const auto& rule = row->in_replica;
    if (rule.proviso != nullptr && !rule.proviso->holds(request)) return request.end();
    const auto action =
        rule.answer != nullptr ? or_end(rule.answer(request), request) : rule.decide(request);
    // A burst may guess: its thread does everything for real.
    if (request.met_unknown_file) return request.end_because("on a descriptor that is not known");
    return action;
}

namespace {

// Of the descriptor that it makes, if it says so in its registers. The real one cannot be asked: it
// was moved to another number since.
std::optional<bool> asks_for_cloexec(const SystemCall& call) {
    const auto is_in = [&](std::size_t flags) { return (call.arguments[flags] & O_CLOEXEC) != 0; };
    switch (call.number) {
        case SYS_open:
            return is_in(1);
        case SYS_openat:
        case SYS_dup3:
            return is_in(2);
        case SYS_openat2:
            return {};
        case SYS_fcntl:
            return static_cast<int>(call.arguments[1]) == F_DUPFD_CLOEXEC;
        default:
            return false;
    }
}

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

// Something else is mapped there now, or nothing.
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

    const auto new_fd = static_cast<int>(result);
    switch (call.number) {
        case SYS_open:
        case SYS_openat:
        case SYS_openat2:
            descriptors.opened(new_fd, asks_for_cloexec(call));
            break;
        case SYS_close_range:
            if ((arguments[2] & CLOSE_RANGE_CLOEXEC) == 0) {
                descriptors.close_range(static_cast<unsigned>(arguments[0]),
                                        static_cast<unsigned>(arguments[1]));
            } else {
                descriptors.close_range_on_exec(static_cast<unsigned>(arguments[0]),
                                                static_cast<unsigned>(arguments[1]));
            }
            break;
        case SYS_dup:
        case SYS_dup2:
        case SYS_dup3:
        case SYS_fcntl:
            if (descriptors.at(fd).is_held)
                descriptors.duplicate(fd, new_fd, asks_for_cloexec(call));
            break;
        case SYS_mmap:
            forget_sharing(facts, {static_cast<std::uint64_t>(result)}, arguments[1]);
            if ((arguments[3] & MAP_ANONYMOUS) == 0) {
                facts.mapped_here.insert(descriptors.at(static_cast<int>(arguments[4])).id);
            }
            // Private in truth, and not to become writable: a file opened for reading would not.
            if ((arguments[3] & MAP_ANONYMOUS) == 0 && (arguments[3] & MAP_TYPE) != MAP_PRIVATE) {
                const Address begin{static_cast<std::uint64_t>(result)};
                facts.shared_mappings.push_back({begin, begin + arguments[1]});
            }
            break;
        case SYS_munmap:
            forget_sharing(facts, {arguments[0]}, arguments[1]);
            break;
        case SYS_rt_sigaction: {
            // It may be caught from now on.
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

std::vector<SystemCallTreatment> system_call_treatments() {
    std::vector<SystemCallTreatment> treatments;
    for (const auto& row : rows) {
        treatments.push_back(
            {row.number, row.name, row.kind, row.in_burst.text, words(row.in_replica)});
    }
    return treatments;
}

}  // namespace shadowprof::emu
