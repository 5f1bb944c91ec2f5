// An ELF file on disk (or our own vDSO) that is the very build a location speaks of.
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

// What the dynamic linker writes, and where.
struct Relocation {
    std::uint64_t slot = 0;
    std::string symbol;                      // empty for the resolved-at-load-time kind:
    std::uint64_t addend = 0;                // the address of its resolver
    std::optional<std::uint64_t> plt_index;  // its place in .rela.plt
};

// One thread at a time: libdw is not made for more. Addresses are link-time addresses.
class ElfImage {
  public:
    // nullptr if there is no such file, it is no x86-64 ELF file, or it is another build: the
    // build ids are compared, and a file that has none cannot stand for a module that has one.
    static std::unique_ptr<ElfImage> open(const std::string& path, const std::string& build_id,
                                          const std::vector<std::string>& debug_directories);
    // The one mapped into this process, if it is that build.
    static std::unique_ptr<ElfImage> open_own_vdso(const std::string& build_id);
    ~ElfImage();
    ElfImage(const ElfImage&) = delete;
    ElfImage& operator=(const ElfImage&) = delete;

    // Also from separate debug files, found by build id or debug link.
    std::vector<SymbolCandidate> symbols() const;
    std::vector<ElfSection> sections() const;
    std::vector<Relocation> relocations() const;
    // From the file, by the loadable segment that holds the address; shorter at the segment's end.
    std::vector<std::byte> bytes(std::uint64_t address, std::size_t size) const;
    Dwfl_Module* dwfl_module() const { return module_; }

  private:
    ElfImage() = default;
    static std::unique_ptr<ElfImage> from_descriptor(int fd, const std::string& path,
                                                     const std::string& build_id,
                                                     const std::vector<std::string>& directories);

    std::string debug_path_;
    char* debug_path_pointer_ = nullptr;
    Dwfl_Callbacks callbacks_{};
    Dwfl* session_ = nullptr;
    Dwfl_Module* module_ = nullptr;
    Elf* elf_ = nullptr;
    int file_ = -1;
};

}  // namespace shadowprof::report
