// What is known of the sampled thread, and what has become of it during the sample.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/address.h"
#include "emu/syscalls/descriptors.h"
#include "emu/syscalls/faked_files.h"
#include "emu/syscalls/guest_queries.h"

namespace shadowprof::emu {

// Effects that were reported to the sample as done and that have not happened.
struct FakedEffects {
    std::map<FileId, FakedFile> files;
    FakedNames names;
    // Files that lost their name, and since when; none of them was among `files` then.
    std::map<FileId, timespec> nameless;
    bool scheduling = false;  // priority, policy, affinity

    FakedFile* file(const FileId& id) {
        const auto found = files.find(id);
        return found == files.end() ? nullptr : &found->second;
    }
    bool any_other_rights() const {
        return std::any_of(files.begin(), files.end(),
                           [](const auto& file) { return file.second.has_other_rights(); });
    }
    // The status, as the sample would see it now, of a file that is not among `files`.
    struct stat status_of(const FileId& id, struct stat status) const {
        if (const auto since = nameless.find(id); since != nameless.end()) {
            status.st_nlink = 0;
            status.st_ctim = since->second;
        }
        return status;
    }
};

// All numbers are the program's own view, that is, those of its namespaces.
struct GuestFacts {
    explicit GuestFacts(GuestQueries& source) : queries(source), descriptors(source) {}

    struct Credentials {
        uid_t uid = 0, effective_uid = 0, saved_uid = 0;
        gid_t gid = 0, effective_gid = 0, saved_gid = 0;
    };

    GuestQueries& queries;
    pid_t pid = 0;
    pid_t tid = 0;
    std::optional<pid_t> parent, group, session;
    std::optional<Credentials> credentials;
    bool same_time_namespace = false;   // the profiler's monotonic clocks are the program's
    std::uint64_t signal_mask = 0;      // bit n-1 is signal n; kept up to date
    std::uint64_t pending_signals = 0;  // of thread and process at the sample's start
    std::uint64_t idle_signals = 0;     // pending as well, but delivery would do nothing
    mode_t creation_mask = 022;         // umask(2)
    Descriptors descriptors;

    // Replicas only.
    std::vector<AddressRange> shared_mappings;  // MAP_SHARED at the fork: must not become writable
    std::vector<AddressRange> device_memory;    // among these: must not be touched
    std::vector<AddressRange> engine_memory;    // ours, in the replica's address space
    std::set<FileId> mapped_here;               // by the program in the replica
    bool has_set_signal_stack = false;          // so the kernel knows the replica's signal stack
    FakedEffects faked;
};

}  // namespace shadowprof::emu
