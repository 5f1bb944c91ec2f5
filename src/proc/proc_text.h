// Files of /proc as text. For the rooms that know the kernel's files.
#pragma once

#include <string>
#include <string_view>

namespace shadowprof::proc {

// A whole file of /proc; empty if it cannot be read, as when the process is gone.
std::string read_proc_file(const std::string& path);
// The same for a list, which the kernel writes page by page. Also empty if the process ends while
// the list is read, for that looks like the end of the list.
std::string read_proc_list(const std::string& path);

// The rest of the line of /proc/…/status that begins with `key` and a colon; empty if there is
// none.
std::string status_field(std::string_view status_text, std::string_view key);

}  // namespace shadowprof::proc
