// Takes the threads of a program that runs already into the code cache: those that run at once,
// those that sleep when their system call returns.
#pragma once

#include "emu/translator/threads/cache_traffic.h"

namespace shadowprof::emu::translator {

class ProgramTakeover {
  public:
    ProgramTakeover(ptrace::Tracer& tracer, ProgramCache& cache, GuestThreads& threads,
                    CacheTraffic& traffic, RunNotes& notes)
        : tracer_(tracer), cache_(cache), threads_(threads), traffic_(traffic), notes_(notes) {}

    // Finds threads that are not ours yet, and calls those that are to arrive. The first thread
    // that can makes room for the cache. Until then, and whenever new threads may have been found,
    // this is to be called again.
    void take_over();
    // A thread that was called has stopped.
    void arrive(GuestThread& guest);

  private:
    ptrace::Tracer& tracer_;
    ProgramCache& cache_;
    GuestThreads& threads_;
    CacheTraffic& traffic_;
    RunNotes& notes_;
    unsigned failures_ = 0;
};

}  // namespace shadowprof::emu::translator
