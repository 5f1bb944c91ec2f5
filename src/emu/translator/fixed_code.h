// The code that each arena begins with: where units jump to leave the cache, and where they execute
// system calls.
//
// A thread that asks by memory writes its registers into its area, rings the profiler's bell and
// waits, first spinning and then in a futex, until its area says where to go on. If the profiler
// has died, the thread goes on in its own code. In all of this no signal frame may be built, so the
// profiler holds signals back (SignalDelivery).
//
// A system call is executed right here if the table says so. A signal must never find the thread
// between the look at whether it was called and the call, which might then sleep for ever: the
// profiler moves it back to the look (CacheTraffic::call_out).
#pragma once

#include <cstdint>
#include <span>

#include "base/address.h"
#include "emu/translator/layout.h"
#include "ptrace/registers.h"

namespace shadowprof::emu::translator {

class CodeArena;

struct FixedCode {
    const std::uint8_t* leave = nullptr;
    const std::uint8_t* find = nullptr;  // target in rcx; the guest's rcx and rdx in the area
    // For exits that are not connected: the lower halves of `exit` and `pc` are in the area. The
    // first is for targets whose upper half is `upper_half_here`, the second finds it there too.
    const std::uint8_t* link_near = nullptr;
    const std::uint8_t* link = nullptr;
    std::uint32_t upper_half_here = 0;
    Address after_leave;  // where a thread that asks by stops is seen

    // The rest is for threads that ask by memory.

    // System calls. The guest's rcx is in the area, `pc` is the call's, and rcx says where in the
    // unit to go on.
    const std::uint8_t* call = nullptr;
    std::uint32_t life = 0;    // the place of Exchange::life
    AddressRange waiting;      // for an answer; the guest's state is in the area
    AddressRange with_stream;  // the stream's pointer is in the area, and so it is after an answer
    AddressRange before_call;  // from the look on
    AddressRange before_hinted;  // the same, in a part that comes later
    AddressRange behind_call;    // in the call, or after it, but not after one that is hinted
    // Whether a thread stopped here stands at the call, or in it, or behind it.
    bool is_at_call(Address place) const {
        return behind_call.begin - ptrace::system_call_length <= place && place < behind_call.end;
    }
    // Of such a thread: the call is still to be made, or to be made once more.
    bool is_before_call(Address place) const { return place < behind_call.begin; }
    bool is_for_bursts() const { return go_native.value != 0; }
    Address ask_behind_call;  // where to go on instead of in the unit

    // The rest is for bursts.
    Address go_on;      // from the area's registers, at its `resume`
    Address go_native;  // from the area's registers, at its `pc`
    AddressRange
        all_in_area;   // here all of the guest's state is, so a thread may just become native
    Address ways_out;  // see way_out()
    static constexpr std::uint64_t way_out_size = 16;
    // The last steps out of the cache, for each area: they use no register that is not the guest's.
    Address way_out(std::uint32_t area) const { return ways_out + area * way_out_size; }
};

// `areas` and `exchange` are places in the target, and `shared` all that is shared with it.
void write_fixed_code(CodeArena& arena, Asking asking, std::uint32_t areas, std::uint32_t exchange,
                      std::span<const AddressRange> shared);

}  // namespace shadowprof::emu::translator
