// The calls become a piece of code, written where the target has zeros that are part of no
// function: at the end of a last page of code, usually the vDSO's.
//
//     mov $number, %eax; mov argument, %rdi …; syscall; mov %rax, %rbx     for each call
//     rt_sigprocmask(the program's mask)
//     mov $register, %register …; jmp to the program
//
// The code saves nothing and so can lose nothing: every register is known when it is written, the
// stack is not used, and flags and extended state do not change, for moves and system calls leave
// them alone. What the profiler does around it, so that it may be killed between any two steps:
//
//   1. write the code               where nobody executes it
//   2. set the registers            from here on the thread completes the calls by itself
//   3. block its signals            only then: if we died between the two, they would stay blocked
//   4. let it go from call to call  and look at what they return
//   5. behind the last one, set the mask, then the registers, then take the code away
//
// Its last call, rt_sigprocmask, is therefore made only if we die. (To skip it at its entry would
// be no way: a filter of system calls would be asked about the call that is none.) Whether there is
// a filter that might end the thread is asked before the first call, and behind each.
//
// A signal can come between 2 and 3 only if we die there. It finds the program's stack as it was;
// its handler returns, or leaves by longjmp, as ever.
#include "inject/planned_calls.h"

#include <signal.h>
#include <sys/syscall.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <span>

#include "base/clock.h"
#include "base/error.h"
#include "inject/fork_conditions.h"
#include "inject/movable.h"
#include "proc/maps.h"
#include "proc/memory.h"
#include "ptrace/system.h"
#include "ptrace/tracee.h"

namespace shadowprof::inject {
namespace {

// Hardware numbers of registers: those for arguments, in order, and those that keep results.
constexpr unsigned argument_registers[] = {7, 6, 2, 10, 8, 9};
constexpr unsigned result_registers[] = {3, 5, 12, 13, 14, 15};
constexpr unsigned rsp = 4;

constexpr const char* the_program_ended = "the program ended";

class CodeOfCalls {
  public:
    explicit CodeOfCalls(Address place) : place_(place) {}

    void load(unsigned to, std::uint64_t value) {
        const auto low = static_cast<std::uint8_t>(0xb8 | (to & 7));
        if (value >> 32 == 0) {
            if (to >= 8) put({0x41});
            put({low});
            put_value(static_cast<std::uint32_t>(value));
        } else {
            put({static_cast<std::uint8_t>(to >= 8 ? 0x49 : 0x48), low});
            put_value(value);
        }
    }
    // to = from + plus, without touching the flags
    void load_sum(unsigned to, unsigned from, std::uint64_t plus) {
        put({prefix(to, from), 0x8d});
        constexpr unsigned disp32 = 0x80, rsp_needs_sib = 4;
        put({static_cast<std::uint8_t>(disp32 | (to & 7) << 3 | (from & 7))});
        if ((from & 7) == rsp_needs_sib) put({0x24});
        put_value(static_cast<std::uint32_t>(plus));
    }
    void system_call(std::uint64_t number) {
        load(0, number);
        put({0x0f, 0x05});
    }
    // jmp *(%rip), followed by where to
    void jump(Address to) {
        put({0xff, 0x25, 0, 0, 0, 0});
        put_value(to.value);
    }
    // Adds data and returns its address.
    Address append(std::span<const std::byte> data) {
        const auto at = here();
        bytes_.insert(bytes_.end(), data.begin(), data.end());
        return at;
    }
    Address here() const { return place_ + bytes_.size(); }
    const std::vector<std::byte>& bytes() const { return bytes_; }

  private:
    static std::uint8_t prefix(unsigned reg, unsigned base) {
        return static_cast<std::uint8_t>(0x48 | (reg >= 8 ? 4 : 0) | (base >= 8 ? 1 : 0));
    }
    void put(std::initializer_list<std::uint8_t> all) {
        for (const auto byte : all) bytes_.push_back(std::byte{byte});
    }
    template <typename T>
    void put_value(T value) {
        append(std::as_bytes(std::span{&value, 1}));
    }

