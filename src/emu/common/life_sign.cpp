#include "emu/common/life_sign.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>

namespace shadowprof::emu {

LifeSign::LifeSign(std::uint32_t& word) : word_(word) {
    std::size_t size = 0;
    if (syscall(SYS_get_robust_list, 0, &of_library_, &size) != 0) return;
    entry_.next = &list_.list;
    list_.list.next = &entry_;
    list_.futex_offset = reinterpret_cast<char*>(&word_) - reinterpret_cast<char*>(&entry_);
    std::atomic_ref{word_} = static_cast<std::uint32_t>(gettid());
    is_given_ = syscall(SYS_set_robust_list, &list_, sizeof list_) == 0;
}

LifeSign::~LifeSign() {
    if (is_given_) syscall(SYS_set_robust_list, of_library_, sizeof *of_library_);
    std::atomic_ref{word_} = FUTEX_OWNER_DIED;
}

}  // namespace shadowprof::emu
