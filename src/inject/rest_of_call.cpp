#include "inject/rest_of_call.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "base/error.h"
#include "inject/movable.h"
#include "proc/call_facts.h"
#include "proc/memory.h"
#include "proc/open_files.h"
#include "proc/process_info.h"

namespace shadowprof::inject {

namespace {

using If = proc::Division::If;
using Unit = proc::Division::Unit;

// The pieces lie behind the code.
constexpr std::size_t pieces_at = 128;
static_assert(pieces_at + RestOfCall::most_pieces * sizeof(iovec) == RestOfCall::room);

// The most that the kernel does in one call (MAX_RW_COUNT, UIO_MAXIOV).
constexpr std::uint64_t most_bytes = 0x7ffff000, most_messages = 1024;

bool is_endless(const struct stat& status) {
    constexpr unsigned memory_devices = 1, zero = 5, full = 7, random = 8, urandom = 9;
    const auto number = minor(status.st_rdev);
    return S_ISCHR(status.st_mode) && major(status.st_rdev) == memory_devices &&
           (number == zero || number == full || number == random || number == urandom);
}

int option_of(int socket, int option) {
    int value = 0;
    socklen_t size = sizeof value;
    return getsockopt(socket, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

// A stream delivers all that was asked for, up to urgent data. Messages end where they end.
bool waits_for_all(int socket) {
    int at_mark = 0;
    return option_of(socket, SO_TYPE) == SOCK_STREAM &&
           (ioctl(socket, SIOCATMARK, &at_mark) != 0 || at_mark == 0);
}

// The same for a process whose sandbox does not let us have a second descriptor: by the number of
// the socket in /proc, which says nothing about urgent data.
bool is_known_stream(pid_t tid, int descriptor) {
    std::error_code error;
    const auto link =
        std::filesystem::read_symlink(fmt::format("/proc/{}/fd/{}", tid, descriptor), error);
    struct Table {
        const char* name;
        std::size_t inode;  // the field's place
        bool has_type;
    };
    for (const auto& table :
         {Table{"unix", 6, true}, Table{"tcp", 9, false}, Table{"tcp6", 9, false}}) {
        std::ifstream lines{fmt::format("/proc/{}/net/{}", tid, table.name)};
        for (std::string line; std::getline(lines, line);) {
            std::istringstream words{line};
            const std::vector<std::string> fields{std::istream_iterator<std::string>{words}, {}};
            if (fields.size() <= table.inode || link != "socket:[" + fields[table.inode] + "]")
                continue;
            return !table.has_type || fields[4] == "0001";
        }
    }
    return false;
}

// The socket reports once why no more messages came. We should be the one to ask: programs never
// see this reason.
bool waited_for_messages(int socket) {
    constexpr int to_be_restarted = 512;  // ERESTARTSYS
    return option_of(socket, SO_ERROR) == to_be_restarted;
}

bool holds(If condition, pid_t process, pid_t tid, const ptrace::Registers& registers) {
    if (condition == If::always) return true;
    const auto descriptor = static_cast<std::int32_t>(registers.raw.rdi);
    const bool waits = condition == If::waits_for_all;
    if (waits && (registers.raw.r10 & MSG_WAITALL) == 0) return false;
    if (waits || condition == If::waited_for_messages) {
        const int socket = proc::second_descriptor(process, descriptor);
        if (socket < 0) return waits && is_known_stream(tid, descriptor);
        const bool found = waits ? waits_for_all(socket) : waited_for_messages(socket);
        close(socket);
        return found;
    }
    const auto status = proc::status_of_descriptor(tid, descriptor);
    if (!status) return false;
    if (condition == If::from_endless_device) return is_endless(*status);
    // The kernel gives a pipe only what it has room for.
    if (condition == If::to_no_pipe) return !S_ISFIFO(status->st_mode);
    return S_ISFIFO(status->st_mode) || S_ISSOCK(status->st_mode) || S_ISCHR(status->st_mode);
}

// Whether a handler runs next: then the program expects a short answer.
bool has_cause_of_its_own(pid_t process, const ptrace::Thread& stopped) {
    const auto sets = proc::signal_sets(process, stopped.tid());
    if (!sets) return true;
    auto causes = (sets->pending | sets->process_pending) & ~sets->blocked;
    if (const int held = stopped.held_signal()) causes |= std::uint64_t{1} << (held - 1);
    for (int signal = 1; signal <= 64; ++signal)
        if ((causes >> (signal - 1) & 1) && sets->acts_on(signal)) return true;
    return false;
}

// What is left of an array of pieces; nothing if the array cannot be read, has too many pieces, or
// all is done.
std::optional<std::vector<iovec>> rest_of_pieces(pid_t tid, const ptrace::Registers& registers,
                                                 std::uint64_t done) {
    constexpr std::uint64_t most = 64;
    if (registers.raw.rdx > most) return {};
    std::vector<iovec> pieces(registers.raw.rdx);
    const auto bytes = std::as_writable_bytes(std::span{pieces});
    if (proc::Memory{tid}.read({registers.raw.rsi}, bytes) != bytes.size()) return {};
    while (!pieces.empty() && done >= pieces.front().iov_len) {
        done -= pieces.front().iov_len;
        pieces.erase(pieces.begin());
    }
    if (pieces.empty() || pieces.size() > RestOfCall::most_pieces) return {};
    pieces.front().iov_base = static_cast<std::byte*>(pieces.front().iov_base) + done;
    pieces.front().iov_len -= done;
    return pieces;
}

class Code {
  public:
    template <typename... Bytes>
    void add(Bytes... bytes) {
        (bytes_.push_back(static_cast<std::byte>(bytes)), ...);
    }
    template <typename T>
    void add_number(T number) {
        const auto* const begin = reinterpret_cast<const std::byte*>(&number);
        bytes_.insert(bytes_.end(), begin, begin + sizeof number);
    }
    // mov register, number
    void set(int rex, int opcode, std::uint64_t number) {
        add(rex, opcode);
        add_number(number);
    }
    std::size_t size() const { return bytes_.size(); }
    // A jump of one byte was written before `from`, which leads here.
    void lands_here(std::size_t from) { bytes_[from - 1] = static_cast<std::byte>(size() - from); }
    std::vector<std::byte> take() { return std::move(bytes_); }

  private:
    std::vector<std::byte> bytes_;
};

}  // namespace

std::vector<std::byte> RestOfCall::code(Address place, Address complete,
                                        std::uint32_t number) const {
    Code code;
    code.add(0x0f, 0x05);        // syscall: the thread is then behind_call()
    code.add(0x48, 0x99);        // cqo
    code.add(0x48, 0x89, 0xd1);  // mov rcx, rdx
    code.add(0xe3, 0);           // jrcxz
    const auto was_positive = code.size();
    code.set(0x48, 0xb8, done);  // mov rax, done
    code.add(0xeb, 0);           // jmp
    const auto was_error = code.size();
    code.lands_here(was_positive);
    code.set(0x48, 0xb9, done);        // mov rcx, done
    code.add(0x48, 0x8d, 0x04, 0x08);  // lea rax, [rax + rcx]
    code.lands_here(was_error);
    code.set(0x48, 0xbf, program.raw.rdi);
    code.set(0x48, 0xbe, program.raw.rsi);
    code.set(0x48, 0xba, program.raw.rdx);
    code.set(0x49, 0xba, program.raw.r10);
    code.set(0x49, 0xb8, program.raw.r8);
    code.set(0x48, 0xb9, program.raw.rip);  // as behind any system call
    code.add(0xc7, 0x05);                   // mov dword [rip + …], number
    constexpr std::uint64_t size_of_numbers = 8;
    const auto behind = place + (code.size() + size_of_numbers);
    code.add_number(static_cast<std::int32_t>(complete.value - behind.value));
    code.add_number(number);
    code.add(0xff, 0xe1);  // jmp rcx
    SHADOWPROF_ASSERT(code.size() <= pieces_at, "the pieces lie behind it");
    if (!pieces.empty()) {
        while (code.size() < pieces_at) code.add(0xcc);
        for (const auto& piece : pieces) code.add_number(piece);
    }
    return code.take();
}

void RestOfCall::continues(const RestOfCall& earlier) {
    done += earlier.done;
    program = earlier.program;
}

ptrace::Registers RestOfCall::at(Address place) const {
    auto registers = rest;
    registers.raw.rip = place.value;
    if (!pieces.empty()) {
        registers.raw.rsi = (place + pieces_at).value;
        registers.raw.rdx = pieces.size();
    }
    return registers;
}

std::optional<RestOfCall> rest_of_call(pid_t process, const ptrace::Thread& stopped) {
    const auto registers = stopped.registers();
    if (!registers || !registers->in_system_call() || registers->result() <= 0) return {};
    const auto& call = proc::facts_of_call(static_cast<std::int64_t>(registers->raw.orig_rax));
    const auto& division = call.division;
    if (division.unit == Unit::whole) return {};
    const auto done = static_cast<std::uint64_t>(registers->result());
    const bool is_of_pieces = division.unit == Unit::piece;
    const auto arguments = registers->arguments();
    const auto whole = std::min(arguments[division.count],
                                division.unit == Unit::message ? most_messages : most_bytes);
    if (!is_of_pieces && done >= whole) return {};
    const auto state = state_if_movable_with_signal(stopped);
    if (!state || !holds(division.only, process, stopped.tid(), *registers)) return {};
    RestOfCall found{state->registers, state->registers, done, {}};
    auto& rest = found.rest;
    rest.raw.rax = registers->raw.orig_rax;
    if (is_of_pieces) {
        auto pieces = rest_of_pieces(stopped.tid(), *registers, done);
        if (!pieces) return {};
        found.pieces = std::move(*pieces);
    } else {
        rest.set_argument(division.count, whole - done);
        if (const auto buffer = division.buffer; buffer != proc::Division::moved_by_kernel)
            rest.set_argument(
                buffer,
                arguments[buffer] + done * (division.unit == Unit::message ? sizeof(mmsghdr) : 1));
    }
    if (has_cause_of_its_own(process, stopped)) return {};
    return found;
}

}  // namespace shadowprof::inject
