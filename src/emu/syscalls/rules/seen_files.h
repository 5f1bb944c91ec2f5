// Files as the sample sees them: as they would be if every effect that was reported to it had
// happened (see faked_files.h).
#pragma once

#include "emu/syscalls/rules/rule.h"

namespace shadowprof::emu::rules {

inline constexpr const char* shows_faked = "would show a faked effect";
inline constexpr const char* would_show_in_memory = "to a file that is mapped";
inline constexpr const char* bytes_unknown = "of bytes that are not known";

constexpr std::int64_t own_offset = -1;  // stands for the file's offset, which moves

bool is_writable(const OpenFile&);
bool has_no_offset(const OpenFile&);
// The file as the sample would see it from now on; null if nothing is known of it.
FakedFile* faked(GuestFacts&, const OpenFile&);
// With the sample's own changes; nothing if some of them are not kept.
std::optional<struct stat> status_as_seen(GuestFacts&, const OpenFile&);
// Writes of the sample do not get into memory, so a file that is mapped must not change.
bool is_mapped(GuestFacts&, const FileId&);

// /dev/null and its like are the same for every process.
enum class PlainDevice : std::uint8_t { none, null, zero, random };
constexpr unsigned memory_devices = 1;  // their major number
PlainDevice plain_device(const std::optional<struct stat>& status);

// Permissions and owners, for later calls to see. `first` is the argument after the file.
bool changes_owner(const Request&);
void change_attributes(const Request&, FakedFile&, std::size_t first);

}  // namespace shadowprof::emu::rules
