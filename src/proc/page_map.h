// /proc/PID/pagemap: what the kernel has behind each page of a process.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/address.h"

namespace shadowprof::proc {

class PageMap {
  public:
    explicit PageMap(pid_t pid);
    ~PageMap();
    PageMap(const PageMap&) = delete;
    PageMap& operator=(const PageMap&) = delete;

    class Entry {
      public:
        bool is_in_memory() const { return (bits_ >> 63 & 1) != 0; }
        bool exists() const { return (bits_ >> 62 & 3) != 0; }      // in memory, or swapped out
        bool is_of_file() const { return (bits_ >> 61 & 1) != 0; }  // or shared without a file
        bool is_exclusive() const { return (bits_ >> 56 & 1) != 0; }

      private:
        std::uint64_t bits_ = 0;
    };
    Entry at(Address page) const {
        Entry entry;
        for_each({page, page + page_size}, [&](Address, Entry found) { entry = found; });
        return entry;
    }
    // Calls visit(Address, Entry) for one page after the other, as far as they can be read.
    template <typename Visit>
    void for_each(AddressRange range, Visit visit) const {
        std::array<Entry, 4096> entries;
        for (auto at = range.begin; at < range.end;) {
            const auto wanted =
                std::min<std::uint64_t>(entries.size(), (range.end - at) / page_size);
            const auto got = pread(file_, entries.data(), wanted * sizeof(Entry),
                                   static_cast<off_t>(page_number(at) * sizeof(Entry)));
            if (got <= 0) return;
            const auto count = static_cast<std::uint64_t>(got) / sizeof(Entry);
            for (std::uint64_t n = 0; n < count; ++n) visit(at + n * page_size, entries[n]);
            at = at + count * page_size;
        }
    }

  private:
    int file_;
};

}  // namespace shadowprof::proc
