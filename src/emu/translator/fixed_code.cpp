#include "emu/translator/fixed_code.h"

#include <asm/prctl.h>
#include <linux/futex.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#include <cstddef>
#include <initializer_list>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "emu/translator/code_arena.h"
#include "emu/translator/emitter.h"
#include "emu/tuning.h"
#include "ptrace/registers.h"

namespace shadowprof::emu::translator {

namespace {

using decoder::r10;
using decoder::r11;
using decoder::rax;
using decoder::rcx;
using decoder::rdi;
using decoder::rdx;
using decoder::rsi;

class Writer {
  public:
    Writer(CodeArena& arena, Asking asking, std::uint32_t areas, std::uint32_t exchange,
           std::span<const AddressRange> shared)
        : arena_(arena),
          fixed_(arena.fixed),
          asking_(asking),
          areas_(areas),
          exchange_(exchange),
          shared_(shared),
          a_(arena.begin(), arena.end()) {}

    void write() {
        if (asking_ == Asking::by_stops)
            write_leave_by_stop();
        else
            write_leave_by_memory();
        write_find();
        write_link();
        if (asking_ != Asking::by_stops) write_call();
        arena_.commit(a_.position());
        arena_.keep();
    }

  private:
    Address here() const { return arena_.place_of(a_.position()); }
    std::uint32_t of_exchange(std::size_t offset) const {
        return exchange_ + static_cast<std::uint32_t>(offset);
    }
    void load_flags() {
        a_.load_area(rax, offsetof(ThreadArea, flags));
        a_.flags_from_rax();
    }
    void save_flags() {
        a_.flags_to_rax();
        a_.store_area(offsetof(ThreadArea, flags), rax);
    }

    // If the profiler has died, the system call that asks for it returns, and the thread goes on in
    // its own code.
    void write_leave_by_stop() {
        fixed_.leave = a_.position();
        for (const auto& [reg, slot] : lost_in_call) a_.store_area(slot, reg);
        a_.move_imm(rax, SYS_getpid);
        a_.system_call();
        fixed_.after_leave = here();
        for (const auto& [reg, slot] : lost_in_call) a_.load_area(reg, slot);
        a_.load_area(stream_register, offsetof(ThreadArea, r15));
        a_.jump_through_area(offsetof(ThreadArea, pc));
    }

