// Unwinding a process that runs on meanwhile.
//
// libunwind walks a stack through callbacks: registers and stack bytes come from the snapshot,
// everything else (code, and the unwind tables that every module carries for exceptions) from the
// process's memory as it is now; those do not change while the module is mapped. The tables are
// found through the program headers in memory. So neither ELF files nor ptrace are needed, the vDSO
// and deleted files work like all others, and any thread of the profiler may unwind.
//
// libunwind remembers the unwind instructions it has seen, which makes the next walk through the
// same functions cheap; so its state for a process is kept until the process's mappings of code and
// constants change. Every thread that unwinds keeps a state of its own, for libunwind serves one
// thread at a time.
#include "ptrace/call_stack.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <libunwind.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "proc/mapped_elf.h"
#include "proc/maps.h"
#include "proc/memory.h"
#include "ptrace/tuning.h"

// Exported by libunwind for tools that, like perf, find the tables themselves.
extern "C" int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t, unw_word_t, unw_dyn_info_t*,
                                                  unw_proc_info_t*, int, void*);

namespace shadowprof::ptrace {
namespace {

// What .eh_frame_hdr of a module says: where its functions' unwind instructions are, sorted by the
// functions' addresses.
struct UnwindTable {
    AddressRange module;
    std::uint64_t header = 0;  // the entries are relative to it
    std::uint64_t entries = 0;
    std::uint32_t count = 0;
};

// Code, unwind tables and other constants: what may be read once and kept.
std::vector<proc::Mapping> constants_of(const proc::Maps& maps) {
    std::vector<proc::Mapping> constants;
    for (const auto& m : maps.mappings())
        if (m.readable && !m.writable && (m.is_file() || m.path == "[vdso]"))
            constants.push_back(m);
    return constants;
}

bool same_place(const proc::Mapping& a, const proc::Mapping& b) {
    return a.range == b.range && a.device == b.device && a.inode == b.inode &&
           a.file_offset == b.file_offset;
}

// A process's code and constants, also when it is gone.
class ConstantMemory {
  public:
    ConstantMemory(pid_t pid, const proc::Maps& maps)
        : pid_(pid), memory_(pid), constants_(constants_of(maps)) {}

    const std::vector<proc::Mapping>& mappings() const { return constants_; }

    const proc::Mapping* mapping_at(Address at) const {
        const auto after =
            std::upper_bound(constants_.begin(), constants_.end(), at,
                             [](Address a, const proc::Mapping& m) { return a < m.range.begin; });
        if (after == constants_.begin() || !std::prev(after)->range.contains(at)) return nullptr;
        return &*std::prev(after);
    }

    std::size_t read(Address from, std::span<std::byte> into) const {
        const auto count = memory_.read(from, into);
        return count > 0 ? count : read_file(from, into);
    }
    template <class T>
    std::optional<T> read_as(Address from) const {
        T value;
        if (read(from, std::as_writable_bytes(std::span{&value, 1})) != sizeof value) return {};
        return value;
    }

