// An ELF file on disk, or our own vDSO, of exactly the build that a location belongs to.
#pragma once

#include <elfutils/libdwfl.h>
#include <gelf.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "report/views/function_table.h"

namespace shadowprof::report {

struct ElfSection {
    std::string name;
    GElf_Shdr header{};
    Elf_Scn* section = nullptr;
};

// A place that the dynamic linker writes, and the symbol whose address it writes there.
struct Relocation {
    std::uint64_t slot = 0;
    std::string symbol;                      // empty for the resolved-at-load-time kind:
    std::uint64_t addend = 0;                // the address of its resolver
    std::optional<std::uint64_t> plt_index;  // its place in .rela.plt
};

// Debug files that an earlier run has unpacked and kept (unpacked_debug.cpp): one of that build, or
// -1.
int open_unpacked(const std::string& build_id);
// Unpacks and keeps one. False: the directory has none, or none that is packed.
bool keep_unpacked(const std::string& debug_directory, const std::string& build_id);

// To be used by one thread at a time, because of libdw. Addresses are link-time addresses.
class ElfImage {
  public:
    // nullptr if there is no such file, if it is not an x86-64 ELF file, or if its build id is not
    // the module's. A file without a build id never stands for a module that has one.
    static std::unique_ptr<ElfImage> open(const std::string& path, const std::string& build_id,
                                          const std::vector<std::string>& debug_directories,
                                          bool keeps_unpacked = false);
    // The vDSO that is mapped into this process, if it is of that build.
    static std::unique_ptr<ElfImage> open_own_vdso(const std::string& build_id);
    ~ElfImage();
    ElfImage(const ElfImage&) = delete;
    ElfImage& operator=(const ElfImage&) = delete;

    // Symbols also come from separate debug files, found by build id or debug link.
    std::vector<SymbolCandidate> symbols() const;
    std::vector<SymbolCandidate> variables() const;
    std::vector<ElfSection> sections() const;
    std::vector<Relocation> relocations() const;
    // Reads from the loadable segment that holds the address; fewer bytes at the segment's end.
    std::vector<std::byte> bytes(std::uint64_t address, std::size_t size) const;
    bool has_debug_information() const;  // in it or in a separate file
    // Debug information is about to be read: next time it is to be there unpacked.
    void keep_debug_file() const;
    Dwfl_Module* dwfl_module() const { return module_; }

  private:
    ElfImage() = default;
    std::vector<SymbolCandidate> symbols_in(bool code) const;
    static std::unique_ptr<ElfImage> from_descriptor(int fd, const std::string& path,
                                                     const std::string& build_id,
                                                     const std::vector<std::string>& directories,
                                                     bool keeps_unpacked);
    static int find_debug_file(Dwfl_Module* module, void** image, const char* name, GElf_Addr base,
                               const char* file, const char* link, GElf_Word checksum,
                               char** found);

    std::string build_id_;
    std::vector<std::string> debug_directories_;
    bool keeps_unpacked_ = false, is_unpacked_ = false;
    std::string debug_path_;
    char* debug_path_pointer_ = nullptr;
    Dwfl_Callbacks callbacks_{};
    Dwfl* session_ = nullptr;
    Dwfl_Module* module_ = nullptr;
    Elf* elf_ = nullptr;
    int file_ = -1;
};

}  // namespace shadowprof::report
