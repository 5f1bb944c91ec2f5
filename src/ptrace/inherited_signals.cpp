#include "ptrace/inherited_signals.h"

namespace shadowprof::ptrace {

InheritedSignals InheritedSignals::at_start_;
bool InheritedSignals::remembered_ = false;

void InheritedSignals::remember() {
    if (remembered_) return;
    remembered_ = true;
    pthread_sigmask(SIG_SETMASK, nullptr, &at_start_.mask_);
    for (int signal = 1; signal <= 64; ++signal) {
        struct sigaction action {};
        if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN)
            at_start_.ignored_ |= std::uint64_t{1} << (signal - 1);
    }
}

void InheritedSignals::restore() {
    for (int signal = 1; signal <= 64; ++signal) {
        struct sigaction action {};
        const bool ignored = at_start_.ignored_ >> (signal - 1) & 1;
        action.sa_handler = ignored ? SIG_IGN : SIG_DFL;
        sigaction(signal, &action, nullptr);  // fails harmlessly for those that cannot be changed
    }
    pthread_sigmask(SIG_SETMASK, &at_start_.mask_, nullptr);
}

}  // namespace shadowprof::ptrace
