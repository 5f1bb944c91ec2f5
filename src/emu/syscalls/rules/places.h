// Where a path leads, as a replica sees it: the kernel's answer, corrected by the changes of names
// that were only faked, and refused where the program, which is ahead of its replica, may have
// changed what is there.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include "emu/syscalls/rules/rule.h"

namespace shadowprof::emu::rules {

inline constexpr const char* about_itself = "about the process itself";

constexpr int no_directory = -1;
// Which argument of a call is the path, and which one holds the directory that a relative path
// starts from.
struct PathArgument {
    int path;
    int directory = no_directory;
};

struct Place {
    int directory = AT_FDCWD;
    std::string path;
    int error = 0;  // not 0: nothing is there
    struct stat status {};
    std::uint64_t path_at = 0;  // in the program's memory
    FileId id;                  // of the file that is there
    bool is_changed = false;    // the name stands for another file than it did, or for none
    bool is_written = false;    // since the fork: size and times are not known
    bool is_earlier = false;    // changed since the fork, from which the status is
    // The name, if the path has one of its own ("." and "/" have none) and the caller wanted it.
    std::optional<FakedNames::Name> name;

    bool exists() const { return error == 0; }
    bool is(mode_t type) const { return exists() && (status.st_mode & S_IFMT) == type; }
};
using PlaceOrAction = std::variant<Place, ReplicaAction>;

enum class Want : std::uint8_t { status, status_and_name, name_of_directory };
// The program is ahead of its replica: a file that it has created since would be found too early.
// That does not matter to a call that truncates the file anyway.
enum class IfNew : std::uint8_t { give_up, take };

PlaceOrAction place_of(Request&, PathArgument, bool follow, Want, IfNew = IfNew::give_up);

struct SplitPath {
    std::string parent;  // with its slash; or "."
    std::string leaf;    // empty if there is none that could be created or removed
};
SplitPath split(const std::string& path);

// Whether the call follows a link that the path ends with.
bool follows_links(const Request&);
bool reads_link(const Request&);
// A link in /proc that is different for every process, whatever path leads there.
bool leads_to_itself(Request&, const Place&);

// The file there, to be changed.
FakedFile& faked_at(Request&, const Place&);
// Whether permissions or owner have been changed.
bool has_other_rights(Request&, const Place&);
// Nothing: the program may access the file in this mode. Otherwise what to do with the call.
std::optional<ReplicaAction> refuses(Request&, const Place&, int mode);
// Nothing: the program may create and remove names in the directory of the place.
std::optional<ReplicaAction> refuses_changes(Request&, const Place&);

}  // namespace shadowprof::emu::rules
