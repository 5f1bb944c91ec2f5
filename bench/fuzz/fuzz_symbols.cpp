// ELF files and debug information that nobody trusts. Whatever is in them, names come out or none
// do: in a bounded time, and without a crash.
#include <elfutils/libdwelf.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "report/exports/binary_names.h"
#include "report/exports/source_scopes.h"
#include "report/symbols/symbols.h"

using namespace shadowprof;

namespace {

class File {
  public:
    File(const std::uint8_t* data, std::size_t size) : fd_(::memfd_create("fuzzed", MFD_CLOEXEC)) {
        if (::write(fd_, data, size) != static_cast<ssize_t>(size)) ::abort();
    }
    ~File() { ::close(fd_); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    std::string path() const { return fmt::format("/proc/self/fd/{}", fd_); }
    // Or nothing in it would be believed.
    std::string build_id() const {
        std::string hex;
        Elf* const elf = elf_begin(fd_, ELF_C_READ, nullptr);
        const void* id = nullptr;
        const auto size = elf ? dwelf_elf_gnu_build_id(elf, &id) : 0;
        for (ssize_t n = 0; n < size; ++n)
            hex += fmt::format("{:02x}", static_cast<const std::uint8_t*>(id)[n]);
        elf_end(elf);
        return hex;
    }

  private:
    int fd_;
};

std::vector<report::FunctionInfo> some_functions(report::Symbols& symbols,
                                                 const trace::Module& module) {
    constexpr std::size_t most = 200;
    auto functions = symbols.functions_of(module);
    functions.resize(std::min(functions.size(), most));
    return functions;
}

void name_all(report::Symbols& symbols, const trace::Module& module) {
    for (const auto& f : some_functions(symbols, module)) {
        for (const auto at : {f.begin, f.begin + (f.end - f.begin) / 2, f.end - 1}) {
            static_cast<void>(symbols.function_at(module, at));
            static_cast<void>(symbols.line_at(module, at));
            static_cast<void>(symbols.is_writable(module, at));
        }
        static_cast<void>(symbols.is_described_function(module, f.begin));
        static_cast<void>(symbols.parameters_at(module, f.begin));
        static_cast<void>(symbols.code_of(module, f.begin, f.end - f.begin));
    }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    elf_version(EV_CURRENT);
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const File file{data, size};
    report::SymbolOptions options;
    options.debug_directories.clear();
    report::Symbols symbols{options};
    trace::Module module;
    module.path = file.path();
    module.build_id = file.build_id();
    name_all(symbols, module);

    model::Module exported;
    exported.path = module.path;
    exported.build_id = module.build_id;
    try {
        const report::BinaryNames names{exported, options};
        for (const auto& f : some_functions(symbols, module))
            if (const auto* const found = names.at(f.begin))
                static_cast<void>(names.code_of(*found));
    } catch (const UserError&) {  // it has no symbol table
    }
    try {
        report::SourceScopes scopes{exported, options};
        scopes.each(0, ~std::uint64_t{0}, [](const auto&) {});
    } catch (const UserError&) {  // it has no debug information
    }
    return 0;
}