  private:
    std::size_t read_file(Address from, std::span<std::byte> into) const {
        const auto* const mapping = mapping_at(from);
        if (!mapping || !mapping->is_file() || mapping->deleted) return 0;
        // By now it may be a pipe, which nobody opens.
        const int file =
            ::open(mapping->path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (file < 0) return 0;
        struct stat status {};
        const bool is_same =
            fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_ino == mapping->inode;
        const auto offset = mapping->file_offset + (from - mapping->range.begin);
        const auto count =
            is_same ? pread(file, into.data(), into.size(), static_cast<off_t>(offset)) : 0;
        ::close(file);
        return count > 0 ? static_cast<std::size_t>(count) : 0;
    }

    pid_t pid_;
    proc::Memory memory_;
    std::vector<proc::Mapping> constants_;  // by address
};

std::optional<UnwindTable> find_unwind_table(const ConstantMemory& memory,
                                             const proc::MappedModule& module) {
    const auto read = [&](std::uint64_t offset, std::span<std::byte> into) {
        return memory.read(module.range.begin + offset, into);
    };
    const auto segments = proc::read_segments(read);
    if (!segments) return {};
    const auto found =
        std::find_if(segments->begin(), segments->end(),
                     [](const proc::LoadSegment& s) { return s.type == PT_GNU_EH_FRAME; });
    if (found == segments->end()) return {};
    UnwindTable table{.module = module.range, .header = found->address + module.bias};

    // Every linker writes the table in the encoding that allows a binary search.
    struct Header {
        std::uint8_t version, pointer_encoding, count_encoding, entry_encoding;
    };
    constexpr std::uint8_t unsigned_4_bytes = 0x03, signed_4_bytes_from_header = 0x3b;
    const auto header = memory.read_as<Header>({table.header});
    if (!header || header->version != 1 || header->count_encoding != unsigned_4_bytes ||
        header->entry_encoding != signed_4_bytes_from_header)
        return {};
    const bool long_pointer = (header->pointer_encoding & 0x07) == 0x04;
    const auto count_at = table.header + sizeof(Header) + (long_pointer ? 8 : 4);
    table.entries = count_at + sizeof table.count;
    const auto count = memory.read_as<std::uint32_t>({count_at});
    if (!count) return {};
    table.count = *count;
    return table;
}

class ProcessUnwinder {
  public:
    ProcessUnwinder(pid_t pid, const proc::Maps& maps)
        : pid_(pid), memory_(pid), constants_(pid, maps) {
        for (const auto& module : maps.modules())
            if (const auto table = find_unwind_table(constants_, module)) tables_.push_back(*table);
        unw_accessors_t accessors{};
        accessors.find_proc_info = find_proc_info;
        accessors.put_unwind_info = [](unw_addr_space_t, unw_proc_info_t*, void*) {};
        accessors.get_dyn_info_list_addr = [](unw_addr_space_t, unw_word_t*, void*) {
            return -UNW_ENOINFO;
        };
        accessors.access_mem = access_mem;
        accessors.access_reg = access_reg;
        accessors.access_fpreg = [](unw_addr_space_t, unw_regnum_t, unw_fpreg_t*, int, void*) {
            return -UNW_EBADREG;
        };
        accessors.resume = [](unw_addr_space_t, unw_cursor_t*, void*) { return -UNW_EINVAL; };
        accessors.get_proc_name = [](unw_addr_space_t, unw_word_t, char*, std::size_t, unw_word_t*,
                                     void*) { return -UNW_ENOINFO; };
        space_ = unw_create_addr_space(&accessors, 0);
        unw_set_caching_policy(space_, UNW_CACHE_GLOBAL);
    }
    ~ProcessUnwinder() { unw_destroy_addr_space(space_); }
    ProcessUnwinder(const ProcessUnwinder&) = delete;
    ProcessUnwinder& operator=(const ProcessUnwinder&) = delete;

    bool is_for(pid_t pid, const std::vector<proc::Mapping>& constants) const {
        return pid == pid_ &&
               std::equal(constants.begin(), constants.end(), constants_.mappings().begin(),
                          constants_.mappings().end(), same_place);
    }

    // `then`: the mappings that the process had. `Deeper`: what the snapshot does not have of the
    // stack.
    enum class Deeper : std::uint8_t { is_unknown, is_as_now };
    StackWithSignals unwind(const StackSnapshot& snapshot, const proc::Maps& then, Deeper deeper,
                            std::size_t most_frames) {
        snapshot_ = &snapshot;
        then_ = &then;
        deeper_ = deeper;
        reads_left_ = most_reads;
        registers_ = snapshot.registers;
        StackWithSignals all{{registers_.rip()}, {}};
        auto& frames = all.frames;
        std::vector<trace::SignalFrame> signals;  // innermost first
        unw_cursor_t cursor;
        if (unw_init_remote(&cursor, space_, this) != 0) return all;
        bool knows_frame_pointer = !snapshot.is_of_sleeper;
        while (frames.size() < most_frames) {
            unw_word_t stack = 0, ip = 0, outer = 0;
            unw_get_reg(&cursor, UNW_REG_SP, &stack);
            const bool is_of_signal = unw_is_signal_frame(&cursor) > 0;
            const int more = unw_step(&cursor);
            if (more > 0 && unw_get_reg(&cursor, UNW_REG_IP, &ip) == 0 && ip != 0 &&
                may_be_code({ip})) {
                frames.push_back({ip});
                if (is_of_signal && unw_get_reg(&cursor, UNW_REG_SP, &outer) == 0)
                    signals.push_back({stack, outer});
                continue;
            }
            if (more == 0 || (more > 0 && ip == 0)) {
                auto& known = all.signals.emplace();
                std::for_each(signals.rbegin(), signals.rend(),
                              [&](const trace::SignalFrame& frame) { known.enter(frame); });
            }
            if (knows_frame_pointer || !find_frame_pointer(stack)) break;
            // On from the same frame.
            knows_frame_pointer = true;
            registers_.raw.rip = frames.back().value;
            if (unw_init_remote(&cursor, space_, this) != 0) break;
        }
        return all;
    }

