// Changes of names, sizes and attributes of files, in a replica: answered, and remembered as far as
// faked_files.h can.
#pragma once

#include "emu/syscalls/rules/places.h"

namespace shadowprof::emu::rules {

ReplicaAction pretend_creation(Request&, PathArgument);
ReplicaAction pretend_removal(Request&, PathArgument);
ReplicaAction pretend_second_name(Request&, PathArgument old, PathArgument fresh);
ReplicaAction pretend_file_change(Request&, PathArgument);
ReplicaAction change_open_file(Request&);
ReplicaAction pretend_touch(Request&);

// Directories, links and special files are not kept.
template <int path, int directory = no_directory>
inline constexpr ReplicaRule creates{
    "answered: success, or why not; then a call about any name ends the sample", [](Request& r) {
        return pretend_creation(r, {path, directory});
    }};
template <int path, int directory = no_directory>
inline constexpr ReplicaRule removes{
    "files: answered, success or why not, and the replica remembers; directories: answered, if "
    "that fails; otherwise ends",
    [](Request& r) {
        return pretend_removal(r, {path, directory});
    }};
template <int path, int directory, int new_path, int new_directory>
inline constexpr ReplicaRule gives_name{
    "files: answered, success or why not, and the replica remembers; directories: answered, if "
    "that fails, otherwise ends; others: answered, and then a call about any name ends the sample",
    [](Request& r) {
        return pretend_second_name(r, {path, directory}, {new_path, new_directory});
    }};

template <int path, int directory = no_directory>
inline constexpr ReplicaRule changes_file{
    "answered, if the program owns the file (truncate: may write to it); the replica remembers "
    "sizes, permissions and owners, and asking for other attributes that were changed ends the "
    "sample; otherwise ends",
    [](Request& r) {
        return pretend_file_change(r, {path, directory});
    }};
inline constexpr ReplicaRule changes_open_file{
    "answered, if the file is open for writing and the program owns it; the replica remembers "
    "permissions and owners, and asking for other attributes that were changed ends the sample; "
    "otherwise ends",
    change_open_file};
inline constexpr ReplicaRule touches{
    "answered, if the program owns the file; asking for what was changed then ends the sample; "
    "otherwise ends",
    pretend_touch};

}  // namespace shadowprof::emu::rules
