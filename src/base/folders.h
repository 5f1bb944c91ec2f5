// Folders, and links on the way to them.
//
// In a folder that everybody may write to and that is sticky, such as /tmp, other users can put a
// link where we are about to go, and lead us to a place where only we may write. The kernel can
// refuse to follow such links (fs.protected_symlinks), but does not everywhere. We always do,
// wherever in a path they are.
#pragma once

#include <sys/stat.h>

#include <string>

#include "base/descriptor.h"

namespace shadowprof {

// Whether another user has put it into this folder, where it may be a trap.
bool is_others(int folder, const struct stat& entry);

// A folder to go on from (O_PATH), or none, and errno is set: EACCES if a link on the way is
// another user's. A relative path begins at `from`; an empty one is `from` itself.
Descriptor open_folder(const std::string& path, int from);
Descriptor open_folder(const std::string& path);

// Whether the name in the folder is another user's, or a link that leads through one that is.
bool leads_to_others(int folder, const std::string& name);

}  // namespace shadowprof