  private:
    static int access_mem(unw_addr_space_t, unw_word_t address, unw_word_t* value, int write,
                          void* self) {
        auto& unwinder = *static_cast<ProcessUnwinder*>(self);
        if (write || unwinder.reads_left_ == 0) return -UNW_EINVAL;
        --unwinder.reads_left_;
        return unwinder.read_word(address, *value) ? 0 : -UNW_EINVAL;
    }

    static int access_reg(unw_addr_space_t, unw_regnum_t number, unw_word_t* value, int write,
                          void* self) {
        const auto& registers = static_cast<ProcessUnwinder*>(self)->registers_;
        // DWARF counts them in an order of its own.
        constexpr std::array<unsigned, 16> hardware_number = {0, 2, 1,  3,  6,  7,  5,  4,
                                                              8, 9, 10, 11, 12, 13, 14, 15};
        if (write) return -UNW_EREADONLYREG;
        if (number == UNW_X86_64_RIP)
            *value = registers.rip().value;
        else if (number >= 0 && number < 16)
            *value = registers.general(hardware_number[static_cast<std::size_t>(number)]);
        else
            return -UNW_EBADREG;
        return 0;
    }

    static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t* info,
                              int need_unwind_info, void* self) {
        const auto& tables = static_cast<ProcessUnwinder*>(self)->tables_;
        const auto table = std::find_if(tables.begin(), tables.end(), [&](const UnwindTable& t) {
            return t.module.contains({ip});
        });
        if (table == tables.end()) return -UNW_ENOINFO;
        unw_dyn_info_t found{};
        found.format = UNW_INFO_FORMAT_REMOTE_TABLE;
        found.start_ip = table->module.begin.value;
        found.end_ip = table->module.end.value;
        found.u.rti.segbase = table->header;
        found.u.rti.table_data = table->entries;
        found.u.rti.table_len = table->count;  // in words of 8 bytes, as an entry is
        return UNW_OBJ(dwarf_search_unwind_table)(space, ip, &found, info, need_unwind_info, self);
    }

    // What frame pointers lead to may be anything.
    bool may_be_code(Address at) const {
        if (deeper_ == Deeper::is_as_now) return true;
        const auto* const mapping = then_->mapping_at(at);
        return mapping && mapping->executable;
    }

    // Behind an instruction that calls.
    bool is_return_address(Address at) {
        std::array<std::uint8_t, 7> before{};
        if (!may_be_code(at) || !constants_.mapping_at(at)) return false;
        for (std::size_t n = 0; n < before.size(); ++n) {
            std::uint64_t word = 0;
            if (!read_constant(at.value - before.size() + n, word)) return false;
            before[n] = static_cast<std::uint8_t>(word);
        }
        constexpr std::uint8_t call = 0xe8, indirect = 0xff;
        if (before[2] == call) return true;
        for (std::size_t length = 2; length <= before.size(); ++length) {
            const auto first = before.size() - length;
            if (before[first] == indirect && (before[first + 1] & 0x38) == 0x10) return true;
        }
        return false;
    }

    // Of the frame that begins there and cannot be left without it. False if there is none.
    bool find_frame_pointer(std::uint64_t stack) {
        const auto end = snapshot_->registers.rsp().value + snapshot_->bytes.size();
        std::uint64_t saved = 0, back = 0;
        for (auto at = stack; at + 2 * sizeof saved <= end; at += sizeof saved) {
            if (!read_word(at, saved) || !read_word(at + sizeof saved, back)) return false;
            const bool is_further_out = saved > at && saved < at + most_between_frames;
            if (!is_further_out || saved % sizeof saved != 0 || !is_return_address({back}))
                continue;
            registers_.raw.rsp = stack;
            registers_.raw.rbp = at;
            return true;
        }
        return false;
    }
    // Unwind instructions can jump backwards, and so go on for ever. libunwind reads each anew. The
    // deepest stacks take some thousand.
    static constexpr unsigned most_reads = 1'000'000;
    static constexpr std::uint64_t most_between_frames = 1u << 20;

