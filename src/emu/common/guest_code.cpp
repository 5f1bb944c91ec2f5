#include "emu/common/guest_code.h"

#include <algorithm>
#include <utility>

#include "emu/common/errno_place.h"
#include "emu/tuning.h"

namespace shadowprof::emu {

namespace {

bool same_code(const proc::Mapping& a, const proc::Mapping& b) {
    return a.range == b.range && a.executable == b.executable && a.writable == b.writable &&
           a.inode == b.inode && a.device == b.device && a.file_offset == b.file_offset;
}

// To ask the kernel takes as long as to decode a block.
class ReadOnce : public trace::CodeSource {
  public:
    explicit ReadOnce(trace::CodeSource& memory) : memory_(memory) {}
    std::size_t read_code(Address at, std::span<std::byte> into) override {
        if (into.size() > bytes_.size()) return memory_.read_code(at, into);
        const bool is_there = begin_ <= at && at + into.size() <= begin_ + size_;
        if (!is_there) size_ = memory_.read_code(begin_ = at, bytes_);
        const auto offset = at - begin_;
        const auto size = std::min<std::size_t>(into.size(), size_ - offset);
        std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), size, into.begin());
        return size;
    }

  private:
    trace::CodeSource& memory_;
    Address begin_;
    std::size_t size_ = 0;
    std::array<std::byte, 256> bytes_;
};

}  // namespace

trace::Location locate(const proc::Maps& maps, trace::ModuleTable& modules, Address at) {
    if (const auto* module = maps.module_at(at))
        return {modules.intern({module->path, module->build_id}), at.value - module->bias, 0};
    return {modules.intern({runtime_code_module, ""}), at.value, 0};
}

GuestCode::GuestCode(pid_t pid, trace::BlockTable& blocks, trace::ModuleTable& modules,
                     trace::CapturePlan plan)
    : pid_(pid), memory_(pid), blocks_(blocks), modules_(modules), plan_(plan) {}

GuestCode::Known GuestCode::forget(Known known) {
    entries_[known->first.value] = nullptr;
    blocks_.are_gone(1);
    return by_address_.erase(known);
}

template <typename Predicate>
bool GuestCode::forget_if(Known first, Known last, Predicate is_gone) {
    const auto before = by_address_.size();
    while (first != last)
        first = is_gone(first->first, first->second) ? forget(first) : std::next(first);
    return by_address_.size() != before;
}

const trace::Block& GuestCode::know(trace::Block block) {
    const auto& published = blocks_.publish(std::move(block));
    entries_[published.start.value] = &(by_address_[published.start] = {&published, false});
    return published;
}

// Code of an image has not changed unless the mapping is Mapping::changed_code. Other files that
// are mapped as code may be written by their program at any time (a Lisp writes to its core, where
// its own functions are). And where an image has gone once others come and go, without our being
// told: a thread in a code cache must not execute what was there before.
bool GuestCode::is_fixed(const proc::Maps& maps, const proc::Mapping& mapping) const {
    return mapping.is_file() && !mapping.writable && maps.module_at(mapping.range.begin) &&
           std::ranges::none_of(places_of_gone_code_, [&](const AddressRange& gone) {
               return gone.begin < mapping.range.end && mapping.range.begin < gone.end;
           });
}

void GuestCode::has_gone(AddressRange range) {
    std::erase_if(places_of_gone_code_, [&](const AddressRange& gone) {
        if (range.end < gone.begin || gone.end < range.begin) return false;
        range = {std::min(range.begin, gone.begin), std::max(range.end, gone.end)};
        return true;
    });
    places_of_gone_code_.push_back(range);
}

const trace::Block* GuestCode::block_at(Address at) {
    ReadOnce memory{*this};
    return block_at(at, memory);
}

const trace::Block* GuestCode::block_at(Address at, trace::CodeSource& memory) {
    if (!maps_are_current_) maps();
    const trace::Block* changed = nullptr;
    if (const auto* const known = entries_.find(at.value); known && *known) {
        const auto* const block = (*known)->block;
        const auto holds =
            (*known)->may_change ? trace::still_holds(*block, memory) : std::optional{true};
        if (holds == true) return block;
        // Nothing can be read of a process that was killed, which says nothing about the code.
        if (holds == false) changed = block;
    }
    auto instructions = trace::decode_block(memory, at);
    if (changed) {
        if (const auto* const back = come_back(*changed, instructions)) return back;
        const auto page = page_number(changed->last().address);
        ++generation_of_page_[page];
        forget_known_in({{page * page_size}, {(page + 1) * page_size}});
        if (const auto known = by_address_.find(at); known != by_address_.end()) forget(known);
    }
    if (instructions.empty()) return nullptr;
    if (!maps_->mapping_at(at)) maps_are_current_ = false;  // mapped since we looked

    trace::Block block;
    block.exit = trace::exit_of(instructions);
    block.start = at;
    block.place = block_place(instructions);
    block.slots = slots_of(instructions, block.place);
    if (plan_.has(trace::Capture::latency))
        block.accesses = trace::slots_of(instructions, trace::Capture::memory_addresses);
    block.varying_constants = constants_that_vary(at, instructions);
    block.instructions = std::move(instructions);
    const auto& published = blocks_.publish(std::move(block));
    auto& entry = by_address_[at] = {&published, may_change(at)};
    entries_[at.value] = &entry;
    if (constants_may_vary_ && entry.may_change) latest_[at].block = &published;
    return &published;
}

