// A thread in the interpreter's list of them, and its frames.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <vector>

#include "languages/interpreter.h"
#include "languages/memory.h"
#include "languages/python/layout.h"
#include "languages/python/objects.h"

namespace shadowprof::languages::python {

// Where an interpreter is in memory.
struct Place {
    Layout layout;
    Types types;
    Address runtime;
    AddressRange loop;
};

class Thread : public InterpretedThread {
  public:
    Thread(pid_t tid, const Place& place, const Memory& memory)
        : tid_(tid), place_(place), layout_(place.layout), memory_(memory) {}
    std::optional<Glance> look() override;

  private:
    // Of the newest interpreter first: where several are in one thread it was called by the others.
    struct States {
        Address newest;
        std::vector<Address> all;
    };
    // Nothing: they are damaged.
    std::optional<States> find_states() const;
    bool is_of_thread(std::span<const std::byte> state) const;
    bool look_at(const States& states, Glance& glance) const;
    std::optional<Address> frame_of(std::span<const std::byte> state) const;
    bool follow(Address frame, PagesOnce& pages, Glance& glance) const;
    bool identify(Glance& glance) const;

    const pid_t tid_;
    const Place& place_;
    const Layout& layout_;
    const Memory& memory_;
    std::optional<States> known_;
};

}  // namespace shadowprof::languages::python
