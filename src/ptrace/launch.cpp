// Starting a program so that it cannot distinguish that from being started by the shell.
//
// The child is forked by a thread of its own (parent_thread.h), waits until it is seized, puts back
// the signals that shadowprof was started with and executes the program. Everything else that the
// program inherits (files, directory, process group, limits) is what we inherited: all our own
// files are closed on exec. The program outlives us if we die.
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "ptrace/event_reader.h"
#include "ptrace/inherited_signals.h"
#include "ptrace/parent_thread.h"
#include "ptrace/seize.h"
#include "ptrace/system.h"
#include "ptrace/traced_threads.h"
#include "ptrace/tracer.h"
#include "ptrace/tracing_thread.h"
#include "ptrace/wait_timer.h"

namespace shadowprof::ptrace {
namespace {

class Pipe {
  public:
    Pipe() {
        if (pipe2(ends_.data(), O_CLOEXEC) != 0)
            throw UserError(fmt::format("cannot start a program: {}", std::strerror(errno)),
                            ExitStatus::profiler_failed);
    }
    ~Pipe() {
        for (const int end : ends_) close(end);
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;

    int read_end() const { return ends_[0]; }
    int write_end() const { return ends_[1]; }

  private:
    std::array<int, 2> ends_{-1, -1};
};

// Where execvp(3) would find the program; empty if nowhere.
std::string find_program(const std::string& name) {
    if (name.find('/') != std::string::npos) return name;
    const char* variable = std::getenv("PATH");
    const std::string path = variable ? variable : "/bin:/usr/bin";
    for (std::size_t begin = 0; begin <= path.size();) {
        const auto end = std::min(path.find(':', begin), path.size());
        const auto directory = path.substr(begin, end - begin);
        const auto candidate = (directory.empty() ? "." : directory) + "/" + name;
        struct stat file {};
        if (stat(candidate.c_str(), &file) == 0 && S_ISREG(file.st_mode) &&
            access(candidate.c_str(), X_OK) == 0)
            return candidate;
        begin = end + 1;
    }
    return {};
}

bool is_elf(const std::string& path) {
    std::array<char, 4> magic{};
    return std::ifstream{path, std::ios::binary}.read(magic.data(), magic.size()) &&
           std::memcmp(magic.data(), ELFMAG, magic.size()) == 0;
}

// `binary` is the path of an ELF file, or empty for everything else. It must not go to execvp(3),
// which hands to the shell what the kernel does not execute: the shell would read a binary for
// another machine as a script.
[[noreturn]] void become_program(const std::string& binary, char* const* arguments,
                                 const Pipe& start, const Pipe& failure, bool fixed_addresses) {
    char byte = 0;
    // No byte comes if the profiler could not seize us, or died.
    if (read(start.read_end(), &byte, 1) != 1) _exit(static_cast<int>(ExitStatus::profiler_failed));
    InheritedSignals::restore();
    if (fixed_addresses) personality(personality(0xffffffff) | ADDR_NO_RANDOMIZE);
    if (binary.empty())
        execvp(arguments[0], arguments);
    else
        execv(binary.c_str(), arguments);
    const int error = errno;
    if (write(failure.write_end(), &error, sizeof error) < 0) _exit(1);
    _exit(1);
}

[[noreturn]] void throw_exec_error(const std::string& name, int error) {
    if (error == ENOENT && name.find('/') == std::string::npos)
        throw UserError(fmt::format("{}: command not found", name), ExitStatus::not_found);
    if (error == ENOEXEC)
        throw UserError(fmt::format("{}: broken, or made for another kind of machine", name),
                        ExitStatus::not_executable);
    throw UserError(fmt::format("{}: {}", name, std::strerror(error)),
                    error == ENOENT ? ExitStatus::not_found : ExitStatus::not_executable);
}

}  // namespace

bool would_lose_privileges(const std::string& program) {
    struct stat file {};
    struct statvfs file_system {};
    if (program.empty() || may_trace_anything() || stat(program.c_str(), &file) != 0) return false;
    if (statvfs(program.c_str(), &file_system) == 0 && (file_system.f_flag & ST_NOSUID) != 0)
        return false;
    const bool sets_user = (file.st_mode & S_ISUID) != 0 && file.st_uid != geteuid();
    const bool sets_group =
        (file.st_mode & S_ISGID) != 0 && (file.st_mode & S_IXGRP) != 0 && file.st_gid != getegid();
    return sets_user || sets_group ||
           getxattr(program.c_str(), "security.capability", nullptr, 0) > 0;
}

std::unique_ptr<Tracer> Tracer::launch(const std::vector<std::string>& command,
                                       bool fixed_addresses) {
    SHADOWPROF_ASSERT(!command.empty(), "a command has at least a program");
    const auto program = find_program(command[0]);
    if (would_lose_privileges(program))
        throw UserError(
            fmt::format("{}: a traced program does not get the privileges of its set-user-id bit "
                        "or file capabilities; run shadowprof as root, or attach to the program",
                        command[0]),
            ExitStatus::profiler_failed);
    prepare_tracing_thread();

    const auto binary = is_elf(program) ? program : std::string{};
    std::vector<char*> arguments;
    for (const auto& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);

    auto start = std::make_unique<Pipe>();
    const Pipe failure;
    auto parent = std::make_unique<ParentThread>([&] {
        close(start->write_end());
        become_program(binary, arguments.data(), *start, failure, fixed_addresses);
    });
    const pid_t pid = parent->child();
    if (pid < 0)
        throw UserError(
            fmt::format("cannot start {}: {}", command[0], std::strerror(parent->error())),
            ExitStatus::profiler_failed);
    if (!seize(pid)) {
        const auto reason = why_not_seized(pid, errno);
        start.reset();
        waitpid(pid, nullptr, __WALL);
        throw UserError(reason, ExitStatus::profiler_failed);
    }
    if (write(start->write_end(), "", 1) != 1) start.reset();

    std::unique_ptr<Tracer> tracer{new Tracer(pid, true)};
    tracer->parent_ = std::move(parent);
    tracer->threads_->add(pid);
    auto& reader = *tracer->reader_;
    while (!reader.has_kept()) {
        int status = 0;
        if (waitpid(pid, &status, __WALL) < 0) continue;
        const auto event = reader.digest(pid, status);
        if (!event) continue;
        if (event->kind == EventKind::process_gone) {
            int error = 0;
            fcntl(failure.read_end(), F_SETFL, O_NONBLOCK);
            if (read(failure.read_end(), &error, sizeof error) == sizeof error)
                throw_exec_error(command[0], error);
        }
        if (event->kind == EventKind::exec || event->kind == EventKind::process_gone)
            reader.keep(*event);
        else
            tracer->pass_on(*event);
    }
    return tracer;
}

}  // namespace shadowprof::ptrace
