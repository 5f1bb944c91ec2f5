#include "inject/visit.h"

#include "inject/tuning.h"
#include "proc/process_info.h"

namespace shadowprof::inject {

void Visit::begin(pid_t thread) {
    thread_ = thread;
    is_over_ = false;
    cpu_time_.reset();
}

void Visit::end_if_by(pid_t thread) {
    if (thread_ == thread) is_over_ = true;
}

bool Visit::is_over(pid_t process, const AddressRange& area) {
    if (is_over_) return true;
    if (const auto next = proc::goes_on_at(process, thread_); next && !area.contains(*next)) {
        is_over_ = true;
        return true;
    }
    const auto now = proc::thread_cpu_time(process, thread_);
    if (now && !cpu_time_) cpu_time_ = now;
    is_over_ = !now || *now - *cpu_time_ > tuning::surely_returned_ns;
    return is_over_;
}

}  // namespace shadowprof::inject
