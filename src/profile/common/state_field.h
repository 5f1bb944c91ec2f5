// The state of a thread in hotlists and files: a text of each key that is known, but for places,
// which are fields of their own.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "model/entry_fields.h"

namespace shadowprof::profile {

enum class StateKey : std::uint8_t {
    thread,
    tid,
    processor,
    scheduling,
    system_call,
    error,
    signals,
    locks,
    span,
    attributes,
};

inline constexpr std::array<std::string_view, 10> state_key_names{
    "thread", "tid",     "processor", "scheduling", "system_call",
    "errno",  "signals", "locks",     "span",       "attributes"};

struct StateText {
    StateKey key{};
    std::string text;
    auto operator<=>(const StateText&) const = default;
};
using StateTexts = std::vector<StateText>;  // by key

// "worker, processor 1, after read, errno EAGAIN"
std::string state_text(const StateTexts& state);

// `Entry` has `StateTexts state`. Part of what the entry is.
struct StateField : model::EntryField {
    // Before its use, for clang.
    static auto key_of(model::JsonCursor& in, StateTexts& state, StateKey key) {
        return model::optional(state_key_names[static_cast<std::size_t>(key)], [&in, &state, key] {
            state.push_back({key, in.text()});
        });
    }

    template <class Entry, class... Context>
    void write(model::JsonOutput& out, const Entry& e, const Context&...) const {
        for (const auto& [key, text] : e.state)
            out.key(state_key_names[static_cast<std::size_t>(key)]).text(text);
    }
    template <class Entry>
    auto keys(model::JsonCursor& in, Entry& e, model::NothingToKeep&) const {
        return [&]<std::size_t... i>(std::index_sequence<i...>) {
            return std::tuple(key_of(in, e.state, static_cast<StateKey>(i))...);
        }
        (std::make_index_sequence<state_key_names.size()>());
    }
    template <class Entry>
    void end_reading(model::JsonCursor&, Entry& e, model::NothingToKeep&) const {
        std::sort(e.state.begin(), e.state.end());
        e.state.shrink_to_fit();
    }
    void describe(model::ObjectSchema& schema) const {
        for (const auto name : state_key_names)
            schema.add(name, model::Json<std::string>::schema(), false,
                       "if it was asked for, and is known");
    }
    template <class Entry>
    auto identity(const Entry& e) const {
        return std::tie(e.state);
    }
    template <class From, class FromField, class To, class Map>
    void copy(const From& from, const FromField&, To& to, const Map&) const {
        to.state = from.state;
    }
};

}  // namespace shadowprof::profile