    void write_leave_by_memory() {
        fixed_.life = of_exchange(offsetof(Exchange, life));
        fixed_.leave = a_.position();
        for (const auto& [reg, slot] : saved) a_.store_area(slot, reg);
        a_.store_area(offsetof(ThreadArea, stream), stream_register);
        save_flags();

        fixed_.all_in_area.begin = fixed_.with_stream.begin = here();
        std::uint8_t *goes_on_by_itself = nullptr, *leaves = nullptr;
        if (asking_ == Asking::in_bursts) std::tie(goes_on_by_itself, leaves) = write_drive();
        fixed_.waiting.begin = here();
        a_.store_area_half(offsetof(ThreadArea, answered), not_yet);
        auto* const dead_before = jump_if_dead();
        a_.increment_low_atomically(of_exchange(offsetof(Exchange, bell)));
        a_.compare_low_half(of_exchange(offsetof(Exchange, profiler_sleeps)), 0);
        auto* const is_awake = a_.jump_if(Condition::e);
        auto* const may_not_ring = jump_unless_it_may_call();
        a_.move_imm(rdi, of_exchange(offsetof(Exchange, bell)));
        a_.move_imm(rsi, FUTEX_WAKE);
        a_.move_imm(rdx, 1);
        a_.move_imm(rax, SYS_futex);
        a_.system_call();
        a_.compare_imm(rax, 0, true);
        auto* const was_rung = a_.jump_if(Condition::ns);
        a_.store_low_half(of_exchange(offsetof(Exchange, bell_is_mute)), 1);
        a_.join(is_awake);
        a_.join(may_not_ring);
        a_.join(was_rung);

        const auto* const look_again = a_.position();
        a_.load_low(rcx, of_exchange(offsetof(Exchange, rounds)));
        const auto* const spin = a_.position();
        a_.compare_area_half(offsetof(ThreadArea, answered), not_yet);
        auto* const at_once = a_.jump_if(Condition::ne);
        a_.pause();
        a_.decrement(rcx);
        a_.jump_to_if(Condition::ne, spin);

        const auto* const sleep = a_.position();
        auto* const dead_meanwhile = jump_if_dead();
        a_.compare_low_half(of_exchange(offsetof(Exchange, may_call)), 0);
        a_.jump_to_if(Condition::e, look_again);
        a_.store_area_half(offsetof(ThreadArea, sleeps), 1);
        a_.load_area(rdi, offsetof(ThreadArea, place));
        a_.lea(rdi, rdi, Emitter::none, 1, offsetof(ThreadArea, answered));
        a_.move_imm(rsi, FUTEX_WAIT);
        a_.move_imm(rdx, 0);
        a_.move_imm(r10, of_exchange(offsetof(Exchange, patience)));
        a_.move_imm(rax, SYS_futex);
        a_.system_call();
        a_.compare_area_half(offsetof(ThreadArea, answered), not_yet);
        a_.jump_to_if(Condition::e, sleep);
        fixed_.waiting.end = here();
        a_.store_area_half(offsetof(ThreadArea, sleeps), 0);
        a_.join(at_once);
        fixed_.go_on = here();
        if (asking_ == Asking::in_bursts) {
            note_time(offsetof(ThreadArea, went_on_at));
            a_.load_area(rcx, offsetof(ThreadArea, lasts));
            a_.lea(rcx, rcx, rax, 1, 0);
            a_.store_area(offsetof(ThreadArea, until), rcx);
            a_.join(goes_on_by_itself);
        }
        load_registers(offsetof(ThreadArea, stream));
        fixed_.with_stream.end = here();
        a_.jump_through_area(offsetof(ThreadArea, resume));

        a_.join(dead_before);
        a_.join(dead_meanwhile);
        if (asking_ == Asking::in_bursts) {
            a_.join(leaves);
            write_go_native();
        } else {
            load_registers(offsetof(ThreadArea, r15));
            a_.jump_through_area(offsetof(ThreadArea, pc));
        }
        fixed_.all_in_area.end = here();
    }

