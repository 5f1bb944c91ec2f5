#include "sampling/requests/program_requests.h"

#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/utf8.h"
#include "proc/process_info.h"
#include "proc/thread_context.h"
#include "sampling/schedule/time_source.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

namespace {

using Kind = trace::RequestSight::Kind;

std::string path_of_program(pid_t pid) {
    std::array<char, PATH_MAX> path{};
    const auto size =
        ::readlink(fmt::format("/proc/{}/exe", pid).c_str(), path.data(), path.size());
    return size > 0 ? std::string(path.data(), static_cast<std::size_t>(size)) : std::string();
}

template <std::size_t size>
std::string hexadecimal(const std::array<std::byte, size>& bytes) {
    if (std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; })) return {};
    std::string text;
    for (const auto byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
    return text;
}

}  // namespace

void ProgramRequests::look_at(const std::shared_ptr<const proc::Maps>& maps) {
    const std::lock_guard lock{mutex_};
    if (!maps || maps == maps_) return;
    maps_ = maps;
    const auto program = path_of_program(memory_.pid());
    const auto is_musl = std::ranges::any_of(maps->modules(), [](const proc::MappedModule& module) {
        return module.path.find("/ld-musl-") != std::string::npos;
    });
    for (const auto& module : maps->modules()) {
        // The loader may not be through with it.
        constexpr int most_tries = 3;
        if (++modules_seen_[module.range.begin] > most_tries) continue;
        const auto found = proc::ThreadVariable::find(
            memory_, module, module.path == program, proc::name_of_thread_context,
            is_musl ? proc::ThreadBlocks::musl : proc::ThreadBlocks::glibc);
        if (!found) continue;
        const std::lock_guard quick{quick_};
        if (std::ranges::find(variables_, *found) == variables_.end()) variables_.push_back(*found);
        are_published_ = true;
    }
}

void ProgramRequests::program_is_new() {
    const std::lock_guard lock{mutex_};
    const std::lock_guard quick{quick_};
    are_published_ = false;
    maps_.reset();
    modules_seen_.clear();
    variables_.clear();
    fs_.clear();
    stopped_at_.clear();
    names_.reset();
    read_names_at_ = {};
    between_names_ = tuning::first_between_names;
    known_.clear();
}

void ProgramRequests::is_stopped(pid_t tid, Address fs, Address at) {
    const std::lock_guard quick{quick_};
    fs_[tid] = fs;
    stopped_at_[tid] = at;
}

void ProgramRequests::forget(pid_t tid) {
    const std::lock_guard quick{quick_};
    fs_.erase(tid);
    stopped_at_.erase(tid);
}

std::optional<Address> ProgramRequests::fs_of(pid_t tid) const {
    const std::lock_guard quick{quick_};
    const auto known = fs_.find(tid);
    return known == fs_.end() ? std::nullopt : known->second;
}

// Once, among the mappings that there are by now: what is not found then is learnt when the thread
// is stopped.
void ProgramRequests::seek_fs(pid_t tid, Address stack) {
    if (!are_published_) return;
    {
        const std::lock_guard quick{quick_};
        if (!fs_.try_emplace(tid).second) return;
    }
    const auto maps = proc::Maps::without_modules(memory_.pid());
    if (!maps) return;
    const auto found = proc::find_thread_pointer(memory_, *maps, proc::own_number_of(tid),
                                                 tid == memory_.pid(), stack);
    const std::lock_guard quick{quick_};
    if (auto& known = fs_[tid]; !known) known = found;
}

std::optional<ProgramRequests::Record> ProgramRequests::record(pid_t tid, Moment moment) const {
    if (!are_published_) return {};
    const auto fs = fs_of(tid);
    // A thread of this number may have ended, and another begun.
    if (!fs || !proc::is_thread_pointer(memory_, *fs)) return {};
    const auto variables = [&] {
        const std::lock_guard quick{quick_};
        return variables_;
    }();
    bool is_unknown = false;
    for (const auto& variable : variables) {
        const auto place = variable.of_thread(memory_, *fs);
        if (!place) continue;
        auto found = proc::read_thread_context(memory_, *place, moment == Moment::stopped);
        is_unknown |= !found;
        if (found && !found->empty()) return found;
    }
    return is_unknown ? std::nullopt : std::optional(Record{});
}

trace::RequestSight ProgramRequests::sight_of(const std::optional<Record>& record) {
    if (!are_published_) return {};
    if (!record) return {Kind::unknown, {}};
    const std::lock_guard lock{mutex_};
    auto request = record->empty() ? nullptr : request_in(*record);
    return {request ? Kind::known : Kind::none, std::move(request)};
}

trace::RequestSight ProgramRequests::of_stopped(pid_t tid) {
    auto sight = sight_of(record(tid, Moment::stopped));
    if (sight.kind == Kind::none && is_behind_call(tid)) sight.kind = Kind::unknown;
    return sight;
}

bool ProgramRequests::is_behind_call(pid_t tid) const {
    const auto at = [&] {
        const std::lock_guard quick{quick_};
        const auto known = stopped_at_.find(tid);
        return known == stopped_at_.end() ? Address{} : known->second;
    }();
    constexpr std::array call{std::byte{0x0f}, std::byte{0x05}};
    return memory_.read_as<std::array<std::byte, 2>>(Address{at.value - call.size()}) == call;
}

// Nothing if it says nothing.
std::shared_ptr<const trace::Request> ProgramRequests::request_in(const Record& record) {
    if (const auto known = known_.find(record); known != known_.end()) return known->second;
    const auto context = proc::parse_thread_context(record);
    if (!context) return {};
    auto request = std::make_shared<trace::Request>();
    request->trace = hexadecimal(context->trace);
    request->span = hexadecimal(context->span);
    for (const auto& [key, value] : context->attributes)
        if (auto name = name_of(key); !name.empty())
            request->attributes.push_back({std::move(name), model::printable(value)});
    std::ranges::sort(request->attributes);
    if (request->span.empty() && request->attributes.empty()) request.reset();
    if (known_.size() >= tuning::most_records_known) known_.clear();
    return known_[record] = std::move(request);
}

// Names are added as the program comes to need them. Where it publishes none numbers must do; where
// it publishes some, others mean nothing.
std::string ProgramRequests::name_of(std::uint8_t key) {
    if (!names_ || key >= names_->size()) read_names();
    if (!names_) return fmt::format("attribute {}", key);
    return key < names_->size() ? (*names_)[key] : std::string();
}

void ProgramRequests::read_names() {
    const auto now = Clock::now();
    if (now < read_names_at_) return;
    read_names_at_ = after(now, between_names_);
    between_names_ = std::min(2 * between_names_, tuning::longest_between_names);
    // The mapping may have come since.
    const auto fresh = proc::Maps::without_modules(memory_.pid());
    auto names = fresh ? proc::attribute_names(memory_, *fresh) : std::nullopt;
    if (!names) return;
    for (auto& name : *names) name = model::printable(name);
    if (names == names_) return;
    names_ = std::move(names);
    known_.clear();
}

}  // namespace shadowprof::sampling
