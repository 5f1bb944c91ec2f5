// What a sample does when the guest reaches a system call.
//
// A sample must never act on the world, yet it should see as much code as it can. One table (rows
// in system_calls.cpp, shown to users as docs/system-calls.md) says for every x86-64 Linux system
// call how far that goes, in the two places where guest code runs apart from its own process:
//
//   burst     Our interpreter runs a stopped thread's next instructions on a private view of its
//             memory. Nothing may be executed: a call is answered from what is known, or the burst
//             ends. Afterwards the thread goes on natively and repeats everything for real, so an
//             answered write has not happened twice: it has not happened at all.
//   replica   A forked copy of the program under PTRACE_SYSEMU: each call stops before it executes.
//             A call that touches only what fork copied (memory, signal dispositions, directory,
//             limits) may be executed in the replica. Open file descriptions, though, would be
//             shared with the target, offsets, locks and status flags included: the replica keeps
//             none of them (see Descriptors), and files are read for it at an offset kept here.
//             Output is answered with success; what files and names would look like afterwards is
//             kept as well (faked_files.h), and a call that would show what is not kept ends the
//             replica.
//
// A call without a row is unsafe: it ends the sample.
#pragma once

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/address.h"
#include "emu/syscalls/faked_files.h"

namespace shadowprof::emu {

// `number` is eax: the kernel looks at no more of rax. Arguments are rdi, rsi, rdx, r10, r8, r9.
struct SystemCall {
    std::int32_t number = 0;
    std::array<std::uint64_t, 6> arguments{};

    bool operator==(const SystemCall&) const = default;
};

// The guest's memory as the sample sees it (a burst's private view, a replica's own memory).
// All or nothing; false where the kernel would answer EFAULT.
class GuestMemory {
  public:
    virtual ~GuestMemory() = default;
    virtual bool read(Address from, std::span<std::byte> into) = 0;
    virtual bool write(Address to, std::span<const std::byte> bytes) = 0;

    template <typename T>
    std::optional<T> read_as(Address from) {
        T value;
        if (!read(from, std::as_writable_bytes(std::span{&value, 1}))) return {};
        return value;
    }
    template <typename T>
    bool write_as(Address to, const T& value) {
        return write(to, std::as_bytes(std::span{&value, 1}));
    }
};

// An open file description as the sample sees it. Its offset and flags are the sample's own from
// the sample's start on.
struct OpenFile {
    enum class Kind : std::uint8_t {
        unknown,  // nobody looked
        closed,   // no such descriptor
        file,     // a regular file
        directory,
        withdrawn,  // anything else
    };
    Kind kind = Kind::unknown;
    FileId id;
    std::optional<struct stat> status;       // at the sample's start, or when it was opened
    std::optional<int> status_flags;         // as F_GETFL tells them
    std::optional<std::uint64_t> offset;     // of a regular file
    std::shared_ptr<FileContents> contents;  // of a regular file; null if it cannot be read
    // Replicas: there is a real descriptor for each of the sample's, so that calls on it can be
    // executed. To a directory that was open at birth it leads, and no more (O_PATH).
    bool is_held = false;
    bool opened_here = false;  // by the program in the replica
    bool is_read_end = false;  // of a pipe

    // Nobody knows of the others whether they were open, or as what, when the sample began.
    bool is_certain() const {
        return kind != Kind::unknown && (kind != Kind::withdrawn || status.has_value());
    }
};

struct Descriptor {
    std::shared_ptr<OpenFile> file;
    std::optional<bool> closes_on_exec;  // if known
};

struct PathStatus {
    int error = 0;  // an errno, and no status
    struct stat status {};
    bool is_new = false;  // the path leads there only since the sample began, or that may be so
    bool is_earlier =
        false;  // the status is that of the sample's start, and no longer the kernel's
    bool is_written = false;  // a file that was written to since: its size and times are not known
};

// A file that is in memory, too, can be changed and seen in two ways, and the sample keeps them
// apart.
enum class Mapped : std::uint8_t {
    at_all,    // who writes to the file changes memory
    writable,  // and shared: who writes to memory changes the file, and its times only at first
};

// What the caller can find out about the guest without any effect on it. Whoever cannot tell keeps
// the default, and calls that depend on it end the sample.
class GuestQueries {
  public:
    virtual ~GuestQueries() = default;
    // As it was at the sample's start. Descriptors of one description share one object.
    virtual Descriptor descriptor(int fd);
    // That the replica has just opened.
    virtual Descriptor opened_descriptor(int fd);
    // Whether names have come into a directory since the sample's start, or gone, that the replica
    // has opened; or nobody can tell.
    virtual bool has_other_names(int fd);
    // `directory` as in openat(2).
    virtual std::optional<PathStatus> status_of(int directory, const std::string& path,
                                                bool follow_links);
    // As faccessat(2) with AT_EACCESS: 0 or an errno.
    virtual std::optional<int> access_to(int directory, const std::string& path, int mode);
    // Whether files of this device are made up by the kernel as they are read (/proc, /sys …).
    virtual bool is_made_up(std::uint64_t device);
    // Of a regular file, opened anew for reading; null if that is impossible.
    virtual std::shared_ptr<FileContents> contents_of(int directory, const std::string& path);
    // Nanoseconds the target's process, or its sampled thread, has run.
    virtual std::optional<std::uint64_t> process_cpu_time();
    virtual std::optional<std::uint64_t> thread_cpu_time();
    // As getrusage(2) of the target. Of its children, time to a tick and faults.
    virtual std::optional<struct rusage> usage(int who);
    // What has been mapped into the guest for these questions.
    virtual std::optional<AddressRange> scratch() const;
    // Since the sample's start.
    virtual bool is_mapped(const FileId& file, Mapped how);
};

// The sample's descriptors. In a replica most of them are not the kernel's: at its birth a replica
// closes everything but directories, for a pipe's reader, a socket's peer or a file's lock would
// wait for it. The numbers stay taken here, and calls on them are answered. Real are those of
// directories and of what the replica has opened itself, each under the number it has here.
class Descriptors {
  public:
    explicit Descriptors(GuestQueries& queries) : queries_(queries) {}