    // A thread in a burst has come here with its registers in its area. At the end of a part of its
    // stream it goes on to the next one, until its time is over; then it may have a capture window,
    // which it enters if the code for that is there; and behind that it leaves the cache. Nobody is
    // asked for any of this: a question takes as long as half of the burst. Returned are jumps: of
    // a thread that goes on, and of one that leaves.
    std::pair<std::uint8_t*, std::uint8_t*> write_drive() {
        const auto is = [this](std::size_t slot, auto value) {
            a_.compare_area_half(slot, static_cast<std::int8_t>(value));
        };
        note_time(offsetof(ThreadArea, asked_at));
        is(offsetof(ThreadArea, driven), Driven::asks);
        auto* const asks = a_.jump_if(Condition::e);
        is(offsetof(ThreadArea, driven), Driven::leaves);
        auto* const is_dismissed = a_.jump_if(Condition::e);
        is(offsetof(ThreadArea, driven), Driven::through_window);
        auto* const in_window = a_.jump_if(Condition::e);
        is(offsetof(ThreadArea, request), Request::look);
        auto* const has_request = a_.jump_if(Condition::ne);

        a_.load_area(rcx, offsetof(ThreadArea, part));
        a_.store_to(rcx, offsetof(StreamPart, at), rax);
        for (const auto& [slot, of_part] : noted_of_part) {
            a_.load_area(rdx, slot);
            a_.store_to(rcx, static_cast<std::int32_t>(of_part), rdx);
        }
        a_.lea(rcx, rcx, Emitter::none, 1, sizeof(StreamPart));
        a_.store_area(offsetof(ThreadArea, part), rcx);
        a_.load_area(rdx, offsetof(ThreadArea, until));
        a_.compare(rax, rdx);
        auto* const is_over = a_.jump_if(Condition::ae);
        a_.load_from(rdx, rcx, offsetof(StreamPart, begin), 8);
        a_.compare_imm(rdx, 0, true);
        auto* const has_no_more = a_.jump_if(Condition::e);
        a_.store_area(offsetof(ThreadArea, stream), rdx);
        auto* const goes_on = a_.jump();

        a_.join(is_over);
        a_.load_area(rdx, offsetof(ThreadArea, window_stream));
        a_.compare_imm(rdx, 0, true);
        auto* const has_no_window = a_.jump_if(Condition::e);
        a_.store_area(offsetof(ThreadArea, window_began), rax);
        a_.store_area(offsetof(ThreadArea, stream), rdx);
        a_.store_area_half(offsetof(ThreadArea, driven),
                           static_cast<std::uint32_t>(Driven::through_window));
        write_look_up_in_window();

        // What is new to the window ends it.
        a_.join(in_window);
        is(offsetof(ThreadArea, request), Request::look);
        auto* const window_is_over = a_.jump_if(Condition::e);
        is(offsetof(ThreadArea, request), Request::link);
        auto* const comes_to_new_code = a_.jump_if(Condition::e);
        is(offsetof(ThreadArea, request), Request::find);
        auto* const has_window_request = a_.jump_if(Condition::ne);
        a_.join(is_dismissed);
        a_.join(window_is_over);
        a_.join(comes_to_new_code);
        a_.join(has_no_window);
        // The guest's flag for alignment checks cannot be restored here.
        a_.compare_area_half(offsetof(ThreadArea, alignment_check), 0);
        auto* const leaves = a_.jump_if(Condition::e);
        for (auto* const jump : {asks, has_request, has_no_more, has_window_request}) a_.join(jump);
        return {goes_on, leaves};
    }
    // In the version of the window. Where it is not there, the thread is back with a request.
    void write_look_up_in_window() {
        a_.load_area(rcx, offsetof(ThreadArea, pc));
        a_.zero_extend_word(rdx, rcx);
        a_.load_area(rsi, offsetof(ThreadArea, window_table));
        a_.load_at(rdx, rsi, rdx, sizeof(std::uint64_t), 0);
        a_.store_area(offsetof(ThreadArea, resume), rdx);
        load_registers(offsetof(ThreadArea, stream));
        a_.load_area(rcx, offsetof(ThreadArea, pc));
        a_.jump_through_area(offsetof(ThreadArea, resume));
    }

    // With gs, the last thing of ours, its area is out of reach by that.
    void write_go_native() {
        fixed_.go_native = here();
        a_.load_area(stream_register, offsetof(ThreadArea, place));
        a_.store_area_half(offsetof(ThreadArea, answered), has_left);
        a_.increment_low_atomically(of_exchange(offsetof(Exchange, bell)));
        load_by_stream_register(rsi, offsetof(ThreadArea, guest_gs));
        if (may_set_gs()) {
            a_.set_gs(rsi);
        } else {
            a_.move_imm(rdi, ARCH_SET_GS);
            a_.move_imm(rax, SYS_arch_prctl);
            a_.system_call();
        }
        load_by_stream_register(rax, offsetof(ThreadArea, flags));
        a_.flags_from_rax();
        for (const auto& [reg, slot] : saved) load_by_stream_register(reg, slot);
        a_.jump_through(stream_register, offsetof(ThreadArea, way_out));
        fixed_.ways_out = here();
        for (std::uint32_t area = 0; area < most_threads; ++area) {
            const auto* const begin = a_.position();
            const auto place = areas_ + area * static_cast<std::uint32_t>(sizeof(ThreadArea));
            a_.load_low(stream_register, place + offsetof(ThreadArea, r15));
            a_.jump_through_low(place + offsetof(ThreadArea, pc));
            while (a_.position() < begin + FixedCode::way_out_size) a_.trap();
        }
    }
    void load_by_stream_register(HostRegister reg, std::size_t offset) {
        a_.load_from(reg, stream_register, static_cast<std::int32_t>(offset),
                     sizeof(std::uint64_t));
    }
    // Changes rax, rdx and flags.
    void note_time(std::size_t slot) {
        a_.read_clock();
        a_.whole_clock_in_rax();
        a_.store_area(slot, rax);
    }
    void note_begin_of_call() {
        a_.store_area(offsetof(ThreadArea, rdx), rdx);
        a_.read_clock();
        a_.whole_clock_in_rax();
        a_.load_area(rcx, offsetof(ThreadArea, calls_began));
        a_.lea(rax, rax, rcx, 1, 0);
        a_.store_area(offsetof(ThreadArea, calls_began), rax);
        a_.load_area(rcx, offsetof(ThreadArea, calls));
        a_.lea(rcx, rcx, Emitter::none, 1, 1);
        a_.store_area(offsetof(ThreadArea, calls), rcx);
        a_.load_area(rdx, offsetof(ThreadArea, rdx));
    }
    // Whether programs may do so themselves: since Linux 5.9, if the processor can.
    static bool may_set_gs() {
        constexpr unsigned long fsgsbase = 2;
        return getauxval(AT_HWCAP2) & fsgsbase;
    }