    Address place_;
    std::vector<std::byte> bytes_;
};

struct Program {
    std::vector<std::byte> bytes;
    Address entry;
};

// Its length does not depend on the place (but see carry_out()).
Program compile(const Plan& plan, const ThreadState& back, Address place) {
    SHADOWPROF_ASSERT(plan.calls.size() <= std::size(result_registers), "results need registers");
    CodeOfCalls code{place};
    const auto mask = code.append(std::as_bytes(std::span{&back.signal_mask, 1}));
    const auto text =
        code.append(std::as_bytes(std::span{plan.text.c_str(), plan.text.size() + 1}));
    Program program;
    program.entry = code.here();
    for (std::size_t at = 0; at < plan.calls.size(); ++at) {
        const auto& call = plan.calls[at];
        SHADOWPROF_ASSERT(call.arguments.size() <= std::size(argument_registers), "six at most");
        for (std::size_t n = 0; n < call.arguments.size(); ++n) {
            const auto& argument = call.arguments[n];
            const auto to = argument_registers[n];
            switch (argument.kind) {
                case PlannedArgument::Kind::number:
                    code.load(to, argument.value);
                    break;
                case PlannedArgument::Kind::text:
                    code.load(to, text.value);
                    break;
                case PlannedArgument::Kind::result:
                    SHADOWPROF_ASSERT(argument.value < at, "a result of an earlier call");
                    code.load_sum(to, result_registers[argument.value], argument.plus);
                    break;
            }
        }
        code.system_call(call.number);
        code.load_sum(result_registers[at], 0, 0);
    }
    code.load(argument_registers[0], SIG_SETMASK);
    code.load(argument_registers[1], mask.value);
    code.load(argument_registers[2], 0);
    code.load(argument_registers[3], sizeof back.signal_mask);
    code.system_call(SYS_rt_sigprocmask);
    for (unsigned number = 0; number < 16; ++number)
        if (number != rsp) code.load(number, back.registers.general(number));
    code.jump(back.registers.rip());
    program.bytes = code.bytes();
    program.bytes.resize((program.bytes.size() + 7) / 8 * 8);
    return program;
}

// A place in zeros at the end of a mapping of code, with so many zeros that they are no code.
std::optional<Address> find_padding(pid_t pid, std::size_t size) {
    const auto maps = proc::Maps::without_modules(pid);
    if (!maps) return {};
    auto mappings = maps->mappings();
    std::stable_partition(mappings.begin(), mappings.end(),
                          [](const proc::Mapping& mapping) { return mapping.path == "[vdso]"; });
    for (const auto& mapping : mappings) {
        const bool is_image = mapping.is_file() || mapping.path == "[vdso]";
        if (!is_image || !mapping.executable || mapping.writable || mapping.shared) continue;
        constexpr std::size_t distance = 64;  // from whatever comes before
        std::vector<std::byte> tail(size + distance);
        if (tail.size() > mapping.range.size()) continue;
        if (proc::Memory{pid}.read(mapping.range.end - tail.size(), tail) != tail.size()) continue;
        if (std::all_of(tail.begin(), tail.end(), [](std::byte b) { return b == std::byte{}; }))
            return mapping.range.end - size;
    }
    return {};
}

bool poke(pid_t tid, Address to, std::span<const std::byte> bytes) {
    SHADOWPROF_ASSERT(bytes.size() % sizeof(std::uint64_t) == 0, "whole words");
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + at, sizeof word);
        if (ptrace::request(PTRACE_POKEDATA, tid, (to + at).value, reinterpret_cast<void*>(word)) !=
            0)
            return false;
    }
    return true;
}

// Events of other threads, whose calls we may have broken off. The part of the profiler that would
// finish those calls (rest_of_call.h) may be waiting for us to be done. So the events wait as well,
// and are given back afterwards.
class Postponed {
  public:
    explicit Postponed(ptrace::Tracer& tracer) : tracer_(tracer) {}
    ~Postponed() {
        for (auto event = events_.rbegin(); event != events_.rend(); ++event)
            tracer_.give_back(*event);
    }
    Postponed(const Postponed&) = delete;
    Postponed& operator=(const Postponed&) = delete;

    // False if the event need not wait.
    bool take(const ptrace::Event& event) {
        if (event.kind == ptrace::EventKind::thread_gone)
            std::erase_if(events_,
                          [&](const ptrace::Event& e) { return e.thread == event.thread; });
        const bool waits =
            event.kind == ptrace::EventKind::interrupted || event.kind == ptrace::EventKind::signal;
        if (waits) events_.push_back(event);
        return waits;
    }
    // The program is no more.
    void forget() { events_.clear(); }

  private:
    ptrace::Tracer& tracer_;
    std::vector<ptrace::Event> events_;
};

