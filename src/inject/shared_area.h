// The memory that the target, its replicas and the profiler share.
//
//   first page    code: the stub, then the pieces of code that finish calls broken off half-way
//   second page   an answer of the calls that put the area in, then a word for each of those pieces
//   from there    the slots, one for each fork in progress
//
// The target may not write to the first page; nothing else in the area is executed. The program can
// write over the rest whenever it likes, so a word from there is read once, and means no more than
// what is checked of it. Private to the room, but for place() and file().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/address.h"
#include "base/clock.h"
#include "inject/fork_stub.h"
#include "inject/rest_of_call.h"
#include "ptrace/tracer.h"

namespace shadowprof::inject {

// Reads a word that somebody else writes.
template <typename T>
T load_acquire(const T& word) {
    return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}
// Sleeps until a word may have another value than `value`, but no longer than `longest`.
void await_change(const std::uint32_t& word, std::uint32_t value, Clock::duration longest);

class SharedArea {
  public:
    static constexpr std::size_t slots = 16;
    static constexpr std::size_t rests = 12;

    // Maps the area into a stopped thread's process; the thread stays stopped. The area is the
    // beginning of a file of `file_size` bytes. Nothing and `why` if that fails; no reason if the
    // thread cannot be used where it is stopped.
    static std::unique_ptr<SharedArea> put_into(ptrace::Tracer& tracer, ptrace::Thread& stopped,
                                                std::size_t file_size, std::string& why);
    ~SharedArea();
    SharedArea(const SharedArea&) = delete;
    SharedArea& operator=(const SharedArea&) = delete;

    // As the target and its replicas see the area.
    AddressRange place() const { return place_; }
    int file() const { return file_; }

    StubSlot& slot(std::size_t number) const;
    Address place_of_slot(std::size_t number) const;

    // Where the code for the rest of a call goes, and the word that this code sets when it is done.
    std::byte* rest(std::size_t number) const { return ours_ + offset_of_rest(number); }
    Address place_of_rest(std::size_t number) const;
    std::uint32_t& complete_word(std::size_t rest) const;
    Address place_of_complete_word(std::size_t rest) const;

    // Whether the process adopted orphans (PR_SET_CHILD_SUBREAPER) when the area was put in.
    bool process_adopts_orphans() const;

    // Whether the program still has the area, and nothing else in its place.
    bool is_there() const;
    // Unmaps the area by the stopped thread, which stays stopped. No thread may be in it.
    bool remove(ptrace::Tracer& tracer, ptrace::Thread& stopped) const;

  private:
    explicit SharedArea(pid_t pid) : pid_(pid) {}

    static std::size_t offset_of_rest(std::size_t number);
    bool open_file_of(const ptrace::Thread& stopped, std::int64_t descriptor, std::size_t size);
    bool map_here();

    pid_t pid_;
    AddressRange place_;
    int file_ = -1;
    std::byte* ours_ = nullptr;  // the area, as we see it
};

}  // namespace shadowprof::inject
