// emu: engines that execute guest code and yield Traces. They know blocks and processes, but not
// hotlists, and not when to sample.
//
//   common/       what the engines share: a guest's code as blocks, and an assembler
//   stepper/      steps a thread by ptrace; slow, and the reference for the others
//   interpreter/  runs a guest's code in the profiler's process, on a private view of its memory
//   translator/   runs it in the guest's own process, from a code cache
//   syscalls/     what a sample does when the guest reaches a system call
//
// common uses none of the others. translator uses interpreter (to recognise a thread that spins);
// stepper, interpreter and syscalls use none of their neighbours. Constants that were tuned are in
// tuning.h.
//
// This file: a guest's code as blocks. It turns an address of one address space into a published
// Block: reads the bytes, cuts the block, finds its Location, and notices when code has changed.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/flat_map.h"
#include "base/page.h"
#include "proc/code_mappings.h"
#include "proc/maps.h"
#include "proc/memory.h"
#include "trace/block.h"
#include "trace/location.h"

namespace shadowprof::emu {

inline constexpr const char* runtime_code_module = "[runtime code]";

// Where code of a process is, the same in every run. For code outside every module the offset is
// the raw address (see trace/location.h).
trace::Location locate(const proc::Maps& maps, trace::ModuleTable& modules, Address at);

// For one thread at a time.
class GuestCode : public trace::CodeSource {
  public:
    GuestCode(pid_t pid, trace::BlockTable& blocks, trace::ModuleTable& modules,
              trace::CapturePlan plan);

    // The block that begins here; nullptr if its bytes cannot be read or decoded. Blocks that
    // may_change() are compared with memory each time: the guest's, or a private view of it.
    const trace::Block* block_at(Address at);
    const trace::Block* block_at(Address at, trace::CodeSource& memory);
    // Whether no known block has another instruction that shares bytes with this one.
    bool has_no_other(const decoder::Instruction& instruction) const;
    // Whether other code may come to be there without a change of mappings.
    bool may_change(Address at);
    // … be it by the program itself, while it executes what is there.
    bool may_be_written(Address at);
    // The first n instructions of a block, published as a block of its own with exit `cut`.
    const trace::Block& cut(const trace::Block& block, std::size_t instructions);
    // The location of code, equal to that of the block that begins there if there is one.
    trace::Location place_of(Address at);

    // From now on a block may stand for code whose constants change again and again, whatever they
    // are: Block::varying_constants. Who executes it has to take them from memory. Not where a plan
    // asks for chosen instructions, which may be chosen for their constants.
    void let_constants_vary() { constants_may_vary_ = !plan_.choice(); }

    // After exec nothing that was known holds.
    void forget_everything();
    // Looks at a copy of the process, which has these mappings, from now on. What is known of the
    // other copies holds for this one where it has the same code. Without `maps` the mappings are
    // read when they are needed.
    void look_through(pid_t pid, std::shared_ptr<const proc::Maps> maps);
    // Null unless they are known to be current.
    std::shared_ptr<const proc::Maps> current_maps() const {
        return maps_are_current_ ? maps_ : nullptr;
    }
    // Whether blocks may be made of code that no thread has come to. Where errno is the program's
    // loader determines after the C library is mapped, and blocks that capture it are made anew
    // when it is known.
    bool may_be_read_ahead() const {
        return errno_place_ || !plan_.has(trace::Capture::error_before);
    }
    // After mmap, munmap, mprotect: the mappings are read again when they are next needed, and
    // blocks of executable mappings that changed are forgotten.
    void mappings_may_have_changed() { maps_are_current_ = false; }
    // The same, if any have come or gone that are executable.
    void code_may_have_moved();
    // When a sample begins: the process has run unobserved.
    void time_has_passed() {
        mappings_may_have_changed();
        code_may_have_changed_ = true;
        forget_pages();
    }
    // Code may have been added where nothing was executed so far.
    void forget_pages() {
        for (auto& page : pages_) page.number = KnownPage::none;
    }

    trace::ModuleId module_at(Address at) { return locate(*maps(), modules_, at).module; }
    // The block that was made of code that begins here and does not change; null if none was.
    const trace::Block* known_at(Address at) const {
        const auto* const known = entries_.find(at.value);
        return known && *known && !(*known)->may_change ? (*known)->block : nullptr;
    }
    // A block of code that does not change, as an earlier run made it.
    const trace::Block& know(trace::Block block);

    // Changes when code was forgotten although may_change() had said no. Whatever was derived from
    // blocks is void then.
    std::uint64_t epoch() const { return epoch_; }

