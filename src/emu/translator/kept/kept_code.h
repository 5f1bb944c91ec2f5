// Code that earlier runs, or other processes, have translated, by program and library. Whoever
// wants a unit asks here first (Translator::add_unit).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emu/common/guest_code.h"
#include "emu/translator/kept/kept_units.h"

namespace shadowprof::emu::translator {

class Translator;

class KeptCode {
  public:
    KeptCode(GuestCode& code, Asking asking);

    struct Module {
        std::string build_id;
        AddressRange range;
        std::uint64_t bias = 0;
        trace::ModuleId id{};
        std::optional<KeptFacts> facts;          // nothing: nothing can be kept of it
        std::unique_ptr<const KeptUnits> units;  // or null
        bool is_read = false;
    };
    struct Found {
        const Module* module;
        const KeptUnit* unit;
    };
    // `ground`: where in the cache things are.
    std::optional<Found> find(Address pc, Version version, const KeptFacts& ground);
    // Writes down what is new. The process may be gone.
    void keep(const Translator& translator) const;

  private:
    Module* module_at(Address pc);
    void read(Module& module, const KeptFacts& ground);
    std::string file_of(const Module& module) const;

    GuestCode& code_;
    std::string kind_;  // empty: nothing is kept of what this run translates
    std::shared_ptr<const proc::Maps> maps_;
    // Modules that were unmapped stay known.
    std::vector<std::unique_ptr<Module>> modules_;
    Module* last_ = nullptr;
};

}  // namespace shadowprof::emu::translator