    OpenFile& at(int fd) { return *shared_at(fd); }
    std::shared_ptr<OpenFile> shared_at(int fd) { return descriptor_at(fd).file; }
    std::optional<bool>& closes_on_exec(int fd) { return descriptor_at(fd).closes_on_exec; }
    // What a call that opens something gets; nothing if that cannot be told.
    std::optional<int> lowest_free(int from = 0);

    void close(int fd);
    void close_range(unsigned first, unsigned last);
    void close_range_on_exec(unsigned first, unsigned last);
    void duplicate(int from, int to, std::optional<bool> closes_on_exec);
    // By an executed call. Its flags are those the program asked for, as F_GETFL tells them; the
    // call that is executed in its place may have others.
    void will_open(int status_flags) { flags_to_open_with_ = status_flags; }
    void opened(int fd, std::optional<bool> closes_on_exec);
    // Of what exists only here.
    void open(int fd, Descriptor descriptor) { descriptors_[fd] = std::move(descriptor); }

  private:
    Descriptor& descriptor_at(int fd);  // asks once for each descriptor
    static Descriptor closed_descriptor();

    GuestQueries& queries_;
    std::map<int, Descriptor> descriptors_;
    // Of those not in descriptors_.
    using Ranges = std::vector<std::pair<unsigned, unsigned>>;
    static bool contain(const Ranges& ranges, int fd);
    Ranges closed_ranges_, ranges_to_close_on_exec_;
    std::optional<int> flags_to_open_with_;
};

// Effects that the sample was told have happened and that have not.
struct FakedEffects {
    std::map<FileId, FakedFile> files;
    FakedNames names;
    std::map<FileId, timespec> nameless;  // since when: removed, and not among `files` then
    bool scheduling = false;              // priority, policy, affinity

    FakedFile* file(const FileId& id) {
        const auto found = files.find(id);
        return found == files.end() ? nullptr : &found->second;
    }
    bool any_other_rights() const {
        return std::any_of(files.begin(), files.end(),
                           [](const auto& file) { return file.second.has_other_rights(); });
    }
    // What has become of a descriptor's file that is not among `files`.
    struct stat status_of(const FileId& id, struct stat status) const {
        if (const auto since = nameless.find(id); since != nameless.end()) {
            status.st_nlink = 0;
            status.st_ctim = since->second;
        }
        return status;
    }
};

// What is known of the sampled thread, and what has become of it during the sample. All numbers are
// the program's own view, that is, of its namespaces.
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
    std::vector<AddressRange> shared_mappings;  // MAP_SHARED at birth: must not become writable
    std::vector<AddressRange> device_memory;    // among these: must not be touched
    std::vector<AddressRange> engine_memory;    // ours, in the replica's address space
    std::set<FileId> mapped_here;               // by the program in the replica
    bool has_set_signal_stack = false;          // so that the kernel knows it
    FakedEffects faked;
};

// Goes to rax: a value, or -errno. What the call writes to memory has been written.
struct Answer {
    std::int64_t result = 0;

    bool operator==(const Answer&) const = default;
};

// What to do with a call of a replica.
struct Execute {  // as it is: rip -= 2 and PTRACE_SYSCALL
    bool operator==(const Execute&) const = default;
};
struct ExecuteInstead {  // another one; the program gets its result
    SystemCall call;
    std::optional<std::int64_t> result{};  // or this one, if it succeeds

    bool operator==(const ExecuteInstead&) const = default;
};
struct End {
    std::string reason;

    bool operator==(const End&) const = default;
};
using ReplicaAction = std::variant<Execute, ExecuteInstead, Answer, End>;

// Nothing: the burst ends, for system_call_end_reason().
std::optional<Answer> answer_in_burst(const SystemCall&, GuestFacts&, GuestMemory&);

ReplicaAction decide_in_replica(const SystemCall&, GuestFacts&, GuestMemory&);
// To be told of every call that was executed, itself or another in its place: keeps descriptors and
// offsets up to date. `call` is the program's.
void note_executed(const SystemCall& call, std::int64_t result, GuestFacts&);
// Nothing: the program may be told the result of a call that was executed. More is mapped in a
// replica than in the target: what found no room there might have found it here.
std::optional<End> end_for_want_of_room(const SystemCall& call, std::int64_t result);

// "system call NAME", or "system call #N" for an unknown one.
std::string system_call_end_reason(std::int32_t number);
// Behind that: the program is ahead of its replica, and what was just there may have gone.
inline constexpr const char* was_replaced = "of what was replaced meanwhile";
inline constexpr const char* was_written = "of what was written to meanwhile";

// --- The table, for those who show it ---

enum class SystemCallClass : std::uint8_t { benign, output, input, miscellaneous, unsafe };
std::string_view to_string(SystemCallClass);

struct SystemCallTreatment {
    std::int32_t number = 0;
    std::string_view name;
    SystemCallClass kind{};
    std::string in_burst;  // in words
    std::string in_replica;
};
std::vector<SystemCallTreatment> system_call_treatments();

}  // namespace shadowprof::emu
