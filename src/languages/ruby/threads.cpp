#include "languages/ruby/threads.h"

#include <algorithm>
#include <array>
#include <map>

namespace shadowprof::languages::ruby {

namespace {

// Large enough for each of the structures.
using Buffer = std::array<std::byte, 160>;

// What an environment has at and before its address.
struct Environment {
    Address method, outer;
    std::uint64_t flags = 0;
};
constexpr std::uint64_t kind_mask = 0x7fff0001, of_native = 0x55550001, of_nothing = 0x79990001,
                        begins_loop = 0x20, is_native = 0x80, is_outermost = 0x02;
constexpr std::array<std::uint64_t, 9> kinds{0x11110001, 0x22220001, 0x33330001,
                                             0x44440001, of_native,  0x66660001,
                                             0x77770001, 0x78880001, of_nothing};

std::optional<Environment> environment_at(Address at, PagesOnce& pages) {
    Environment found;
    if (!may_be_pointer(at) ||
        !pages.read(at - 2 * sizeof(Address), std::as_writable_bytes(std::span{&found, 1})))
        return {};
    return found;
}

// All of them by one call, each once.
class Objects {
  public:
    void want(Address at) { objects_.try_emplace(at); }
    bool read(const Memory& memory, std::size_t size) {
        std::vector<Memory::Part> parts;
        for (auto& [at, bytes] : objects_) {
            if (!may_be_pointer(at)) return false;
            parts.push_back({at, std::span{bytes}.first(size)});
        }
        return memory.read(parts) == parts.size();
    }
    const Buffer& at(Address at) const { return objects_.at(at); }