// As often as other versions are kept. From then on one block stands for all that follow.
std::uint64_t GuestCode::constants_that_vary(Address at,
                                             std::span<const decoder::Instruction> instructions) {
    const auto latest = latest_.find(at);
    if (latest == latest_.end()) return 0;
    auto& [before, changes] = latest->second;
    const auto differing = trace::constants_that_differ(before->instructions, instructions);
    if (!differing) return 0;
    if (*differing != 0 && ++changes < tuning::changes_until_constants_vary) return 0;
    return before->varying_constants | *differing;
}

std::vector<trace::Slot> GuestCode::slots_of(std::span<const decoder::Instruction> instructions,
                                             const trace::Location& place) {
    auto slots = trace::slots_of(instructions, plan_, place);
    for (auto& slot : slots) {
        if (slot.kind != trace::Capture::error_before) continue;
        look_for_errno();
        slot.displacement = errno_place_.value_or(0);
    }
    return slots;
}

// What was made before it was known is made anew.
void GuestCode::look_for_errno() {
    if (errno_place_ || maps() == without_errno_) return;
    without_errno_ = maps_;
    errno_place_ = place_of_errno(pid_, *maps_, memory_);
    if (!errno_place_) return;
    former_.clear();
    const auto lacks_it = [](Address, const Entry& known) {
        return std::ranges::any_of(known.block->slots, [](const trace::Slot& slot) {
            return slot.kind == trace::Capture::error_before && slot.displacement == 0;
        });
    };
    if (forget_if(by_address_.begin(), by_address_.end(), lacks_it)) ++epoch_;
}

// Code took the place of this block's that was there before. Otherwise the block is remembered.
const trace::Block* GuestCode::come_back(const trace::Block& changed,
                                         std::span<const decoder::Instruction> instructions) {
    auto& former = former_[changed.start];
    const auto back = std::ranges::find_if(
        former, [&](const trace::Block* block) { return trace::has_code(*block, instructions); });
    if (back == former.end()) {
        former.push_back(&changed);
        if (former.size() > tuning::most_versions_of_code) former.erase(former.begin());
        return nullptr;
    }
    by_address_[changed.start].block = *back;
    return std::exchange(*back, &changed);
}

bool GuestCode::has_no_other(const decoder::Instruction& instruction) const {
    const auto reach =
        std::min<std::uint64_t>(trace::most_bytes_in_block, instruction.address.value);
    const auto overlaps = [&](const decoder::Instruction& other) {
        return other.address != instruction.address && other.address < instruction.end() &&
               instruction.address < other.end();
    };
    for (auto known = by_address_.lower_bound(instruction.address - reach);
         known != by_address_.end() && known->first < instruction.end(); ++known) {
        const auto& instructions = known->second.block->instructions;
        if (std::any_of(instructions.begin(), instructions.end(), overlaps)) return false;
    }
    return true;
}

const trace::Block& GuestCode::cut(const trace::Block& block, std::size_t instructions) {
    if (instructions == block.instructions.size()) return block;
    const auto key = static_cast<std::uint64_t>(block.id) << 32 | instructions;
    if (auto known = cuts_.find(key); known != cuts_.end()) return *known->second;
    trace::Block part;
    part.exit = trace::BlockExit::cut;
    part.start = block.start;
    part.place = block.place;
    part.instructions.assign(
        block.instructions.begin(),
        block.instructions.begin() + static_cast<std::ptrdiff_t>(instructions));
    part.varying_constants = block.varying_constants;
    part.slots = slots_of(part.instructions, part.place);
    if (plan_.has(trace::Capture::latency))
        part.accesses = trace::slots_of(part.instructions, trace::Capture::memory_addresses);
    return *(cuts_[key] = &blocks_.publish(std::move(part)));
}

