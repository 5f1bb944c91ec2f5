// Runs guest code from a code cache in this process: the guest's own memory stays readable and is
// not executable meanwhile, so that whatever leaves the cache is caught and goes on in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "emu/common/guest_code.h"
#include "emu/interpreter/guest_state.h"
#include "emu/translator/translator.h"
#include "native.h"
#include "trace/segment.h"

namespace shadowprof::differential {

class TranslatedCode {
  public:
    using Version = emu::translator::Version;

    // Of the cache: within reach of all there is, or more than 2 GB from what lies below the code.
    enum class Place : std::uint64_t { near = 0x30000000, far = 0x9e000000 };

    explicit TranslatedCode(emu::GuestCode& code, Place place = Place::near);
    ~TranslatedCode();
    TranslatedCode(const TranslatedCode&) = delete;
    TranslatedCode& operator=(const TranslatedCode&) = delete;

    struct End {
        NativeEnd native;  // as if the code had run by itself
        bool unsupported =
            false;  // it went on by itself from an instruction that is not translated
        // Status flags that no code would have read, and that a fault made visible.
        std::uint64_t void_flags = 0;
        std::vector<trace::BlockId> blocks;
        std::vector<std::uint64_t> values;  // in the version for them
        std::string broken;                 // something that cannot be
        unsigned requests = 0;
    };
    // Code is within one page from now on, or anywhere.
    void stay_in_page(bool yes) { stays_in_page_ = yes; }
    // From state.rip on. With `random` the thread is called, its slot is full, its time is over,
    // now and then; without it never.
    End run(NativeCode& native, emu::GuestState& state, Version version, Random* random = nullptr);

    // Memory of the engine's own, which the guest is to find nowhere.
    bool contains(Address at) const;

    // Of the last run that was.
    Address unsupported_at() const { return {area().pc}; }
    // What was executed in the lean version is to be one unit from now on.
    void follow(const std::vector<trace::BlockId>& executed);

    emu::translator::Translator& translator() { return *translator_; }
    const emu::translator::Translator& translator() const { return *translator_; }
    // So that a full cache is soon reached.
    static constexpr std::size_t arena_size = 2u << 20;

  private:
    emu::translator::ThreadArea& area() const;
    std::uint64_t prepare_stream(Version version, Random* random, bool has_looked);
    NativeEnd run_cached(NativeCode& native, emu::GuestState& state);
    // A request for something that is to be found at state.rip; false if it cannot be granted.
    bool answer(const emu::GuestState& state, Version version);
    void at_fault(emu::GuestState& state, Version version, End& end);
    void read_stream(Version version, End& end);
    void read_block(const trace::Block& block, Version version, const std::byte*& at, End& end);

    emu::GuestCode& code_;
    trace::SegmentTable segments_;
    std::byte* data_;
    std::byte* alias_;
    std::byte* arena_;
    std::optional<emu::translator::LookupTables> tables_;
    std::optional<emu::translator::Translator> translator_;
    bool stays_in_page_ = false;
    std::uint64_t stream_ = 0;  // where the thread writes next
};

}  // namespace shadowprof::differential