    std::uint8_t* jump_unless_it_may_call() {
        a_.compare_low_half(of_exchange(offsetof(Exchange, may_call)), 0);
        return a_.jump_if(Condition::e);
    }
    std::uint8_t* jump_if_dead() {
        a_.test_death(fixed_.life);
        return a_.jump_if(Condition::ne);
    }
    void load_registers(std::size_t slot_of_r15) {
        load_flags();
        for (const auto& [reg, slot] : saved) a_.load_area(reg, slot);
        a_.load_area(stream_register, slot_of_r15);
    }

    void write_find() {
        fixed_.find = a_.position();
        a_.store_area(offsetof(ThreadArea, pc), rcx);
        a_.load_area(rcx, offsetof(ThreadArea, rcx));
        a_.load_area(rdx, offsetof(ThreadArea, rdx));
        a_.store_area_half(offsetof(ThreadArea, request),
                           static_cast<std::uint32_t>(Request::find));
        a_.jump_to(fixed_.leave);
    }

    void write_link() {
        fixed_.upper_half_here = static_cast<std::uint32_t>(here().value >> 32);
        fixed_.link_near = a_.position();
        a_.store_area_upper_half(offsetof(ThreadArea, pc), fixed_.upper_half_here);
        fixed_.link = a_.position();
        a_.store_area_upper_half(offsetof(ThreadArea, exit), 0);
        ask(Request::link);
    }

    // A system call changes rcx and r11 anyway.
    void write_call() {
        fixed_.call = a_.position();
        a_.store_area(offsetof(ThreadArea, behind_call), rcx);
        a_.store_area(offsetof(ThreadArea, rax), rax);
        a_.store_area(offsetof(ThreadArea, r11), r11);
        save_flags();
        if (asking_ == Asking::in_bursts) note_begin_of_call();

        fixed_.before_call.begin = here();
        a_.test_stream_bits(alias);
        auto* const was_called = a_.jump_if(Condition::ne);
        a_.load_area(rcx, offsetof(ThreadArea, rax));
        a_.compare_imm(rcx, most_calls, false);
        auto* const is_unknown = a_.jump_if(Condition::ae);
        a_.move32(rcx, rcx);
        a_.load_from(rcx, rcx, static_cast<std::int32_t>(of_exchange(offsetof(Exchange, calls))),
                     1);
        a_.compare_imm(rcx, static_cast<int>(CallInCache::hinted), false);
        auto* const is_hinted = a_.jump_if(Condition::e);
        a_.compare_imm(rcx, static_cast<int>(CallInCache::seen), false);
        auto* const is_seen = a_.jump_if(Condition::e);
        a_.compare_imm(rcx, static_cast<int>(CallInCache::bounded), false);
        auto* const is_unbounded = a_.jump_if(Condition::ne);
        const auto advises_about_ours = jumps_if_about_ours();
        a_.join(is_unbounded);
        load_flags();
        a_.load_area(rax, offsetof(ThreadArea, rax));
        a_.store_area_half(offsetof(ThreadArea, in_call), 1);
        fixed_.before_call.end = here() + 1;
        a_.system_call();
        fixed_.behind_call.begin = here();
        // In one step for all who look, and only then is it read where to go on.
        a_.move_imm(rcx, 0);
        a_.exchange_area_half(offsetof(ThreadArea, in_call), rcx);
        a_.jump_through_area(offsetof(ThreadArea, behind_call));
        fixed_.behind_call.end = here();

        fixed_.ask_behind_call = here();
        move_pc_behind_call();
        ask(Request::nothing);

        a_.join(is_hinted);
        fixed_.before_hinted.begin = here();
        const auto changes_ours = jumps_if_about_ours();
        load_flags();
        a_.load_area(rax, offsetof(ThreadArea, rax));
        a_.store_area(offsetof(ThreadArea, exit), rax);
        fixed_.before_hinted.end = here() + 1;
        a_.system_call();
        move_pc_behind_call();
        ask(Request::called);

        a_.join(was_called);
        a_.join(is_unknown);
        a_.join(is_seen);
        for (auto* const jump : advises_about_ours) a_.join(jump);
        for (auto* const jump : changes_ours) a_.join(jump);
        load_flags();
        for (const auto& [reg, slot] : lost_in_call) a_.load_area(reg, slot);
        ask(Request::call);
    }

