// A private view of a guest's memory. Pieces of pages are fetched from a PageSource when they are
// first used and copied; what the interpreter writes stays in the copies and never reaches the
// guest. The view is dropped after a burst, which costs time for each page that was touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/address.h"
#include "emu/interpreter/core.h"
#include "trace/block.h"

namespace shadowprof::emu {

class PageSource {
  public:
    struct Fetched {
        bool readable = false;  // both false: no such page, or not accessible
        bool writable = false;
        bool is_all = false;  // of the page
    };
    virtual ~PageSource() = default;
    // Copies some of a page to its place in `into`, which is of page_size bytes: those from `begin`
    // to `end`, or all of the page when it is first asked for.
    virtual Fetched fetch(Address page, std::byte* into, std::size_t begin, std::size_t end) = 0;
};

class MemoryView : public trace::CodeSource {
  public:
    explicit MemoryView(PageSource& source);
    ~MemoryView() override;
    MemoryView(const MemoryView&) = delete;
    MemoryView& operator=(const MemoryView&) = delete;

    // How many bytes could be read, or written, from there on: up to the first inaccessible page.
    std::size_t read(Address from, std::span<std::byte> into);
    std::size_t write(Address to, std::span<const std::byte> bytes);
    std::size_t read_code(Address at, std::span<std::byte> into) override { return read(at, into); }

    // The page of bytes that lie within one page. They are fetched if need be, and may be
    // inaccessible.
    ViewPage& page(Address at, std::size_t size = 1);

    // The view takes no more pages than that, until they are next forgotten.
    void limit(std::size_t pages) { limit_ = pages; }
    // Forgets all pages.
    void drop();
    // Changes whenever pages are forgotten. Whatever was derived from the pages is void then.
    std::uint64_t epoch() const { return epoch_; }

    // Compiled code was made from these bytes, so writes to them must be noticed.
    void mark_code(AddressRange code);
    bool code_changed() const { return code_changed_; }
    // The pages whose code changed since the last call; their marks are gone.
    std::vector<Address> take_changed_code();
    void note_code_changed() { code_changed_ = true; }

    // The guest address of a byte of a page's copy; nothing if it is in none.
    std::optional<Address> guest_address_of(const std::byte* copy) const;

    const ViewTable& table() const { return table_; }
    // Whether pages were refused, and so look inaccessible, because the view is full.
    bool exhausted() const { return exhausted_; }

  private:
    static constexpr std::size_t pages_per_slab = 64;
    static constexpr std::size_t most_pages = 1u << 17;  // 512 MiB

    ViewPage* insert(Address page);
    void fetch(ViewPage& page, unsigned pieces);
    void grow();
    std::byte* new_page();

    PageSource& source_;
    std::vector<ViewPage> places_;
    ViewTable table_;
    std::size_t used_ = 0;
    std::vector<std::byte*> slabs_;
    std::size_t pages_taken_ = 0;
    std::size_t limit_ = most_pages;
    std::uint64_t epoch_;
    bool code_changed_ = false;
    bool exhausted_ = false;
};

}  // namespace shadowprof::emu