// Waits until an event of one of two kinds happens to the thread, which meanwhile moves on as it
// was asked to. False if it ended; the next wait() reports that. Everything else happens as it
// would without us.
bool wait_for(ptrace::Tracer& tracer, ptrace::Thread& thread, ptrace::EventKind one,
              ptrace::EventKind other, ptrace::EventKind& which) {
    Postponed postponed{tracer};
    while (tracer.alive()) {
        const auto event = tracer.wait(Clock::now() + std::chrono::seconds{10});
        if (!event) continue;
        const bool is_gone =
            event->kind == ptrace::EventKind::process_gone ||
            event->kind == ptrace::EventKind::exec ||
            (event->kind == ptrace::EventKind::thread_gone && event->thread == &thread);
        if (is_gone) {
            if (event->kind != ptrace::EventKind::thread_gone) postponed.forget();
            tracer.give_back(*event);
            return false;
        }
        if (event->thread != &thread) {
            if (!postponed.take(*event)) tracer.pass_on(*event);
            continue;
        }
        which = event->kind;
        if (event->kind == one || event->kind == other) return true;
        if (event->kind == ptrace::EventKind::group_stop)
            thread.listen();
        else
            thread.resume_to_system_call(event->signal);
    }
    return false;
}

}  // namespace

PlannedArgument PlannedArgument::result_of(std::uint64_t call, std::uint64_t plus) {
    PlannedArgument argument{call};
    argument.kind = Kind::result;
    argument.plus = plus;
    return argument;
}

PlannedArgument PlannedArgument::the_text() {
    PlannedArgument argument{0};
    argument.kind = Kind::text;
    return argument;
}

bool carry_out(ptrace::Tracer& tracer, ptrace::Thread& thread, const Plan& plan,
               const std::function<void(std::size_t call, std::int64_t result)>& returned,
               std::string& why) {
    // A thread that is stopped in an exec, or behind a system call, has yet to leave the kernel.
    const bool is_in_kernel = thread.stopped_by() == ptrace::EventKind::exec ||
                              thread.stopped_by() == ptrace::EventKind::system_call_exit;
    if (ptrace::EventKind which{};
        is_in_kernel &&
        (!thread.stop_again() || !wait_for(tracer, thread, ptrace::EventKind::interrupted,
                                           ptrace::EventKind::interrupted, which))) {
        why = the_program_ended;
        return false;
    }
    const auto back = state_if_movable(thread);
    why.clear();
    if (!back) return false;
    const auto confinement = confinement_of(tracer.pid(), thread.tid());
    why = why_never_to_call(tracer.pid(), thread.tid(), tracer.launched());
    if (!why.empty()) return false;
    // The code is shorter only at a place below 4 GB, whose address takes fewer bytes.
    const auto longest = compile(plan, *back, {~0ull - 4096}).bytes.size();
    const auto place = find_padding(tracer.pid(), longest);
    if (!place) {
        why = "the program's code has no room, in between, for a few instructions of shadowprof's";
        return false;
    }
    const auto program = compile(plan, *back, *place);
    const std::vector<std::byte> zeros(program.bytes.size());
    why = the_program_ended;
    if (!poke(thread.tid(), *place, program.bytes)) {
        poke(thread.tid(), *place, zeros);
        return false;
    }
    auto there = back->registers;
    there.raw.rip = program.entry.value;
    if (!thread.set_registers(there) || !thread.set_signal_mask(ptrace::all_signals)) return false;

    ptrace::EventKind which{};
    bool is_confined_anew = false;
    for (std::size_t call = 0; call < plan.calls.size() && !is_confined_anew;) {
        if (!thread.resume_to_system_call() ||
            !wait_for(tracer, thread, ptrace::EventKind::system_call_entry,
                      ptrace::EventKind::system_call_exit, which))
            return false;
        if (which == ptrace::EventKind::system_call_entry) continue;
        const auto after = thread.registers();
        if (!after) return false;
        returned(call++, after->result());
        is_confined_anew = confinement_of(tracer.pid(), thread.tid()) != confinement;
    }
    // It stands behind the last call, and goes on from there as it was.
    if (!thread.set_signal_mask(back->signal_mask) || !thread.set_registers(back->registers))
        return false;
    poke(thread.tid(), *place, zeros);
    if (!thread.stop_again() || !wait_for(tracer, thread, ptrace::EventKind::interrupted,
                                          ptrace::EventKind::interrupted, which))
        return false;
    why = is_confined_anew ? because_it_confined_itself : "";
    return why.empty();
}

}  // namespace shadowprof::inject
