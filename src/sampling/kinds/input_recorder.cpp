#include "sampling/kinds/input_recorder.h"

#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "proc/memory.h"
#include "sampling/schedule/time_source.h"

namespace shadowprof::sampling {

using ptrace::EventKind;

namespace {

class OriginalsMemory : public emu::GuestMemory {
  public:
    explicit OriginalsMemory(pid_t pid) : memory_(pid) {}
    bool read(Address from, std::span<std::byte> into) override {
        return memory_.read(from, into) == into.size();
    }
    bool write(Address, std::span<const std::byte>) override { return false; }

  private:
    proc::Memory memory_;
};

HeardCall heard_by(pid_t thread, const ptrace::Registers& registers) {
    OriginalsMemory memory{thread};
    HeardCall heard{
        .call = {static_cast<std::int32_t>(registers.raw.orig_rax), registers.arguments()},
        .result = registers.result()};
    const auto ranges = emu::delivered(heard.call, heard.result, memory);
    if (!ranges) return heard;
    for (const auto& range : *ranges) {
        HeardCall::Written written{range.begin, std::vector<std::byte>(range.size())};
        if (!memory.read(range.begin, written.bytes)) return heard;
        heard.written.push_back(std::move(written));
    }
    heard.can_be_told = true;
    return heard;
}

}  // namespace

std::shared_ptr<Journal> InputRecorder::begin(const ptrace::Thread& thread, AddressRange ours) {
    auto journal = std::make_shared<Journal>();
    recordings_[&thread] = {journal, ours, after(Clock::now(), tuning::longest_recording), 0, 0};
    return journal;
}

bool InputRecorder::take(const ptrace::Event& event) {
    const bool is_exit = event.kind == EventKind::system_call_exit;
    const auto found = recordings_.find(event.thread);
    if (!is_exit && event.kind != EventKind::system_call_entry) {
        // A signal's handler, say, is nothing that the replica hears of.
        if (found != recordings_.end()) {
            found->second.journal->close(Journal::Close::is_broken_off);
            recordings_.erase(found);
        }
        return false;
    }
    if (found == recordings_.end()) {  // any more
        let_go_ = Clock::now();
        event.thread->resume();
        return true;
    }
    auto& recording = found->second;
    const bool goes_on = record(*event.thread, recording, is_exit);
    let_go_ = Clock::now();
    if (goes_on) {
        event.thread->resume_to_system_call();
        tracer_.listen(tuning::listens_longer);
        return true;
    }
    event.thread->resume();
    recording.journal->close(is_full(recording) ? Journal::Close::is_full
                                                : Journal::Close::is_broken_off);
    recordings_.erase(found);
    return true;
}

bool InputRecorder::record(const ptrace::Thread& thread, Recording& recording, bool is_exit) {
    auto& journal = *recording.journal;
    if (!journal.is_wanted()) return false;
    if (!is_exit) return true;
    const auto registers = thread.registers();
    if (!registers) return false;
    if (recording.ours.contains(registers->rip()) || !registers->in_system_call()) return true;
    if (registers->will_call_again()) return true;
    if (registers->result() == -EINTR || registers->raw.orig_rax == SYS_restart_syscall)
        return false;
    auto heard = heard_by(thread.tid(), *registers);
    for (const auto& written : heard.written) recording.bytes += written.bytes.size();
    journal.add(std::move(heard));
    ++recording.calls;
    return !is_full(recording);
}

bool InputRecorder::is_full(const Recording& recording) const {
    return recording.calls >= static_cast<std::size_t>(calls_wanted_) ||
           recording.bytes >= tuning::most_bytes_recorded;
}

void InputRecorder::end_overdue(Clock::time_point now) {
    std::erase_if(recordings_, [&](const auto& one) {
        const auto& recording = one.second;
        const bool is_over = now >= recording.until || !recording.journal->is_wanted();
        if (is_over) recording.journal->close(Journal::Close::is_broken_off);
        return is_over;
    });
}

void InputRecorder::end() {
    for (const auto& [thread, recording] : recordings_)
        recording.journal->close(Journal::Close::is_broken_off);
    recordings_.clear();
}

// Where samples are over by time fewer calls have to be recorded for them.
void InputRecorder::learn_from(const Journal& journal) {
    constexpr double keeps = 0.9, room = 1.5, most = tuning::most_calls,
                     fewest = tuning::fewest_calls;
    const auto passed = static_cast<double>(journal.passed());
    calls_wanted_ = journal.was_told_all() ? most : std::max(calls_wanted_ * keeps, passed * room);
    calls_wanted_ = std::clamp(calls_wanted_, fewest, most);
}

}  // namespace shadowprof::sampling