    bool read_word(std::uint64_t address, std::uint64_t& value) {
        const auto stack = snapshot_->registers.rsp().value;
        const auto offset = address - stack;
        if (address >= stack && offset + sizeof value <= snapshot_->bytes.size()) {
            std::memcpy(&value, snapshot_->bytes.data() + offset, sizeof value);
            return true;
        }
        const auto* const constant = constants_.mapping_at({address});
        if (constant && constant->range.contains({address + 7}))
            return read_constant(address, value);
        const auto word = memory_.read_as<std::uint64_t>({address});
        value = word.value_or(0);
        if (word && deeper_ == Deeper::is_as_now) return true;
        // Unwind tables name a personality routine through a variable of the module. Nobody calls
        // it here, but libunwind reads it.
        const auto* const mapping = then_->mapping_at({address});
        return mapping && mapping->is_file();
    }

    bool read_constant(std::uint64_t address, std::uint64_t& value) {
        const auto bytes = std::as_writable_bytes(std::span{&value, 1});
        for (std::size_t done = 0; done < bytes.size();) {
            const auto at = address + done;
            auto& page = pages_[at / page_size];
            if (!page) {
                auto fresh = std::make_unique<Page>();
                if (constants_.read({at - at % page_size}, *fresh) != page_size) return false;
                page = std::move(fresh);
            }
            const auto begin = at % page_size;
            const auto count = std::min<std::size_t>(page_size - begin, bytes.size() - done);
            std::memcpy(bytes.data() + done, page->data() + begin, count);
            done += count;
        }
        return true;
    }

    using Page = std::array<std::byte, page_size>;

    pid_t pid_;
    proc::Memory memory_;
    ConstantMemory constants_;
    std::vector<UnwindTable> tables_;
    std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
    unw_addr_space_t space_ = nullptr;
    // Of the stack that is being unwound.
    const StackSnapshot* snapshot_ = nullptr;
    const proc::Maps* then_ = nullptr;
    Deeper deeper_ = Deeper::is_unknown;
    unsigned reads_left_ = 0;
    Registers registers_;
};

// Of this thread.
ProcessUnwinder& unwinder_for(pid_t pid, const std::shared_ptr<const proc::Maps>& maps) {
    static thread_local std::unique_ptr<ProcessUnwinder> unwinder;
    static thread_local std::shared_ptr<const proc::Maps> known_for;
    if (!unwinder || known_for != maps) {
        if (!unwinder || !unwinder->is_for(pid, constants_of(*maps)))
            unwinder = std::make_unique<ProcessUnwinder>(pid, *maps);
        known_for = maps;
    }
    return *unwinder;
}

}  // namespace

StackSnapshot snapshot_stack(pid_t pid, const Registers& registers) {
    // The thread stands still meanwhile, and most stacks are small: pages for a large buffer would
    // take longer to come by than the stack to copy.
    static thread_local std::array<std::byte, tuning::stack_snapshot_size> buffer;
    const auto size = proc::Memory{pid}.read_what_is_there(registers.rsp(), buffer);
    return {.pid = pid, .registers = registers, .bytes = {buffer.begin(), buffer.begin() + size}};
}

std::vector<Address> unwind(const StackSnapshot& snapshot,
                            const std::shared_ptr<const proc::Maps>& maps,
                            std::size_t most_frames) {
    return unwinder_for(snapshot.pid, maps)
        .unwind(snapshot, *maps, ProcessUnwinder::Deeper::is_unknown, most_frames)
        .frames;
}

StackWithSignals unwind_with_signals(const StackSnapshot& snapshot,
                                     const std::shared_ptr<const proc::Maps>& maps,
                                     std::size_t most_frames) {
    return unwinder_for(snapshot.pid, maps)
        .unwind(snapshot, *maps, ProcessUnwinder::Deeper::is_as_now, most_frames);
}

}  // namespace shadowprof::ptrace