trace::Location GuestCode::place_of(Address at) {
    const auto* block = block_at(at);
    return block ? block->place : locate(*maps(), modules_, at);
}

void GuestCode::forget_everything() {
    ++epoch_;
    errno_place_.reset();
    blocks_.are_gone(by_address_.size());
    by_address_.clear();
    entries_.clear();
    former_.clear();
    latest_.clear();
    generation_of_page_.clear();
    fixed_code_.clear();
    distrusted_pages_.clear();
    places_of_gone_code_.clear();
    last_mapping_ = {};
    maps_.reset();
    maps_are_current_ = false;
    code_mappings_.reset();
}

// To ask the kernel for each block would take as long as to decode it.
std::size_t GuestCode::read_code(Address at, std::span<std::byte> into) {
    std::size_t done = 0;
    while (done < into.size()) {
        const auto from = at + done;
        const auto* const page = may_change(from) ? nullptr : known_page(page_number(from));
        if (!page) return done + memory_.read(from, into.subspan(done));
        const auto part = std::span{page->bytes}.subspan(from.value % page_size);
        const auto size = std::min(part.size(), into.size() - done);
        std::ranges::copy(part.first(size), into.begin() + static_cast<std::ptrdiff_t>(done));
        done += size;
    }
    return done;
}

// Null if not all of it can be read.
const GuestCode::KnownPage* GuestCode::known_page(std::uint64_t number) {
    pages_.resize(tuning::pages_of_code_kept);
    auto& page = pages_[number % pages_.size()];
    if (page.number == number && page.epoch == epoch_) return &page;
    page.number = KnownPage::none;
    if (memory_.read({number * page_size}, page.bytes) != page_size) return nullptr;
    page.number = number;
    page.epoch = epoch_;
    return &page;
}

void GuestCode::code_may_have_moved() {
    if (!code_mappings_ && proc::CodeMappings::can_be_asked()) code_mappings_.emplace(pid_);
    maps_are_current_ = maps_ && code_mappings_ && code_mappings_->are_as_in(*maps_);
    if (!maps_are_current_) code_mappings_.reset();
}

std::shared_ptr<const proc::Maps> GuestCode::maps() {
    if (maps_are_current_) return maps_;
    auto now = proc::Maps::of(pid_, maps_.get());
    // A replica that was killed has no mappings, which says nothing about the code.
    if (!now && maps_) return maps_;
    if (std::exchange(code_may_have_changed_, false) && now) now->look_for_changed_code(pid_);
    take_over(std::make_shared<const proc::Maps>(now ? std::move(*now) : proc::Maps{}), false);
    return maps_;
}

void GuestCode::look_through(pid_t pid, std::shared_ptr<const proc::Maps> maps) {
    if (pid_ != pid) {
        pid_ = pid;
        memory_ = proc::Memory{pid};
        code_mappings_.reset();
        maps_are_current_ = false;
    }
    if (maps && maps != maps_)
        take_over(std::move(maps), true);
    else
        maps_are_current_ = maps_are_current_ || maps;
}

// Other code that lies where code was takes its place. Where a copy of the process has nothing, the
// next copy may have the same code again.
void GuestCode::take_over(std::shared_ptr<const proc::Maps> fresh, bool is_copy) {
    for (const auto& mapping : fresh->mappings()) {
        const FixedCode code{mapping};
        forget_fixed_code_in(code.range, &code);
    }
    for (const auto& mapping : fresh->mappings())
        if (mapping.executable && is_fixed(*fresh, mapping)) know_as_fixed(FixedCode{mapping});
    static const proc::Maps none;
    for (const auto& before : (maps_ ? *maps_ : none).mappings()) {
        if (!before.executable) continue;
        const auto* after = fresh->mapping_at(before.range.begin);
        if (after && same_code(before, *after)) continue;
        if (!is_fixed(*maps_, before)) {
            if (after && after->executable && after->writable && !before.writable)
                distrust_blocks_in(before.range);
            forget_blocks_in(before.range);
        } else if (!after && !is_copy)
            forget_fixed_code_in(before.range);
    }
    distrust(fresh->mappings());
    last_mapping_ = {};
    maps_ = std::move(fresh);
    maps_are_current_ = true;
}

GuestCode::FixedCode::FixedCode(const proc::Mapping& mapping)
    : range(mapping.range),
      device(mapping.device),
      inode(mapping.inode),
      bias(mapping.range.begin.value - mapping.file_offset) {}

bool GuestCode::FixedCode::is_of_same_file(const FixedCode& other) const {
    return inode == other.inode && device == other.device && bias == other.bias;
}