    // Calls that change mappings have a place and a size in rdi and rsi, or also in r8 and rdx.
    // What others have there seldom looks like that, and then the profiler sees a call in vain.
    // Changes rax, rcx and flags.
    std::vector<std::uint8_t*> jumps_if_about_ours() {
        constexpr HostRegister r8 = 8;
        std::vector<std::uint8_t*> jumps;
        for (const auto& [place, size] :
             std::initializer_list<std::pair<HostRegister, HostRegister>>{{rdi, rsi}, {r8, rdx}})
            for (const auto& ours : shared_) {
                a_.move_imm(rcx, ours.end.value);
                a_.compare(place, rcx);
                auto* const is_behind = a_.jump_if(Condition::ae);
                a_.lea(rax, place, size, 1, 0);
                a_.move_imm(rcx, ours.begin.value);
                a_.compare(rax, rcx);
                jumps.push_back(a_.jump_if(Condition::a));
                a_.join(is_behind);
            }
        return jumps;
    }
    // As the system call does, it leaves the address in rcx.
    void move_pc_behind_call() {
        a_.load_area(rcx, offsetof(ThreadArea, pc));
        a_.lea(rcx, rcx, Emitter::none, 1, ptrace::system_call_length);
        a_.store_area(offsetof(ThreadArea, pc), rcx);
    }
    void ask(Request request) {
        a_.store_area_half(offsetof(ThreadArea, request), static_cast<std::uint32_t>(request));
        a_.jump_to(fixed_.leave);
    }

    struct Saved {
        HostRegister reg;
        std::size_t slot;
    };
    static constexpr Saved saved[] = {
        {rax, offsetof(ThreadArea, rax)}, {rcx, offsetof(ThreadArea, rcx)},
        {r11, offsetof(ThreadArea, r11)}, {rdx, offsetof(ThreadArea, rdx)},
        {rsi, offsetof(ThreadArea, rsi)}, {rdi, offsetof(ThreadArea, rdi)},
        {r10, offsetof(ThreadArea, r10)},
    };
    struct Noted {
        std::size_t slot, of_part;
    };
    static constexpr Noted noted_of_part[] = {
        {offsetof(ThreadArea, stream), offsetof(StreamPart, end)},
        {offsetof(ThreadArea, calls_began), offsetof(StreamPart, calls_began)},
        {offsetof(ThreadArea, calls_over_low), offsetof(StreamPart, calls_over_low)},
        {offsetof(ThreadArea, calls_over_high), offsetof(StreamPart, calls_over_high)},
    };
    // A system call by itself changes the first three.
    static constexpr std::span lost_in_call{saved, 3};

    static constexpr auto not_yet = static_cast<std::int8_t>(Answered::not_yet);
    static constexpr auto has_left = static_cast<std::uint32_t>(Answered::has_left);

    CodeArena& arena_;
    FixedCode& fixed_;
    Asking asking_;
    std::uint32_t areas_, exchange_;
    std::span<const AddressRange> shared_;
    Emitter a_;
};

}  // namespace

void write_fixed_code(CodeArena& arena, Asking asking, std::uint32_t areas, std::uint32_t exchange,
                      std::span<const AddressRange> shared) {
    Writer{arena, asking, areas, exchange, shared}.write();
}

}  // namespace shadowprof::emu::translator
