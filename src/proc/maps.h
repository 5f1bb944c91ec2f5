// A process's mappings, and the modules (ELF images) among them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/address.h"

namespace shadowprof::proc {

struct Mapping {
    AddressRange range;
    bool readable = false, writable = false, executable = false, shared = false;
    std::uint64_t file_offset = 0;
    std::uint64_t device = 0, inode = 0;
    std::string path;  // as /proc/PID/maps names it, " (deleted)" removed; "" if anonymous
    bool deleted = false;
    // Pages of code that are the process's own and no longer the file's, because they were changed.
    // In order. Filled in by look_for_changed_code().
    std::vector<Address> changed_code;

    bool is_file() const { return inode != 0; }
};

struct MappedModule {
    std::string path;        // "[vdso]" for the vDSO
    std::string build_id;    // lower-case hex; empty if none
    AddressRange range;      // from its first to its last mapping, or a part that is mapped twice
    std::uint64_t bias = 0;  // address = link-time address + bias
};

class Maps {
  public:
    // Nothing if the process is gone, or ends meanwhile: a part of its mappings would look as if it
    // had unmapped the others. `before`, if given: what there was before in the process, or in the
    // one that it is a copy of. Modules are not sought again where the same files are mapped.
    static std::optional<Maps> of(pid_t pid, const Maps* before = nullptr);
    static std::optional<Maps> without_modules(pid_t pid);
    static Maps parse(std::string_view proc_maps_text);  // without modules

    const std::vector<Mapping>& mappings() const { return mappings_; }
    const std::vector<MappedModule>& modules() const { return modules_; }
    const Mapping* mapping_at(Address) const;      // nullptr if unmapped
    const MappedModule* module_at(Address) const;  // nullptr for code that belongs to no ELF image

    // This takes as long as everything else together: some 3 us for each MB of code.
    void look_for_changed_code(pid_t pid);

  private:
    std::vector<Mapping> mappings_;      // by address
    std::vector<MappedModule> modules_;  // by address
};

}  // namespace shadowprof::proc
