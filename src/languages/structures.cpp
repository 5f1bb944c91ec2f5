#include "languages/structures.h"

namespace shadowprof::languages {

// The number is in the C library's structure, whose layout glibc and musl have never changed.
bool is_pthread_of(const Memory& memory, Address pthread, pid_t tid) {
    if (!may_be_pointer(pthread)) return false;
    constexpr std::uint64_t in_glibc = 0x2d0, in_musl = 0x30;
    return memory.read_as<pid_t>(pthread + in_glibc) == tid ||
           memory.read_as<pid_t>(pthread + in_musl) == tid;
}

}  // namespace shadowprof::languages
