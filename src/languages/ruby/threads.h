// A thread in the interpreter's list of them, and its frames.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <vector>

#include "languages/interpreter.h"
#include "languages/memory.h"
#include "languages/ruby/layout.h"
#include "languages/ruby/objects.h"

namespace shadowprof::languages::ruby {

// Where an interpreter is in memory.
struct Place {
    Layout layout;
    Address machine;  // rb_vm_t
    Address symbols;  // rb_symbols_t
    std::vector<AddressRange> loop;
};

// Hashes of what the frames' names and lines depend on; and where in code they are, for addresses
// in it. False: something is not what it must be.
bool identify(const Memory& memory, const Layout& layout, std::vector<Glance::Frame>& frames);

class Thread : public InterpretedThread {
  public:
    Thread(pid_t tid, const Place& place, const Memory& memory)
        : tid_(tid), place_(place), layout_(place.layout), memory_(memory) {}
    std::optional<Glance> look() override;

  private:
    // Nothing: the lists are damaged. 0: it is in none.
    std::optional<Address> find_state() const;
    std::optional<Address> find_in(Address ractor) const;
    bool is_of_thread(std::span<const std::byte> state) const;
    bool look_at(Address state, Glance& glance) const;
    bool follow(std::span<const std::byte> context, PagesOnce& pages, Glance& glance) const;
    std::optional<Address> method_of(Address environment, PagesOnce& pages) const;

    const pid_t tid_;
    const Place& place_;
    const Layout& layout_;
    const Memory& memory_;
    std::optional<Address> known_;
};

}  // namespace shadowprof::languages::ruby
