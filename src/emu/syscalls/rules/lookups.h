// Looking at files by their path, in a replica: status, permissions, attributes, links.
#pragma once

#include "emu/syscalls/rules/places.h"

namespace shadowprof::emu::rules {

ReplicaAction look_up(Request&, PathArgument);
ReplicaAction look_whether_allowed(Request&, PathArgument);
ReplicaAction look_at(Request&, PathArgument);
ReplicaAction tell_status(Request&, PathArgument, std::size_t buffer);
ReplicaAction tell_status_at(Request&);
ReplicaAction tell_extended_status(Request&);

template <int path, int directory = no_directory>
inline constexpr ReplicaRule looks_up{
    "executed, if no faked change of names could show; otherwise ends", [](Request& r) {
        return look_up(r, {path, directory});
    }};
template <int path, int directory = no_directory>
inline constexpr ReplicaRule looks_whether_allowed{
    "executed; answered for what the replica pretended to create or remove", [](Request& r) {
        return look_whether_allowed(r, {path, directory});
    }};
// For attributes that the replica does not keep.
template <int path, int directory = no_directory>
inline constexpr ReplicaRule looks_at{
    "executed, if no faked output or change of names could show; otherwise ends", [](Request& r) {
        return look_at(r, {path, directory});
    }};

inline constexpr const char* tells_status_text =
    "answered, with what the replica pretended; files that were written to since: ends";
inline constexpr ReplicaRule tells_status{tells_status_text,
                                          [](Request& r) { return tell_status(r, {0}, 1); }};
inline constexpr ReplicaRule tells_status_at{tells_status_text, tell_status_at};
inline constexpr ReplicaRule tells_extended_status{
    "executed, or answered with what the replica pretended; files that were written to since: ends",
    tell_extended_status};

}  // namespace shadowprof::emu::rules
