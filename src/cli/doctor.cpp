// doctor: tries what shadowprof needs on this machine. Each attempt prints one line, which says how
// to repair what does not work.
#include <elfutils/libdwfl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/kept_files.h"
#include "base/output_file.h"
#include "cli/commands.h"
#include "decoder/decoder.h"
#include "model/utf8.h"
#include "proc/memory.h"
#include "ptrace/tracer.h"

namespace shadowprof::cli {

namespace {

enum class Verdict { fine, limited, broken };

struct Finding {
    Verdict verdict;
    std::string text;
};

std::string first_line(const std::string& path) {
    std::ifstream file{path};
    std::string line;
    std::getline(file, line);
    return line;
}

Finding kernel() {
    utsname name{};
    uname(&name);
    unsigned major = 0, minor = 0;
    std::sscanf(name.release, "%u.%u", &major, &minor);
    if (major > 5 || (major == 5 && minor >= 3))
        return {Verdict::fine, fmt::format("Linux {}", name.release)};
    return {Verdict::broken,
            fmt::format("Linux {} is too old: shadowprof needs 5.3 or newer", name.release)};
}

// The real test: everything that a profile needs, on a program that does nothing.
Finding tracing() {
    std::string problem;
    // Tracees belong to the thread that traces them and are released when it ends.
    std::thread{[&] {
        try {
            const auto tracer = ptrace::Tracer::launch({"true"});
            const auto deadline = Clock::now() + std::chrono::seconds{5};
            while (tracer->alive()) {
                const auto event = tracer->wait(deadline);
                if (!event) {
                    problem = "a traced program did not end within 5 s";
                    return;
                }
                if (event->kind == ptrace::EventKind::process_gone) return;
                if (event->kind == ptrace::EventKind::exec) {
                    const auto registers = event->thread->registers();
                    if (!registers ||
                        !proc::Memory{tracer->pid()}.read_as<std::uint64_t>(registers->rsp())) {
                        problem =
                            "process_vm_readv is refused: run the container with "
                            "--cap-add=SYS_PTRACE or a seccomp profile that allows it";
                        return;
                    }
                }
                tracer->pass_on(*event);
            }
        } catch (const std::exception& error) {
            problem = describe_error(error);
        }
    }}.join();
    if (problem.empty()) return {Verdict::fine, "programs can be started under trace (run)"};
    return {Verdict::broken, problem};
}

// The effective set, not the permitted one. A program with file capabilities has them without being
// root.
bool may_trace_anything() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[2]{};
    if (syscall(SYS_capget, &header, sets) != 0) return false;
    return sets[0].effective & (1u << CAP_SYS_PTRACE);
}

Finding ptrace_scope() {
    const auto scope = first_line("/proc/sys/kernel/yama/ptrace_scope");
    if (scope.empty())
        return {Verdict::fine, "this kernel has no Yama: the usual permissions apply"};
    if (scope == "0") return {Verdict::fine, "0: your own processes can be attached to"};
    if (scope == "3")
        return {Verdict::broken,
                "3: nothing may be traced until the next boot without kernel.yama.ptrace_scope=3"};
    if (may_trace_anything())
        return {Verdict::fine, fmt::format("{}: does not matter with CAP_SYS_PTRACE", scope)};
    return {
        scope == "2" ? Verdict::broken : Verdict::limited,
        fmt::format("{}: {}; to repair it: sudo sysctl kernel.yama.ptrace_scope=0", scope,
                    scope == "2" ? "only administrators may trace" : "run works, attach does not")};
}

Finding capabilities() {
    if (may_trace_anything())
        return {Verdict::fine, "CAP_SYS_PTRACE: processes of every user can be attached to"};
    return {Verdict::fine,
            "no CAP_SYS_PTRACE: only your own processes; for others run as root, or sudo setcap "
            "cap_sys_ptrace+ep $(command -v shadowprof)"};
}

Finding seccomp() {
    const int mode = prctl(PR_GET_SECCOMP);
    if (mode == 0) return {Verdict::fine, "there is no seccomp filter"};
    return {
        Verdict::limited,
        "a seccomp filter is in force (a container?); programs that run starts share it and "
        "work; if attach is refused: --cap-add=SYS_PTRACE or --security-opt seccomp=unconfined"};
}

Finding huge_pages() {
    const auto setting = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
    if (setting.find("[always]") == std::string::npos)
        return {Verdict::fine, fmt::format("transparent huge pages: {}",
                                           setting.empty() ? "not in this kernel" : setting)};
    return {Verdict::fine,
            fmt::format("transparent huge pages: {} (mode burst leaves them whole)", setting)};
}

Finding debug_information() {
    namespace fs = std::filesystem;
    std::error_code ignored;
    const bool separate = fs::is_directory("/usr/lib/debug/.build-id", ignored);
    return {separate ? Verdict::fine : Verdict::limited,
            separate
                ? "separate debug files are installed (/usr/lib/debug)"
                : "no separate debug files in /usr/lib/debug: system libraries show function "
                  "names but no source lines; to repair it: install the -dbg or -dbgsym packages "
                  "(libc6-dbg first), compile your own program with -g"};
}

Finding libraries() {
    const std::byte nop[] = {std::byte{0x90}};
    if (!decoder::decode(nop, Address{0}))
        return {Verdict::broken, "the instruction decoder (Zydis) does not work"};
    return {Verdict::fine, fmt::format("Zydis decodes, libdw {}", dwfl_version(nullptr))};
}

Finding cores() {
    const auto count = std::thread::hardware_concurrency();
    if (count > 1) return {Verdict::fine, fmt::format("{} cores", count)};
    return {Verdict::limited,
            "one core: profiles are computed on the core that the program runs on"};
}

Finding kept_files() {
    const auto state = state_of_kept_files();
    const auto folder = folder_of_kept_files();
    if (!state.why_not.empty())
        return {Verdict::limited,
                folder.empty()
                    ? "nothing is kept between runs: set XDG_CACHE_HOME or HOME"
                    : fmt::format("nothing is kept between runs in {}: {}", folder, state.why_not)};
    return {Verdict::fine, fmt::format("{} kB in {} files make later runs start faster; to empty "
                                       "it: rm -r {}",
                                       (state.bytes + 1023) / 1024, state.files, folder)};
}

int doctor() {
    const std::vector<std::pair<const char*, std::function<Finding()>>> checks{
        {"kernel", kernel},
        {"tracing", tracing},
        {"ptrace_scope", ptrace_scope},
        {"capabilities", capabilities},
        {"seccomp", seccomp},
        {"huge pages", huge_pages},
        {"debug information", debug_information},
        {"libraries", libraries},
        {"processors", cores},
        {"kept files", kept_files},
    };
    bool broken = false;
    for (const auto& [name, check] : checks) {
        const auto finding = check();
        const char* verdict = finding.verdict == Verdict::fine      ? "fine"
                              : finding.verdict == Verdict::limited ? "limited"
                                                                    : "BROKEN";
        write_to_stdout(
            fmt::format("{:<18} {:<8} {}\n", name, verdict, model::printable(finding.text)));
        broken |= finding.verdict == Verdict::broken;
    }
    return static_cast<int>(broken ? ExitStatus::error : ExitStatus::fine);
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
    auto* command = app.add_subcommand(
        "doctor", "Check what works on this machine and say how to repair what does not");
    command->callback([&action] { action = doctor; });
}

}  // namespace shadowprof::cli
