#include "sampling/sandbox/replica_sandbox.h"

#include <asm/prctl.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>

#include "proc/call_facts.h"
#include "proc/identity.h"
#include "sampling/learn_identity.h"

namespace shadowprof::sampling {

namespace {

constexpr const char* is_gone = "the replica is gone";
constexpr const char* was_told_something_else = "it went another way than the original";
constexpr const char* is_mapped_twice = "a write to memory that is mapped twice";

bool opens(const emu::SystemCall& call) {
    return proc::facts_of_call(call.number).descriptor.from == proc::NewDescriptor::From::opening;
}

}  // namespace

// The replica's own memory. The kernel would write to shared memory just as the program does, so
// here too withdrawn pages are made the replica's own.
class ReplicaSandbox::Memory : public emu::GuestMemory {
  public:
    Memory(inject::Replica& replica, WithdrawnMemory& withdrawn)
        : replica_(replica), withdrawn_(withdrawn) {}

    bool read(Address from, std::span<std::byte> into) override {
        return replica_.memory().read(from, into) == into.size();
    }
    bool write(Address to, std::span<const std::byte> bytes) override {
        if (replica_.memory().write(to, bytes)) return true;
        return withdrawn_.make_writable({to, to + bytes.size()}) &&
               replica_.memory().write(to, bytes);
    }