// Code that is known in its place is of the same file.
void GuestCode::know_as_fixed(FixedCode code) {
    for (auto part = first_fixed_code_in(code.range);
         part != fixed_code_.end() && part->first < code.range.end;
         part = fixed_code_.erase(part)) {
        const auto& known = part->second.range;
        if (known.begin <= code.range.begin && code.range.end <= known.end) return;
        code.range = {std::min(code.range.begin, known.begin), std::max(code.range.end, known.end)};
    }
    fixed_code_.emplace(code.range.begin, code);
}

void GuestCode::forget_fixed_code_in(AddressRange range, const FixedCode* unless_of_file_of) {
    for (auto known = first_fixed_code_in(range);
         known != fixed_code_.end() && known->first < range.end;) {
        if (unless_of_file_of && known->second.is_of_same_file(*unless_of_file_of)) {
            ++known;
            continue;
        }
        forget_blocks_in(known->second.range);
        has_gone(known->second.range);
        ++epoch_;
        known = fixed_code_.erase(known);
    }
}

std::map<Address, GuestCode::FixedCode>::iterator GuestCode::first_fixed_code_in(
    AddressRange range) {
    const auto after = fixed_code_.upper_bound(range.begin);
    if (after == fixed_code_.begin()) return after;
    const auto before = std::prev(after);
    return before->second.range.end > range.begin ? before : after;
}

// Code that has been changed, or can be at this moment, is compared from now on in all copies:
// older copies have the former code, and it may be changed again.
void GuestCode::distrust(const std::vector<proc::Mapping>& fresh) {
    const auto known = distrusted_pages_.size();
    for (const auto& mapping : fresh) {
        for (const auto page : mapping.changed_code)
            distrusted_pages_.insert({page_number(page), page_number(page) - 1});
        if (!mapping.writable) continue;
        for (auto code = first_fixed_code_in(mapping.range);
             code != fixed_code_.end() && code->first < mapping.range.end; ++code) {
            const auto end = std::min(code->second.range.end, mapping.range.end);
            for (auto page = std::max(code->first, mapping.range.begin) - page_size; page < end;
                 page += page_size)
                distrusted_pages_.insert(page_number(page));
        }
    }
    if (distrusted_pages_.size() == known) return;
    forget_if(by_address_.begin(), by_address_.end(), [&](Address start, const Entry& entry) {
        return !entry.may_change && distrusted_pages_.contains(page_number(start));
    });
    ++epoch_;
}

bool GuestCode::may_change(Address at) {
    if (!maps_are_current_) maps();
    if (!last_mapping_.contains(at)) {
        const auto* mapping = maps_->mapping_at(at);
        if (!mapping) return true;
        last_mapping_ = mapping->range;
        last_is_fixed_ = is_fixed(*maps_, *mapping);
        last_is_writable_ = mapping->writable;
    }
    return !last_is_fixed_ || distrusted_pages_.contains(page_number(at));
}

bool GuestCode::may_be_written(Address at) {
    return may_change(at) && (!last_mapping_.contains(at) || last_is_writable_ ||
                              distrusted_pages_.contains(page_number(at)));
}

// The generation is that of the page that holds the block's last instruction: blocks that enter the
// same code at different places then agree about its locations.
trace::Location GuestCode::block_place(const std::vector<decoder::Instruction>& instructions) {
    auto place = locate(*maps(), modules_, instructions.front().address);
    if (!maps_->module_at(instructions.front().address)) {
        const auto page = page_number(instructions.back().address);
        const auto generation = generation_of_page_.find(page);
        place.content = 1 + (generation == generation_of_page_.end() ? 0 : generation->second);
    }
    return place;
}

// What was derived from them while nobody could write over them is void. They stay distrusted: a
// program that lets itself write again and again is not worth more than one new beginning.
void GuestCode::distrust_blocks_in(AddressRange range) {
    for (auto known = by_address_.lower_bound(range.begin);
         known != by_address_.end() && known->first < range.end; ++known)
        if (distrusted_pages_.insert(page_number(known->first)).second) ++epoch_;
}

// Blocks that begin before the range and reach into it are forgotten too.
void GuestCode::forget_blocks_in(AddressRange range) {
    former_.erase(former_.lower_bound(range.begin), former_.lower_bound(range.end));
    forget_known_in(range);
}

void GuestCode::forget_known_in(AddressRange range) {
    const auto reach = std::min<std::uint64_t>(trace::most_bytes_in_block, range.begin.value);
    forget_if(by_address_.lower_bound(range.begin - reach), by_address_.lower_bound(range.end),
              [&](Address, const Entry& known) { return range.begin < known.block->end(); });
}

}  // namespace shadowprof::emu
