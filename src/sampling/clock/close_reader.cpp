#include "sampling/clock/close_reader.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/thread_if_any.h"
#include "proc/processors.h"
#include "ptrace/tracing_thread.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

namespace {

std::uint64_t now() {
    return static_cast<std::uint64_t>(Clock::now().time_since_epoch() /
                                      std::chrono::nanoseconds{1});
}

Seconds seconds_from(std::uint64_t begin, std::uint64_t end) {
    return Seconds{static_cast<double>(end - std::min(begin, end)) * 1e-9};
}

}  // namespace

CloseReader::CloseReader(proc::LookBuffer buffer,
                         std::unique_ptr<languages::InterpretedThread> thread,
                         const ProgramRequests& requests, std::uint64_t period, double most_cost)
    : buffer_(std::move(buffer)),
      tid_(buffer_.tid()),
      thread_(std::move(thread)),
      requests_(requests),
      most_cost_(most_cost),
      wake_(eventfd(0, EFD_CLOEXEC)),
      period_(period) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    worker_ = thread_if_any([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    is_over_ = !worker_.joinable();
}

CloseReader::~CloseReader() {
    closing_ = true;
    eventfd_write(wake_, 1);
    if (worker_.joinable()) worker_.join();
    if (wake_ >= 0) ::close(wake_);
}

std::vector<CloseReader::Seen> CloseReader::take() {
    const std::lock_guard lock{mutex_};
    return std::exchange(seen_, {});
}

Seconds CloseReader::cost() const {
    const std::lock_guard lock{mutex_};
    return cost_;
}

void CloseReader::run() {
    ptrace::wake_up_promptly();
    while (!closing_) {
        std::array<pollfd, 2> asked{pollfd{buffer_.file(), POLLIN, 0}, pollfd{wake_, POLLIN, 0}};
        // Nobody is woken when there is room for no look any more.
        if (poll(asked.data(), asked.size(), tuning::between_cleanings.count()) < 0) continue;
        read();
        if (asked[0].revents & (POLLHUP | POLLERR)) break;
    }
    is_over_ = true;
}

// If there are several looks, we were late for all but the last.
void CloseReader::read() {
    buffer_.read([this](const auto& look) { note(look); },
                 [this](const auto& change) { note(change); });
    if (!last_) return;
    glance();
    const auto cost = seconds_from(last_->look.time, now());
    const auto processor = last_->look.processor;
    {
        const std::lock_guard lock{mutex_};
        // What it lost to us, or to somebody else meanwhile.
        cost_ += std::min(cost, tuning::most_cost_of_close_look) + tuning::after_close_look;
        seen_.push_back(std::move(*last_));
    }
    last_.reset();
    usual_cost_ += (std::min(cost, tuning::most_cost_of_close_look) - usual_cost_) /
                   static_cast<double>(std::min<std::uint64_t>(++costs_known_, 64));
    adapt();
    // It has moved, and will probably be there next time.
    if (processor != processor_ && proc::confine_to(processor)) processor_ = processor;
}

void CloseReader::note(const proc::LookBuffer::Look& look) {
    if (last_) {
        const std::lock_guard lock{mutex_};
        seen_.push_back(std::move(*last_));
    }
    last_ = Seen{look, {look.stack.begin(), look.stack.end()}, period_, {}, {}};
    last_->look.stack = {};
    displaced_.reset();
    runs_ = true;
}

void CloseReader::note(const proc::LookBuffer::Switch& change) {
    runs_ = change.is_given;
    if (!change.is_given && !displaced_) displaced_ = change.time;
}

// How long that takes depends on the machine: an interrupt, and on virtual processors much more.
// But it hardly varies, and where the thread went on for a while it did so for long.
bool CloseReader::was_displaced_at_once() {
    if (runs_ || !displaced_) return false;
    const auto after = *displaced_ - std::min(*displaced_, last_->look.time);
    displaced_after_.push_back(after);
    if (displaced_after_.size() > tuning::displacements_remembered) displaced_after_.pop_front();
    auto sorted = displaced_after_;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    return after <= std::min(tuning::latest_displacement, 2 * *middle);
}

void CloseReader::glance() {
    if (!was_displaced_at_once()) return;
    if (thread_) last_->glance = thread_->look();
    last_->record = requests_.record(tid_, ProgramRequests::Moment::stopped);
    if (!buffer_.has_more()) return;
    // It has been given a processor meanwhile.
    last_->glance.reset();
    last_->record.reset();
}

// Where looks are dear there are fewer.
void CloseReader::adapt() {
    constexpr std::uint64_t between_changes = 16;
    if (costs_known_ % between_changes != 0) return;
    const auto affordable = static_cast<std::uint64_t>(
        (usual_cost_ + tuning::after_close_look).count() / most_cost_ * 1e9);
    const auto wanted = std::max(tuning::between_clock_looks, affordable);
    if (buffer_.set_period(wanted)) period_ = wanted;
}

}  // namespace shadowprof::sampling
