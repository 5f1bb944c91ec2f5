// Where one thread is from time to time while it runs, as the kernel's software clock sees it
// (perf_event_open(2)): the kernel writes it into memory that it shares with us, and stops nobody.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/address.h"

namespace shadowprof::proc {

class LookBuffer {
  public:
    struct Options {
        // The thread's time on a processor, in nanoseconds, from one look at it to the next.
        std::uint64_t period = 0;
        // Bytes of stack that come with a look, and registers; 0: neither.
        std::uint32_t stack_size = 0;
        bool with_kernel = false;  // looks at its code as well: not everybody may
        // file() becomes readable with each look, and it is told when the thread is given a
        // processor, and when that is taken from it.
        bool at_once = false;
    };
    struct Look {
        pid_t tid = 0;
        Address at;  // of the kernel's code, if it was there
        bool in_kernel = false;
        // Of user code, also while the kernel works for it. Nothing if the thread has none.
        bool has_registers = false;
        Address user_at;
        std::array<std::uint64_t, 16> general{};  // by hardware number
        std::span<const std::byte> stack;         // from rsp on; valid during the call
        // If looks are told at once: nanoseconds of CLOCK_MONOTONIC, and where it ran.
        std::uint64_t time = 0;
        int processor = -1;
    };
    struct Switch {
        std::uint64_t time = 0;  // as above
        bool is_given = false;
    };
    using UseLook = std::function<void(const Look&)>;
    using UseSwitch = std::function<void(const Switch&)>;

    enum class Refusal : std::uint8_t { thread_is_gone, not_allowed, no_memory };
    // Nothing, and why.
    static std::optional<LookBuffer> open(pid_t tid, const Options& options, Refusal& why);
    LookBuffer(LookBuffer&& other) noexcept;
    LookBuffer& operator=(LookBuffer&&) = delete;
    ~LookBuffer();

    pid_t tid() const { return tid_; }
    int file() const { return file_; }
    // What was written since the last time, in order.
    void read(const UseLook& use, const UseSwitch& use_switch = {});
    // There is something to read.
    bool has_more() const;
    // From the next look on. False if the kernel will not.
    bool set_period(std::uint64_t nanoseconds) const;
    // Looks for which there was no room, so far.
    std::uint64_t lost() const { return lost_; }

  private:
    LookBuffer(pid_t tid, const Options& options, int file, std::uint8_t* pages)
        : tid_(tid), options_(options), file_(file), pages_(pages) {}
    Look look_in(std::span<const std::byte> record) const;

    pid_t tid_;
    Options options_;
    int file_;
    std::uint8_t* pages_;
    std::uint64_t lost_ = 0;
    std::vector<std::byte> record_;
};

}  // namespace shadowprof::proc
