#include "languages/python/threads.h"

#include <algorithm>
#include <array>

namespace shadowprof::languages::python {

namespace {

// FRAME_OWNED_BY_…
constexpr std::uint8_t owner_is_caller = 3;

// Large enough for each of the structures.
using Buffer = std::array<std::byte, 512>;

}  // namespace

// By the number that the kernel knows it by, where the state has that.
bool Thread::is_of_thread(std::span<const std::byte> state) const {
    if (layout_.thread.native_id != 0 &&
        field<std::uint64_t>(state, layout_.thread.native_id) == static_cast<std::uint64_t>(tid_))
        return true;
    return is_pthread_of(memory_, field<Address>(state, layout_.thread.id), tid_);
}

std::optional<Thread::States> Thread::find_states() const {
    const auto newest = memory_.read_as<Address>(place_.runtime + layout_.interpreters);
    if (!newest) return {};
    States states{*newest, {}};
    std::size_t interpreters = 0, threads = 0;
    for (auto interpreter = *newest; interpreter.value != 0;) {
        if (++interpreters > most_interpreters || !may_be_pointer(interpreter)) return {};
        const auto first = memory_.read_as<Address>(interpreter + layout_.interpreter.threads);
        const auto next = memory_.read_as<Address>(interpreter + layout_.interpreter.next);
        if (!first || !next) return {};
        for (auto thread = *first; thread.value != 0;) {
            Buffer bytes{};
            if (++threads > most_threads || !may_be_pointer(thread) ||
                !memory_.read(thread, std::span{bytes}.first(layout_.thread_size())))
                return {};
            if (field<Address>(bytes, layout_.thread.interpreter) != interpreter) return {};
            if (is_of_thread(bytes)) states.all.push_back(thread);
            thread = field<Address>(bytes, layout_.thread.next);
        }
        interpreter = *next;
    }
    return states;
}

std::optional<Glance> Thread::look() {
    Glance glance;
    // Threads that execute none of it today may do so tomorrow.
    if (!known_ || known_->all.empty() || !look_at(*known_, glance)) {
        known_ = find_states();
        glance = {};
        if (!known_ || !look_at(*known_, glance)) return {};
    }
    return glance;
}

// False: they are not as they were, or damaged.
bool Thread::look_at(const States& states, Glance& glance) const {
    std::vector<Buffer> bytes(states.all.size());
    Address newest;
    std::vector<Memory::Part> parts{
        {place_.runtime + layout_.interpreters, std::as_writable_bytes(std::span{&newest, 1})}};
    for (std::size_t n = 0; n < bytes.size(); ++n)
        parts.push_back({states.all[n], std::span{bytes[n]}.first(layout_.thread_size())});
    if (memory_.read(parts) != parts.size() || newest != states.newest) return false;
    PagesOnce pages{memory_};
    for (const auto& state : bytes) {
        const auto frame = is_of_thread(state) ? frame_of(state) : std::nullopt;
        if (!frame || !follow(*frame, pages, glance)) return false;
    }
    return identify(glance);
}

std::optional<Address> Thread::frame_of(std::span<const std::byte> state) const {
    const auto of_thread = field<Address>(state, layout_.thread.frame);
    if (!layout_.frame_of_cframe || of_thread.value == 0) return of_thread;
    return memory_.read_as<Address>(of_thread + *layout_.frame_of_cframe);
}

bool Thread::follow(Address frame, PagesOnce& pages, Glance& glance) const {
    std::vector<Address> seen;
    while (frame.value != 0 && glance.frames.size() < most_frames) {
        Buffer buffer{};
        const auto bytes = std::span{buffer}.first(layout_.frame.size);
        if (!may_be_pointer(frame) || seen.size() > 2 * most_frames ||
            std::ranges::find(seen, frame) != seen.end() || !pages.read(frame, bytes))
            return false;
        seen.push_back(frame);
        frame = field<Address>(bytes, layout_.frame.previous);
        const auto owner = field<std::uint8_t>(bytes, layout_.frame.owner);
        if (layout_.has_frame_objects()) {
            if (field<Address>(bytes, layout_.type) != place_.types.frame) return false;
        } else if (owner > owner_is_caller) {
            return false;
        } else if (owner == owner_is_caller) {
            if (!layout_.has_frames_of_callers()) return false;
            if (!glance.frames.empty()) glance.frames.back().is_outermost_of_loop = true;
            continue;
        }
        Glance::Frame found;
        found.function = field<Address>(bytes, layout_.frame.code);
        found.is_outermost_of_loop = layout_.has_frame_objects() ||
                                     (layout_.frame.is_entry != 0 &&
                                      field<std::uint8_t>(bytes, layout_.frame.is_entry) != 0);
        if (!may_be_pointer(found.function)) return false;
        if (layout_.has_frame_objects()) {
            // 3.10 counts instructions, of two bytes.
            const std::int64_t position = field<std::int32_t>(bytes, layout_.frame.position);
            found.position = layout_.minor == 10 ? 2 * position : position;
        } else {
            const auto at = field<Address>(bytes, layout_.frame.position);
            found.position =
                static_cast<std::int64_t>(at - (found.function + layout_.code.instructions));
        }
        glance.frames.push_back(found);
    }
    if (!glance.frames.empty()) glance.frames.back().is_outermost_of_loop = true;
    return true;
}

// Each function is code, and has the position.
bool Thread::identify(Glance& glance) const {
    std::vector<Address> functions;
    for (const auto& frame : glance.frames) functions.push_back(frame.function);
    std::ranges::sort(functions);
    functions.erase(std::unique(functions.begin(), functions.end()), functions.end());
    std::vector<Buffer> objects(functions.size());
    std::vector<Memory::Part> parts;
    for (std::size_t n = 0; n < functions.size(); ++n)
        parts.push_back({functions[n], std::span{objects[n]}.first(layout_.code.size)});
    if (memory_.read(parts) != parts.size()) return false;
    for (auto& frame : glance.frames) {
        const auto n = std::ranges::lower_bound(functions, frame.function) - functions.begin();
        const auto facts = code_facts(layout_, place_.types, objects[static_cast<std::size_t>(n)]);
        if (!facts) return false;
        constexpr std::int64_t before_the_first = -2;
        const auto end = static_cast<std::int64_t>(2 * facts->instructions);
        if (frame.position < before_the_first || (end != 0 && frame.position > end)) return false;
        frame.contents = facts->hash();
    }
    return true;
}

}  // namespace shadowprof::languages::python
