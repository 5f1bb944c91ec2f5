// Images that a program has mapped: their headers, notes and unwind tables. Whatever is in them, a
// stack is unwound in a bounded time, and without a crash.
//
// The image is mapped here, and a stack unwound whose instruction pointer lies at its beginning,
// entry point or anywhere in it: the first two bytes say where.
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/address.h"
#include "emu/common/errno_place.h"
#include "proc/maps.h"
#include "proc/memory.h"
#include "ptrace/call_stack.h"

using namespace shadowprof;

namespace {

// A private mapping of code, as loaders make them.
class Image {
  public:
    Image(const std::uint8_t* data, std::size_t size)
        : size_(std::max<std::size_t>(round_up_to_page(size), page_size)),
          file_(::memfd_create("libc.so.fuzzed", MFD_CLOEXEC)) {
        if (::write(file_, data, size) != static_cast<ssize_t>(size)) std::abort();
        if (::ftruncate(file_, static_cast<off_t>(size_)) != 0) std::abort();
        at_ = ::mmap(nullptr, size_, PROT_READ | PROT_EXEC, MAP_PRIVATE, file_, 0);
        if (at_ == MAP_FAILED) std::abort();
    }
    ~Image() {
        ::munmap(at_, size_);
        ::close(file_);
    }
    Image(const Image&) = delete;
    Image& operator=(const Image&) = delete;

    std::uint64_t begin() const { return reinterpret_cast<std::uint64_t>(at_); }

  private:
    std::size_t size_;
    int file_;
    void* at_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::uint16_t offset = 0;
    if (size <= sizeof offset) return 0;
    std::memcpy(&offset, data, sizeof offset);
    const Image image{data + sizeof offset, size - sizeof offset};
    const auto pid = ::getpid();
    const auto maps = proc::Maps::of(pid);
    if (!maps) std::abort();
    static_cast<void>(emu::place_of_errno(pid, *maps, proc::Memory{pid}));

    ptrace::StackSnapshot snapshot;
    snapshot.pid = pid;
    snapshot.bytes.resize(page_size);
    auto& raw = snapshot.registers.raw;
    raw.rip = image.begin() + offset;
    raw.rsp = raw.rbp = reinterpret_cast<std::uint64_t>(&snapshot);
    for (std::size_t at = 0; at + 8 <= snapshot.bytes.size(); at += 8) {
        const auto word = at % 16 == 0 ? raw.rip + at : raw.rsp + at + 16;
        std::memcpy(snapshot.bytes.data() + at, &word, sizeof word);
    }
    static_cast<void>(ptrace::unwind_with_signals(snapshot));
    static_cast<void>(ptrace::unwind(snapshot, std::make_shared<const proc::Maps>(*maps)));
    return 0;
}