  private:
    inject::Replica& replica_;
    WithdrawnMemory& withdrawn_;
};

ReplicaSandbox::ReplicaSandbox(inject::Replica& replica, pid_t target,
                               const inject::PendingReplica& birth, FileTableSnapshot at_birth,
                               const proc::Maps& maps)
    : replica_(replica),
      mapped_files_(replica.pid(), maps),
      withdrawn_(replica),
      memory_(std::make_unique<Memory>(replica, withdrawn_)),
      queries_(replica, target, birth.thread, std::move(at_birth), mapped_files_),
      facts_(queries_) {}

ReplicaSandbox::~ReplicaSandbox() = default;

std::unique_ptr<ReplicaSandbox> ReplicaSandbox::settle(
    inject::Replica& replica, pid_t target, const inject::ForkSite& fork_site,
    const inject::PendingReplica& birth, FileTableSnapshot at_birth, const proc::Maps& maps,
    std::vector<AddressRange> engine_memory, std::string& why) {
    std::unique_ptr<ReplicaSandbox> world{
        new ReplicaSandbox{replica, target, birth, std::move(at_birth), maps}};
    if (!world->close_everything()) {
        why = "its open files cannot be closed";
        return nullptr;
    }
    if (!world->withdrawn_.withdraw(maps, engine_memory, why)) return nullptr;
    world->facts_.shared_mappings = world->withdrawn_.shared();
    world->facts_.device_memory = world->withdrawn_.devices();
    // The replica makes its calls from there. The program may not write there either.
    engine_memory.push_back(fork_site.place());
    world->facts_.engine_memory = std::move(engine_memory);
    world->learn_facts(target, birth);
    world->open_directories();
    return world;
}

bool ReplicaSandbox::close_everything() {
    // The stub did so at the fork (inject/fork_stub.cpp), unless the kernel does not know that call
    // (before Linux 5.9) or a filter forbids it.
    if (replica_.call(SYS_close_range, {0, ~0u, CLOSE_RANGE_UNSHARE}) == 0) return true;
    if (replica_.call(SYS_unshare, {CLONE_FILES}) != 0) return false;
    const auto numbers = proc::open_numbers(replica_.pid());
    return numbers && std::all_of(numbers->begin(), numbers->end(), [&](int number) {
               return replica_.call(SYS_close, {static_cast<std::uint64_t>(number)}) == 0;
           });
}

// For calls with relative paths.
void ReplicaSandbox::open_directories() {
    for (auto& [number, descriptor] : queries_.at_birth().open) {
        auto& file = *descriptor.file;
        if (!file.is_held) continue;
        const auto opened = queries_.open_directory_of(facts_.pid, number, file.id);
        file.is_held = opened && move_to(*opened, number);
    }
}

void ReplicaSandbox::learn_facts(pid_t target, const inject::PendingReplica& birth) {
    facts_.signal_mask = birth.signal_mask;
    facts_.same_time_namespace = proc::shares_time_namespace(target);
    const auto& signals = queries_.at_birth().signals;
    const auto pending = signals.pending | signals.process_pending;
    for (int signal = 1; signal <= 64; ++signal) {
        const auto bit = pending & std::uint64_t{1} << (signal - 1);
        (signals.acts_on(signal) ? facts_.pending_signals : facts_.idle_signals) |= bit;
    }
    if (const auto mask = proc::creation_mask(replica_.pid())) facts_.creation_mask = *mask;
    if (birth.identity) learn_identity(facts_, *birth.identity);
}

// Signals that were on their way to the process end the sample at whichever call comes first.
void ReplicaSandbox::add_thread(pid_t thread, pid_t own_number, std::uint64_t signal_mask) {
    if (others_.empty()) others_.resize(1);
    const auto& signals = queries_.at_birth().signals;
    OfThread one{{thread, {}}, own_number, signal_mask, 0, 0, false};
    for (int signal = 1; signal <= 64; ++signal) {
        const auto bit = signals.process_pending & std::uint64_t{1} << (signal - 1);
        (signals.acts_on(signal) ? one.pending_signals : one.idle_signals) |= bit;
    }
    others_.push_back(std::move(one));
}

void ReplicaSandbox::serves(std::size_t thread) {
    if (thread == served_) return;
    const auto exchange = [&](OfThread& with) {
        std::swap(with.asker, queries_.asker());
        std::swap(with.tid, facts_.tid);
        std::swap(with.signal_mask, facts_.signal_mask);
        std::swap(with.pending_signals, facts_.pending_signals);
        std::swap(with.idle_signals, facts_.idle_signals);
        std::swap(with.has_set_signal_stack, facts_.has_set_signal_stack);
    };
    exchange(others_.at(served_));
    exchange(others_.at(thread));
    served_ = thread;
}

ReplicaSandbox::Fault ReplicaSandbox::serve_fault(const siginfo_t& info) {
    if (info.si_signo != SIGSEGV || info.si_code != SEGV_ACCERR) return {};
    const Address at{reinterpret_cast<std::uint64_t>(info.si_addr)};
    if (withdrawn_.make_writable({at, at + 1})) return {.is_mended = true};
    return {.reason = withdrawn_.has_refused() ? is_mapped_twice : nullptr};
}

std::optional<std::string> ReplicaSandbox::serve(ptrace::Registers& registers) {
    // Other ways to call the kernel use other numbers. All their instructions are two bytes long.
    constexpr std::uint16_t system_call_instruction = 0x050f;
    const auto instruction = replica_.memory().read_as<std::uint16_t>(registers.rip() - 2);
    if (instruction != system_call_instruction) {
        return "system call by another instruction than syscall";
    }
    const emu::SystemCall call{static_cast<std::int32_t>(registers.raw.orig_rax),
                               registers.arguments()};
    if ((facts_.pending_signals & ~facts_.signal_mask) != 0) return "a signal was on its way";
    if (auto reason = serve(call, registers)) return reason;
    registers.raw.rcx = registers.raw.rip;
    registers.raw.r11 = registers.raw.eflags;
    registers.raw.orig_rax = ~0ull;
    return {};
}

std::optional<std::string> ReplicaSandbox::serve(const emu::SystemCall& call,
                                                 ptrace::Registers& registers) {
    const auto set_result = [&](std::int64_t result) {
        registers.raw.rax = static_cast<std::uint64_t>(result);
    };
    if (const auto result = change_registers(call, registers)) {
        set_result(*result);
        return {};
    }
    const auto action = emu::decide_in_replica(call, facts_, *memory_);
    const auto* const answer = std::get_if<emu::Answer>(&action);
    const bool is_lost =
        std::holds_alternative<emu::End>(action) || (answer != nullptr && answer->result == -EBADF);
    const bool is_needed = is_lost && !is_of_file(call) && emu::can_be_told(call, *memory_);
    const auto* const heard = journal_ ? journal_->find(call, is_needed) : nullptr;
    if (is_needed && heard != nullptr && tell(*heard)) {
        set_result(heard->result);
        return {};
    }
    if (const auto* end = std::get_if<emu::End>(&action)) {
        // Questions about a replica that is gone are not answered, which is not the reason why it
        // ends.
        if (!replica_.registers()) return is_gone;
        return journal_ && journal_->has_parted() ? was_told_something_else : end->reason;
    }
    if (withdrawn_.has_refused()) return is_mapped_twice;
    if (answer != nullptr) {
        const bool is_peers =
            heard != nullptr && emu::is_answered_by_peers(call) && !is_of_file(call);
        set_result(is_peers ? heard->result : answer->result);
        return {};
    }
    const auto* other = std::get_if<emu::ExecuteInstead>(&action);
    const auto& executed = other ? other->call : call;
    const auto result = execute(executed);
    if (!result) return is_gone;
    if (withdrawn_.has_refused()) return is_mapped_twice;
    if (const auto end = emu::end_for_want_of_room(executed, *result)) return end->reason;
    if (other && other->result && *result >= 0) {
        set_result(*other->result);
        return {};
    }
    const auto noted = note(call, *result);
    if (opens(call) && is_not_what_was_found(noted)) {
        return emu::system_call_end_reason(call.number) + " " + emu::was_replaced;
    }
    set_result(noted);
    return {};
}

// What it writes there is kept, and where it has read to.
bool ReplicaSandbox::is_of_file(const emu::SystemCall& call) {
    using Kind = emu::OpenFile::Kind;
    const auto fd = emu::descriptor_of(call);
    if (!fd) return false;
    const auto kind = facts_.descriptors.at(*fd).kind;
    return kind == Kind::file || kind == Kind::directory;
}

bool ReplicaSandbox::tell(const HeardCall& heard) {
    if (!heard.can_be_told) return false;
    for (const auto& written : heard.written)
        if (!memory_->write(written.at, written.bytes)) return false;
    const auto bytes = heard.written.empty() ? std::span<const std::byte>{}
                                             : std::span{heard.written.front().bytes};
    for (const int fd : emu::descriptors_made(heard.call, heard.result, bytes)) {
        auto file = std::make_shared<emu::OpenFile>();
        file->kind = emu::OpenFile::Kind::withdrawn;
        file->status.emplace();
        file->status->st_mode = S_IFSOCK;
        facts_.descriptors.open(fd, {std::move(file), {}});
    }
    return true;
}

std::optional<std::int64_t> ReplicaSandbox::change_registers(const emu::SystemCall& call,
                                                             ptrace::Registers& registers) {
    if (call.number != SYS_arch_prctl) return {};
    const auto value = call.arguments[1];
    switch (static_cast<int>(call.arguments[0])) {
        case ARCH_SET_FS: {
            constexpr std::uint64_t end_of_user_space = 0x7fff'ffff'f000;
            if (value >= end_of_user_space) return -EPERM;
            registers.raw.fs_base = value;
            return 0;
        }
        case ARCH_GET_FS: {
            const std::uint64_t base = registers.raw.fs_base;
            return memory_->write_as(Address{value}, base) ? 0 : -EFAULT;
        }
        default:
            return {};
    }
}

std::optional<std::int64_t> ReplicaSandbox::execute(const emu::SystemCall& call) {
    const auto make = [&] {
        const auto& a = call.arguments;
        return replica_.call(static_cast<std::uint64_t>(static_cast<std::uint32_t>(call.number)),
                             {a[0], a[1], a[2], a[3], a[4], a[5]});
    };
    // Otherwise it can simply be made again if there was no memory to write to.
    const auto written = proc::facts_of_call(call.number).written(call.arguments);
    if (!written.empty()) withdrawn_.make_writable(written);
    const auto result = make();
    if (result != -EFAULT) return result;
    // The kernel was to write to withdrawn memory. All other calls can be made once more, and none
    // has a result larger than a page.
    bool any = false;
    for (const auto argument : call.arguments) {
        constexpr std::uint64_t largest_result = 4096;
        const Address at{argument};
        any |= withdrawn_.make_writable({at, at + largest_result});
    }
    return any ? make() : result;
}

bool ReplicaSandbox::move_to(std::int64_t fd, int number) {
    if (fd == number) return true;
    const auto from = static_cast<std::uint64_t>(fd);
    const auto moved =
        replica_.call(SYS_fcntl, {from, F_DUPFD, static_cast<std::uint64_t>(number)});
    return replica_.call(SYS_close, {from}) && moved == number;
}

// A rule found a file or a directory there, or something of which only the path may be opened.
bool ReplicaSandbox::is_not_what_was_found(std::int64_t opened) {
    for (const int error : {ENOENT, ENOTDIR, ELOOP, ENXIO, EAGAIN}) {
        if (opened == -error) return true;
    }
    if (opened < 0) return false;
    const auto& file = facts_.descriptors.at(static_cast<int>(opened));
    return !file.is_certain() || (file.kind == emu::OpenFile::Kind::withdrawn &&
                                  (file.status_flags.value_or(0) & O_PATH) == 0);
}

// A file that it opens gets the lowest free number; more numbers are taken than the kernel knows.
std::int64_t ReplicaSandbox::move_to_free_number(std::int64_t fd) {
    const auto wanted = facts_.descriptors.lowest_free();
    return wanted && move_to(fd, *wanted) ? *wanted : -EMFILE;
}

std::int64_t ReplicaSandbox::note(const emu::SystemCall& call, std::int64_t result) {
    if (opens(call) && result >= 0) result = move_to_free_number(result);
    const auto& facts = proc::facts_of_call(call.number);
    if (facts.changes_mappings != proc::ChangesMappings::anywhere)
        for (const auto& range : facts.changed(call.arguments, result)) withdrawn_.forget(range);
    emu::note_executed(call, result, facts_);
    return result;
}

}  // namespace shadowprof::sampling
