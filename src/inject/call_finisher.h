// Finishes system calls of the target that our interruption broke off half-way, by code in the
// shared area that makes a second call for the rest (rest_of_call.h). Private to the room.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>

#include "inject/rest_of_call.h"
#include "inject/shared_area.h"
#include "inject/visit.h"

namespace shadowprof::inject {

class CallFinisher {
  public:
    CallFinisher(const SharedArea& area, pid_t process) : area_(area), process_(process) {}

    // Sends the stopped thread to the code that makes the rest of its call. False if that is
    // impossible: the thread is as it was.
    bool finish(ptrace::Thread& stopped, RestOfCall rest);
    // Whether a thread may still be in such code.
    bool is_in_use();

  private:
    struct Use {
        Visit visit;
        std::uint32_t number = 0;  // 0: the code is nobody's
        RestOfCall what;
    };

    bool is_free(std::size_t index);
    // The thread is not in the area: the code of its calls that are complete is nobody's.
    void stands_elsewhere(const ptrace::Thread& stopped);
    // The use in whose code the thread stands, behind its call.
    Use* interrupted_once_more(const ptrace::Thread& stopped, Address stands_at);

    const SharedArea& area_;
    pid_t process_;
    std::array<Use, SharedArea::rests> uses_;
    std::uint32_t so_far_ = 0;
};

}  // namespace shadowprof::inject