    std::size_t read_code(Address at, std::span<std::byte> into) override;
    std::shared_ptr<const proc::Maps> maps();
    // The process that it looks at.
    pid_t pid() const { return pid_; }
    const proc::Memory& memory() const { return memory_; }
    trace::CapturePlan plan() const { return plan_; }
    const trace::Block& block(trace::BlockId id) const { return blocks_.at(id); }
    bool knows(trace::BlockId id) const { return static_cast<std::uint32_t>(id) < blocks_.size(); }

  private:
    struct Entry {
        const trace::Block* block = nullptr;
        bool may_change = false;
    };
    // Code that stays the same where it is mapped, in this process and its copies: a part of a
    // file.
    struct FixedCode {
        FixedCode() = default;
        explicit FixedCode(const proc::Mapping& mapping);
        bool is_of_same_file(const FixedCode& other) const;  // mapped at the same bias

        AddressRange range;
        std::uint64_t device = 0, inode = 0;
        std::uint64_t bias = 0;  // address = place in the file + bias
    };
    void take_over(std::shared_ptr<const proc::Maps> fresh, bool is_copy);
    bool is_fixed(const proc::Maps& maps, const proc::Mapping& mapping) const;
    void has_gone(AddressRange range);
    void know_as_fixed(FixedCode code);
    void forget_fixed_code_in(AddressRange range, const FixedCode* unless_of_file_of = nullptr);
    std::map<Address, FixedCode>::iterator first_fixed_code_in(AddressRange range);
    void distrust(const std::vector<proc::Mapping>& fresh);
    // A page of code that does not change, and stays known while the epoch lasts.
    struct KnownPage {
        static constexpr std::uint64_t none = ~std::uint64_t{0};
        std::uint64_t number = none, epoch = 0;
        std::array<std::byte, page_size> bytes;
    };
    const KnownPage* known_page(std::uint64_t number);
    const trace::Block* come_back(const trace::Block& changed,
                                  std::span<const decoder::Instruction> instructions);
    std::vector<trace::Slot> slots_of(std::span<const decoder::Instruction> instructions,
                                      const trace::Location& place);
    std::uint64_t constants_that_vary(Address at,
                                      std::span<const decoder::Instruction> instructions);
    void look_for_errno();
    trace::Location block_place(const std::vector<decoder::Instruction>& instructions);
    void forget_blocks_in(AddressRange range);
    void distrust_blocks_in(AddressRange range);
    void forget_known_in(AddressRange range);
    using Known = std::map<Address, Entry>::iterator;
    Known forget(Known known);
    template <typename Predicate>
    bool forget_if(Known first, Known last, Predicate is_gone);  // whether there were any

    pid_t pid_;
    proc::Memory memory_;
    trace::BlockTable& blocks_;
    trace::ModuleTable& modules_;
    trace::CapturePlan plan_;
    std::shared_ptr<const proc::Maps> maps_;
    bool maps_are_current_ = false;
    std::optional<proc::CodeMappings> code_mappings_;
    // Of errno; not known before the mappings are those of a program that has begun.
    std::optional<std::int32_t> errno_place_;
    std::shared_ptr<const proc::Maps> without_errno_;
    bool code_may_have_changed_ = false;
    // The mapping that was looked up last, and whether its code is fixed.
    AddressRange last_mapping_;
    bool last_is_fixed_ = false, last_is_writable_ = false;
    std::map<Address, FixedCode> fixed_code_;
    // Pages of fixed code that the process or a copy has changed, or could have, and the pages
    // before them, where blocks begin that reach into them.
    std::unordered_set<std::uint64_t> distrusted_pages_;
    std::vector<AddressRange> places_of_gone_code_;  // which was fixed
    std::uint64_t epoch_ = 0;
    std::vector<KnownPage> pages_;  // each has one place, by its number
    std::map<Address, Entry> by_address_;
    FlatMap<const Entry*> entries_;  // the same, found sooner; or null
    // What was there before, of code that changes: it may come back. The latest ones are last.
    std::map<Address, std::vector<const trace::Block*>> former_;
    // The latest block of code that may change, and how often it differed from the one before in
    // constants only.
    struct Latest {
        const trace::Block* block = nullptr;
        unsigned changes = 0;
    };
    bool constants_may_vary_ = false;
    std::unordered_map<Address, Latest> latest_;
    std::unordered_map<std::uint64_t, const trace::Block*> cuts_;  // block id and length
    // How often code that was made at run time was seen to change, by page. This is the `content`
    // of its locations.
    std::unordered_map<std::uint64_t, std::uint64_t> generation_of_page_;
};

}  // namespace shadowprof::emu
