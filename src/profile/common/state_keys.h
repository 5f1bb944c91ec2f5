// The keys that values and events can be told apart by beside their place: the state of the thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shadowprof::profile {

struct StateKeys {
    bool return_address = false;
    bool caller = false;  // the function that the return address is in; excludes the other
    bool thread = false;  // by its name
    bool tid = false;
    bool processor = false, scheduling = false;
    bool system_call = false;                  // the last one of the thread
    bool error = false;                        // errno
    bool signals = false;                      // how many of their handlers it is in
    bool locks = false;                        // that it holds
    bool span = false;                         // of the request that it works for
    std::vector<std::string> attributes = {};  // … its attributes of these names
    bool operator==(const StateKeys&) const = default;

    bool any() const { return *this != StateKeys{}; }
    // Whether more must be captured than what the thread executes.
    bool reads_values() const { return system_call || error || signals || locks; }
    bool has_context() const { return return_address || caller; }
    StateKeys operator|(const StateKeys& other) const;
};

// The keys as people write them.
struct StateKeyWord {
    std::string_view words;
    bool StateKeys::*key;
};
const std::vector<StateKeyWord>& state_key_words();
// "thread,span"
std::string words_of(const StateKeys& keys);
// Before the name of an attribute.
inline constexpr std::string_view attribute_key_word = "attribute";

}  // namespace shadowprof::profile
