#include "shadow/digester.h"

#include <sys/resource.h>
#include <unistd.h>

#include <exception>

#include "emu/guest_code.h"

namespace shadowprof::shadow {

namespace {

constexpr std::size_t most_queued_words = 8u << 20;

std::size_t words(const trace::TraceChunk& chunk) {
    return chunk.blocks.size() + chunk.values.size();
}

}  // namespace

Digester::Digester(std::vector<std::unique_ptr<profile::Profiler>> profilers,
                   const trace::BlockTable& blocks, trace::ModuleTable& modules)
    : profilers_(std::move(profilers)), blocks_(blocks), modules_(modules) {
    worker_ = std::thread([this] { work(); });
}

Digester::~Digester() {
    {
        const std::lock_guard lock{mutex_};
        closed_ = true;
    }
    changed_.notify_all();
    if (worker_.joinable()) worker_.join();
}

void Digester::begin(trace::TraceStart start) {
    put(Begin{std::move(start), {}, {}});
}

void Digester::begin(trace::TraceStart start, ptrace::StackSnapshot stack,
                     std::shared_ptr<const ptrace::Maps> maps) {
    put(Begin{std::move(start), std::move(stack), std::move(maps)});
}

void Digester::chunk(trace::TraceChunk chunk) {
    put(std::move(chunk));
}
void Digester::end(trace::TraceEnd end) {
    put(std::move(end));
}
void Digester::end_sample(trace::SampleId sample) {
    put(EndOfSample{sample});
}

profile::Hotlists Digester::finish(profile::Seen seen) {
    {
        const std::lock_guard lock{mutex_};
        closed_ = true;
    }
    changed_.notify_all();
    worker_.join();
    profile::Hotlists hotlists;
    for (auto& profiler : profilers_) profiler->yield(hotlists, seen);
    return hotlists;
}

bool Digester::is_behind() const {
    const std::lock_guard lock{mutex_};
    return queued_words_ > most_queued_words / 4;
}

Coverage Digester::coverage() const {
    const std::lock_guard lock{mutex_};
    return coverage_;
}

std::optional<std::string> Digester::failure() const {
    const std::lock_guard lock{mutex_};
    return failure_;
}

void Digester::put(Message message) {
    std::unique_lock lock{mutex_};
    if (auto* chunk = std::get_if<trace::TraceChunk>(&message)) {
        changed_.wait(lock, [&] { return queued_words_ < most_queued_words; });
        queued_words_ += words(*chunk);
    }
    // A beginning can wait for what follows it: waking the worker takes time, and the target
    // stands.
    const bool is_beginning = std::holds_alternative<Begin>(message);
    queue_.push_back(std::move(message));
    if (!is_beginning) changed_.notify_all();
}

void Digester::work() {
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19);
    std::unique_lock lock{mutex_};
    while (true) {
        changed_.wait(lock, [&] { return closed_ || !queue_.empty(); });
        if (queue_.empty()) return;
        auto message = std::move(queue_.front());
        queue_.pop_front();
        lock.unlock();
        try {
            std::visit([this](auto& m) { read(m); }, message);
        } catch (const std::exception& e) {
            // A failure of profiling never fails the program.
            const std::lock_guard relock{mutex_};
            failure_ = e.what();
        }
        lock.lock();
        if (auto* chunk = std::get_if<trace::TraceChunk>(&message)) {
            queued_words_ -= words(*chunk);
            changed_.notify_all();
        }
    }
}

void Digester::read(Begin& begin) {
    if (begin.stack && begin.maps) {
        for (const auto address : ptrace::unwind(*begin.stack))
            begin.start.call_stack.push_back(emu::locate(*begin.maps, modules_, address));
    }
    auto& readers = open_[begin.start.trace];
    for (auto& profiler : profilers_) readers.push_back(profiler->open(begin.start));
}

void Digester::read(trace::TraceChunk& chunk) {
    for (auto& reader : open_.at(chunk.trace)) reader->digest(chunk);
    std::uint64_t blocks = 0, instructions = 0;
    for (const auto id : chunk.blocks) {
        if (id == trace::discontinuity) continue;
        ++blocks;
        instructions += blocks_.at(id).instructions.size();
    }
    const std::lock_guard lock{mutex_};
    coverage_.blocks += blocks;
    coverage_.instructions += instructions;
}

void Digester::read(trace::TraceEnd& end) {
    for (auto& reader : open_.at(end.trace)) reader->finish(end);
    open_.erase(end.trace);
    const std::lock_guard lock{mutex_};
    ++coverage_.ended[end.reason];
}

void Digester::read(EndOfSample& end) {
    for (auto& profiler : profilers_) profiler->end_sample(end.sample);
    const std::lock_guard lock{mutex_};
    ++coverage_.samples;
}

}  // namespace shadowprof::shadow
