// The request that a thread works for, as it says itself: programs publish that for observers.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace shadowprof::trace {

struct RequestAttribute {
    std::string name, value;
    auto operator<=>(const RequestAttribute&) const = default;
};

struct Request {
    std::string trace, span;                   // hexadecimal; empty if there is none
    std::vector<RequestAttribute> attributes;  // by name
    bool operator==(const Request&) const = default;
};

// What was seen of it at one moment.
struct RequestSight {
    enum class Kind : std::uint8_t {
        unpublished,  // the program publishes none
        none,         // the thread works for none
        unknown,      // it could not be read, or not in time
        known,
    } kind = Kind::unpublished;
    std::shared_ptr<const Request> request;  // if known
};

}  // namespace shadowprof::trace