  private:
    std::map<Address, Buffer> objects_;
};

}  // namespace

bool Thread::is_of_thread(std::span<const std::byte> state) const {
    if (field<Address>(state, layout_.thread.vm) != place_.machine) return false;
    const auto native = field<Address>(state, layout_.thread.native);
    Buffer of_native_thread{};
    if (layout_.thread.native != 0) {
        if (!may_be_pointer(native) || !memory_.read(native, std::span{of_native_thread}.first(32)))
            return false;
        state = of_native_thread;
    }
    return field<pid_t>(state, layout_.thread.number) == tid_ ||
           is_pthread_of(memory_, field<Address>(state, layout_.thread.pthread), tid_);
}

// Rings, which the list's head is a part of.
std::optional<Address> Thread::find_in(Address ractor) const {
    const auto head = ractor + layout_.ractor.threads;
    auto next = memory_.read_as<Address>(head);
    for (std::size_t n = 0; next && *next != head; ++n) {
        const auto thread = *next - layout_.thread.next;
        Buffer state{};
        if (n > most_threads || !may_be_pointer(thread) ||
            !memory_.read(thread, std::span{state}.first(layout_.thread.size)) ||
            field<Address>(state, layout_.thread.ractor) != ractor)
            return {};
        if (is_of_thread(state)) return thread;
        next = field<Address>(state, layout_.thread.next);
    }
    if (!next) return {};
    return Address{};
}

std::optional<Address> Thread::find_state() const {
    const auto head = place_.machine + layout_.vm.ractors;
    auto next = memory_.read_as<Address>(head);
    for (std::size_t n = 0; next && *next != head; ++n) {
        const auto ractor = *next - layout_.ractor.next;
        if (n > most_interpreters || !may_be_pointer(ractor)) return {};
        const auto thread = find_in(ractor);
        if (!thread || thread->value != 0) return thread;
        next = memory_.read_as<Address>(*next);
    }
    if (!next) return {};
    return Address{};
}

std::optional<Glance> Thread::look() {
    Glance glance;
    // Threads that execute none of it today may do so tomorrow.
    if (!known_ || known_->value == 0 || !look_at(*known_, glance)) {
        known_ = find_state();
        glance = {};
        if (!known_) return {};
        if (known_->value != 0 && !look_at(*known_, glance)) return {};
    }
    return glance;
}

// False: it is not as it was, or damaged.
bool Thread::look_at(Address thread, Glance& glance) const {
    Buffer state{}, context{};
    if (!memory_.read(thread, std::span{state}.first(layout_.thread.size)) || !is_of_thread(state))
        return false;
    const auto at = field<Address>(state, layout_.thread.context);
    if (at.value == 0) return true;  // not yet, or not any more
    if (!may_be_pointer(at) || !memory_.read(at, std::span{context}.first(layout_.context.size)) ||
        field<Address>(context, layout_.context.thread) != thread)
        return false;
    PagesOnce pages{memory_};
    return follow(context, pages, glance) && identify(memory_, layout_, glance.frames);
}

// Frames lie one after the other, the innermost first, up to the end of the language's stack.
bool Thread::follow(std::span<const std::byte> context, PagesOnce& pages, Glance& glance) const {
    constexpr std::uint64_t most_words = 1u << 27;
    const auto words = field<std::uint64_t>(context, layout_.context.stack_words);
    const auto stack = field<Address>(context, layout_.context.stack);
    auto frame = field<Address>(context, layout_.context.frame);
    if (stack.value == 0) return true;  // none yet
    const auto end = stack + words * sizeof(Address);
    if (words > most_words || !may_be_pointer(stack) || !may_be_pointer(frame) || frame < stack ||
        end < frame || (end - frame) % layout_.frame.size != 0)
        return false;
    for (; frame < end && glance.frames.size() < most_frames; frame += layout_.frame.size) {
        Buffer bytes{};
        if (!pages.read(frame, std::span{bytes}.first(layout_.frame.size))) return false;
        const auto environment =
            environment_at(field<Address>(bytes, layout_.frame.environment), pages);
        if (!environment || std::ranges::find(kinds, environment->flags & kind_mask) == kinds.end())
            return false;
        Glance::Frame found;
        if (environment->flags & is_native) {
            // Others that are native are no methods.
            if ((environment->flags & kind_mask) != of_native) continue;
            found.function = found.owner = environment->method;
        } else {
            const auto position = field<Address>(bytes, layout_.frame.position);
            found.function = field<Address>(bytes, layout_.frame.code);
            // These execute nothing.
            if (found.function.value == 0 || position.value == 0 ||
                (environment->flags & kind_mask) == of_nothing)
                continue;
            const auto method = method_of(field<Address>(bytes, layout_.frame.environment), pages);
            if (!method || !may_be_pointer(position)) return false;
            found.owner = *method;
            found.position = static_cast<std::int64_t>(position.value);
            found.is_outermost_of_loop = environment->flags & begins_loop;
        }
        glance.frames.push_back(found);
    }
    if (!glance.frames.empty()) glance.frames.back().is_outermost_of_loop = true;
    return true;
}

// Blocks are in the environment of their method. 0: it is in none.
std::optional<Address> Thread::method_of(Address at, PagesOnce& pages) const {
    constexpr unsigned most_blocks = 64;
    for (unsigned n = 0; n < most_blocks; ++n) {
        const auto environment = environment_at(at, pages);
        if (!environment) return {};
        if (environment->flags & is_outermost) return environment->method;
        constexpr std::uint64_t tags = 3;
        at = Address{environment->outer.value & ~tags};
    }
    return {};
}

bool identify(const Memory& memory, const Layout& layout, std::vector<Glance::Frame>& frames) {
    Objects objects, methods, bodies;
    for (const auto& frame : frames) {
        objects.want(frame.function);
        if (frame.owner.value != 0) objects.want(frame.owner);
    }
    if (!objects.read(memory, internal_size)) return false;
    for (auto& frame : frames) {
        const bool is_native_frame = frame.function == frame.owner;
        if (frame.owner.value != 0)
            if (const auto method = wrapped_method(objects.at(frame.owner))) frame.owner = *method;
        if (frame.owner.value != 0) methods.want(frame.owner);
        if (is_native_frame) {
            frame.function = frame.owner;
            continue;
        }
        const auto body = body_of_code(objects.at(frame.function));
        if (!body) return false;
        bodies.want(*body);
    }
    if (!methods.read(memory, internal_size) || !bodies.read(memory, layout.code.size))
        return false;
    for (auto& frame : frames) {
        const auto method =
            frame.owner.value != 0 ? method_facts(methods.at(frame.owner)) : std::nullopt;
        const bool is_native_frame = frame.function == frame.owner;
        if (!method) {
            if (is_native_frame) return false;
            frame.owner = {};  // of a class or a file
        }
        frame.contents = method ? method->hash() : 0;
        if (is_native_frame) continue;
        const auto body = *body_of_code(objects.at(frame.function));
        const auto code = code_facts(layout, body, bodies.at(body));
        if (!code) return false;
        const auto words = static_cast<std::int64_t>(code->words);
        const auto bytes = frame.position - static_cast<std::int64_t>(code->encoded.value);
        if (bytes < 0 || bytes % 8 != 0 || bytes / 8 > words) return false;
        frame.position = bytes / 8;
        frame.contents = combine_hashes(frame.contents, code->hash());
    }
    return true;
}

}  // namespace shadowprof::languages::ruby
