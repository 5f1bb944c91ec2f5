// Calls on open files: closing, duplicating, status, offsets, flags, locks.
#pragma once

#include "emu/syscalls/rules/rule.h"

namespace shadowprof::emu::rules {

inline constexpr const char* number_is_unknown = "with a number that is not known";

MaybeAnswer close_known(Request&);
MaybeAnswer status_of_descriptor(Request&, std::size_t buffer);
// C libraries implement fstat as newfstatat of a descriptor and an empty path. `flags` is the
// argument that holds AT_EMPTY_PATH.
bool names_a_descriptor(Request&, std::size_t flags);
MaybeAnswer status_at(Request&);
MaybeAnswer move_offset(Request&);
MaybeAnswer fcntl_known(Request&);
MaybeAnswer ioctl_known(Request&);
MaybeAnswer watch_accepted(Request&);
ReplicaAction close_descriptor(Request&);
ReplicaAction duplicate(Request&);
ReplicaAction duplicate_onto(Request&);
ReplicaAction control_descriptor(Request&);
ReplicaAction lock_file(Request&);
ReplicaAction watch(Request&);
ReplicaAction control_device(Request&);
bool is_unchanged_own_directory(Request&);

// --- In both ---

inline constexpr BurstRule closes_if_known{"answered, if the descriptor is known; otherwise ends",
                                           close_known};
inline constexpr BurstRule tells_file_status{"answered, if known; otherwise ends",
                                             [](Request& r) { return status_of_descriptor(r, 1); }};
inline constexpr BurstRule tells_file_status_at{
    "descriptor with AT_EMPTY_PATH: answered, if known; otherwise ends", status_at};
inline constexpr BurstRule moves_own_offset{
    "answered for files of known offset, which the sample keeps as its own; otherwise ends",
    move_offset};
inline constexpr BurstRule fcntl_if_known{
    "F_GETFL, F_SETFL: answered from the sample's own flags, if known; owners: answered, "
    "success; locks: answered, if nobody else has one; otherwise ends",
    fcntl_known};
inline constexpr BurstRule ioctl_if_known{
    "terminal queries on what is known to be none: answered, ENOTTY; FIONBIO: kept in the sample's "
    "own flags; otherwise ends",
    ioctl_known};
inline constexpr BurstRule accepts_watch{
    "answered, if the watched descriptor is known; otherwise ends", watch_accepted};

// --- In a replica ---

inline constexpr const char* executed_if_held =
    "executed, or answered for what the replica does not hold";
inline constexpr ReplicaRule closes{executed_if_held, close_descriptor};
inline constexpr ReplicaRule duplicates{executed_if_held, duplicate};
inline constexpr ReplicaRule duplicates_onto{executed_if_held, duplicate_onto};
inline constexpr ReplicaRule controls_descriptor{
    "F_DUPFD: executed, or answered for what the replica does not hold; F_GETFD, F_SETFD, F_GETFL, "
    "F_SETFL: answered from the replica's own flags, if known; owners: answered, success; locks: "
    "answered, if nobody else has one; otherwise ends",
    control_descriptor};
inline constexpr ReplicaRule locks_file{
    "answered: success; ends if another may have the lock, which the program does not wait for",
    lock_file};
inline constexpr ReplicaRule watches{"files and directories: answered, EPERM; otherwise ends",
                                     watch};
inline constexpr ReplicaRule controls_device{
    "terminal queries on what is none: answered, ENOTTY; FIOCLEX, FIONCLEX, FIONBIO: kept in the "
    "replica's own flags; otherwise ends",
    control_device};

inline constexpr Proviso is_own_directory{
    "the replica opened the directory itself, and no names have come or gone since",
    is_unchanged_own_directory};
inline constexpr Proviso is_own_and_unchanged{
    "the replica opened it itself, and it was not changed by faked output", [](Request& request) {
        const auto& file = request.file();
        return file.opened_here && file.is_held && request.facts.faked.file(file.id) == nullptr;
    }};
inline constexpr Proviso is_directory{"it is a directory", [](Request& request) {
                                          return request.file().kind == OpenFile::Kind::directory &&
                                                 request.file().is_held;
                                      }};

}  // namespace shadowprof::emu::rules
