// Preloaded into a profiler (LD_PRELOAD), kills it (-9) at one of its ptrace(2) calls:
// DIES_AT_REQUEST is its number, DIES is "before" or "after". From outside one would hold the
// profiler at each of its requests, where nothing holds one that is killed: what it knew of the
// program at one request is then no longer true at the next.
#include <dlfcn.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string_view>

namespace {

class Fate {
  public:
    Fate() {
        const char* const number = std::getenv("DIES_AT_REQUEST");
        const char* const when = std::getenv("DIES");
        if (!number || !when) std::abort();
        number_ = std::atol(number);
        after_ = std::string_view{when} == "after";
        // The program that it profiles is not meant.
        for (const char* const name : {"LD_PRELOAD", "DIES_AT_REQUEST", "DIES"}) unsetenv(name);
    }

    template <typename Request>
    long meet(Request request) {
        const bool now = ++requests_ == number_;
        if (now && !after_) die();
        const long answer = request();
        if (now) die();
        return answer;
    }

  private:
    static void die() { kill(getpid(), SIGKILL); }

    long number_ = 0;
    bool after_ = false;
    std::atomic<long> requests_{0};
};

Fate fate;

}  // namespace

extern "C" long ptrace(int request, pid_t tid, void* address, void* data) {
    using Ptrace = long (*)(int, pid_t, void*, void*);
    static const auto next = reinterpret_cast<Ptrace>(dlsym(RTLD_NEXT, "ptrace"));
    return fate.meet([&] { return next(request, tid, address, data); });
}
