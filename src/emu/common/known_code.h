// Where code was executed before, in this run and in earlier ones, so that it can be translated
// before a thread asks for it.
//
// Of each program and library that has a build id it is kept in a file where pieces of code began,
// as link-time addresses in the order in which they were first executed. Never code. Whatever such
// a file says is a mere hint: what is no code of the module is not translated, and what is never
// executed does no harm.
//
// For one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/flat_map.h"
#include "proc/maps.h"
#include "trace/location.h"

namespace shadowprof::emu {

// A place in a module where code was executed.
struct KnownPlace {
    std::uint64_t offset = 0;  // link-time address
    bool is_found = false;     // indirect branches lead there
    bool operator==(const KnownPlace&) const = default;
};

// The contents of a file, and what is in them: nothing if they are damaged, of another version or
// of another module.
std::string written(const std::vector<KnownPlace>& places, std::string_view build_id);
std::vector<KnownPlace> read_places(std::string_view contents, std::string_view build_id);

class KnownCode {
  public:
    // `is_kept`: from one run to the next.
    KnownCode(trace::ModuleTable& modules, bool is_kept) : modules_(modules), is_kept_(is_kept) {}

    bool is_kept() const { return is_kept_; }
    // In this run or in an earlier one; or nothing is known of this module.
    bool may_have_been_executed(const trace::Location& place);

    void was_executed(const trace::Location& place);
    void was_found(const trace::Location& place);

    // A thread has come to new code there: this, and what was executed next in an earlier run, is
    // wanted first. False: this is not known from one.
    bool go_on_from(const trace::Location& place);
    struct Next {
        Address at;
        bool is_found;
    };
    // The next place that is known from an earlier run, in modules that are mapped; each of them
    // once, until go_on_from().
    std::optional<Next> next(const std::shared_ptr<const proc::Maps>& maps);

    // Writes down what was learned.
    void keep();

  private:
    struct Facts {
        std::uint32_t number : 30;  // among the places known before, from 1 on
        std::uint32_t executed : 1, found : 1;
        Facts() : number(0), executed(0), found(0) {}
    };
    struct Module {
        std::string build_id;
        std::vector<KnownPlace> before;
        std::vector<std::uint64_t> executed;  // in this run, in order
        FlatMap<Facts> facts;                 // by offset
        std::size_t next = 0, left = 0;       // among `before`
    };
    struct Mapped {
        Module* module;
        std::uint64_t bias;
        AddressRange range;
    };
    // Null if nothing is kept of it.
    Module* module_of(const trace::Location& place);
    Module* module_with(const std::string& build_id);
    void look_at(const proc::Maps& maps);
    std::vector<KnownPlace> places_of(Module& module, bool& has_news) const;

    trace::ModuleTable& modules_;
    bool is_kept_;
    std::map<std::string, Module> by_build_id_;
    std::unordered_map<trace::ModuleId, Module*> by_id_;
    std::shared_ptr<const proc::Maps> maps_;
    std::vector<Mapped> mapped_;
    Module* last_asked_for_ = nullptr;
};

}  // namespace shadowprof::emu
