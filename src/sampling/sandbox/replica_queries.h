// Answers the questions that a replica's system calls ask about the world. The replica itself looks
// files up, by calls without effect, so that they are found with its rights, root and directory.
// Their contents are read by us.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "emu/syscalls/system_calls.h"
#include "inject/replica.h"
#include "proc/process_info.h"
#include "sampling/sandbox/file_table_snapshot.h"
#include "sampling/sandbox/mapped_files.h"

namespace shadowprof::sampling {

class ReplicaQueries : public emu::GuestQueries {
  public:
    ReplicaQueries(inject::Replica& replica, pid_t target, pid_t thread, FileTableSnapshot at_birth,
                   MappedFiles& mapped_files)
        : replica_(replica),
          target_(target),
          asker_{thread, {}},
          at_birth_(std::move(at_birth)),
          mapped_files_(mapped_files) {}

    FileTableSnapshot& at_birth() { return at_birth_; }
    // The thread that asks, and what was answered to it.
    struct Asker {
        pid_t thread;                                  // of the target
        std::optional<std::uint64_t> base;             // see cpu_time()
        std::optional<proc::UsageCounts> counts = {};  // when first asked
    };
    Asker& asker() { return asker_; }
    // Opens the directory that process `pid` (as the replica's /proc names it) has open as
    // `number`, in a way that leads nowhere else and does not show its contents. Nothing if it is
    // another one.
    std::optional<std::int64_t> open_directory_of(pid_t pid, int number, const emu::FileId& id);

    emu::Descriptor descriptor(int fd) override;
    emu::Descriptor opened_descriptor(int fd) override;
    bool has_other_names(int fd) override;
    std::optional<emu::PathStatus> status_of(int directory, const std::string& path,
                                             bool follow_links) override;
    std::optional<int> access_to(int directory, const std::string& path, int mode) override;
    bool is_made_up(std::uint64_t device) override;
    std::shared_ptr<emu::FileContents> contents_of(int directory, const std::string& path) override;
    std::optional<std::uint64_t> process_cpu_time() override;
    std::optional<std::uint64_t> thread_cpu_time() override;
    std::optional<struct rusage> usage(int who) override;
    std::optional<AddressRange> scratch() const override;
    bool is_mapped(const emu::FileId& file, emu::Mapped how) override {
        return mapped_files_.contains(file, how);
    }

  private:
    bool is_since_birth(const timespec& time) const;
    // Nothing if it was not open then.
    std::optional<struct stat> status_at_birth(const emu::FileId& file) const;
    // Whether the path put last leads there only since the fork, because the file was made or
    // renamed since. Where that cannot be known, whether the file was changed since.
    bool has_come_since_birth(int directory, int flags, const struct stat& status);
    bool map_scratch();
    // Puts the path where the replica's calls can read it; an errno if there is none.
    int put_path(const std::string& path);
    // The target's time at the first question, plus the replica's own since then.
    std::optional<std::uint64_t> cpu_time(std::optional<std::uint64_t>& base,
                                          std::optional<std::uint64_t> targets,
                                          std::optional<std::uint64_t> own) const;

    inject::Replica& replica_;
    pid_t target_;
    Asker asker_;
    FileTableSnapshot at_birth_;
    MappedFiles& mapped_files_;
    std::optional<std::set<std::uint64_t>> made_up_devices_;
    Address scratch_;  // 0: not yet mapped
    std::optional<std::uint64_t> process_base_;
    std::optional<proc::UsageCounts> process_counts_;  // when first asked
};

}  // namespace shadowprof::sampling
