#include "report/symbols/symbols.h"

#include <algorithm>
#include <array>
#include <utility>

#include "report/symbols/demangle.h"
#include "report/symbols/plt.h"
#include "report/symbols/symbol_file.h"
#include "report/symbols/unwind_ranges.h"

namespace shadowprof::report {

namespace {

constexpr std::string_view vdso_path = "[vdso]";
constexpr std::string_view runtime_code_path = "[runtime code]";
// Sections that are writable in the file and read-only once the dynamic linker is done.
constexpr std::array<std::string_view, 4> linker_tables{".got", ".got.plt", ".data.rel.ro",
                                                        ".data.rel.ro.local"};

FunctionInfo info_of(const Function& f) {
    return {demangle(f.symbol), f.begin, f.end};
}

}  // namespace

// Most places are in functions that have symbols: all else is read when it is first asked for.
struct Symbols::File {
    std::unique_ptr<ElfImage> image;
    FunctionTable functions;
    bool knows_gaps = false;
    std::optional<FunctionTable> variables;
    std::unique_ptr<SourceLines> lines;

    explicit File(std::unique_ptr<ElfImage> opened)
        : image(std::move(opened)), functions(image->symbols()) {}

    const FunctionTable& all_functions() {
        if (!std::exchange(knows_gaps, true)) {
            functions.fill_gaps(plt_stubs(*image, functions));
            functions.fill_gaps(unwind_ranges(*image));
        }
        return functions;
    }
    const Function* function_at(std::uint64_t offset) {
        const auto* const found = functions.find(offset);
        return found ? found : all_functions().find(offset);
    }
    const Function* variable_at(std::uint64_t offset) {
        if (!variables) variables.emplace(image->variables());
        return variables->find(offset);
    }
};

struct Symbols::Files {
    std::mutex mutex;
    std::unordered_map<std::string, std::unique_ptr<File>> opened;  // by path and build id
};

Symbols::Symbols(SymbolOptions options, const Symbols* beside)
    : files_(beside ? beside->files_ : std::make_shared<Files>()), options_(std::move(options)) {}

Symbols::~Symbols() = default;

void Symbols::use_runtime_map(const std::string& path, uid_t owner) {
    const std::lock_guard lock(files_->mutex);
    runtime_names_ = RuntimeNames(path, owner);
}

std::string Symbols::warning() {
    const std::lock_guard lock(files_->mutex);
    return runtime_names_.why_not_all();
}

Symbols::File* Symbols::file_of(const trace::Module& module) {
    const auto [entry, is_new] = files_->opened.try_emplace(module.path + '\n' + module.build_id);
    if (is_new && !module.path.empty()) {
        auto image = module.path == vdso_path
                         ? ElfImage::open_own_vdso(module.build_id)
                         : ElfImage::open(options_.root + module.path, module.build_id,
                                          options_.debug_directories, options_.keeps_unpacked);
        if (image) entry->second = std::make_unique<File>(std::move(image));
    }
    return entry->second.get();
}

std::optional<FunctionInfo> Symbols::function_at(const trace::Module& module,
                                                 std::uint64_t offset) {
    const std::lock_guard lock(files_->mutex);
    const Function* found = nullptr;
    if (module.path == runtime_code_path)
        found = runtime_names_.find(offset);
    else if (File* file = file_of(module))
        if (!(found = file->function_at(offset))) found = file->variable_at(offset);
    if (!found) return {};
    return info_of(*found);
}

SourceLine Symbols::line_at(const trace::Module& module, std::uint64_t offset) {
    const std::lock_guard lock(files_->mutex);
    File* file = file_of(module);
    return file ? lines_of(*file).find(offset) : SourceLine{};
}

SourceLines& Symbols::lines_of(File& file) {
    if (!file.lines) {
        file.lines = std::make_unique<SourceLines>(file.image->dwfl_module());
        file.image->keep_debug_file();
    }
    return *file.lines;
}

bool Symbols::is_described_function(const trace::Module& module, std::uint64_t offset) {
    const std::lock_guard lock(files_->mutex);
    File* file = file_of(module);
    if (!file || !file->image->has_debug_information()) return false;
    const auto* found = file->function_at(offset);
    return found && found->begin == offset;
}

// GCC says in the symbol that it has changed a function's parameters: f.isra.0, f.constprop.0, …
std::vector<PassedParameter> Symbols::parameters_at(const trace::Module& module,
                                                    std::uint64_t offset) {
    const std::lock_guard lock(files_->mutex);
    File* file = file_of(module);
    const auto* found = file ? file->function_at(offset) : nullptr;
    if (!found) return {};
    return lines_of(*file).parameters_at(offset, found->symbol.find('.') != std::string::npos);
}

std::vector<FunctionInfo> Symbols::functions_of(const trace::Module& module) {
    const std::lock_guard lock(files_->mutex);
    std::vector<FunctionInfo> all;
    if (File* file = file_of(module))
        for (const auto& f : file->all_functions().functions()) all.push_back(info_of(f));
    return all;
}

std::vector<std::byte> Symbols::code_of(const trace::Module& module, std::uint64_t offset,
                                        std::size_t size) {
    const std::lock_guard lock(files_->mutex);
    File* file = file_of(module);
    return file ? file->image->bytes(offset, size) : std::vector<std::byte>();
}

std::optional<bool> Symbols::is_writable(const trace::Module& module, std::uint64_t offset) {
    const std::lock_guard lock(files_->mutex);
    File* file = file_of(module);
    if (!file) return {};
    for (const auto& section : file->image->sections()) {
        const auto& header = section.header;
        if (!(header.sh_flags & SHF_ALLOC) || offset < header.sh_addr ||
            offset - header.sh_addr >= header.sh_size)
            continue;
        return (header.sh_flags & SHF_WRITE) &&
               std::find(linker_tables.begin(), linker_tables.end(), section.name) ==
                   linker_tables.end();
    }
    return {};
}

trace::Location SymbolFunctionMap::place_to_tell(trace::Location location) {
    return modules_.interpreted_at(location) ? location : function_of(location);
}

trace::Location SymbolFunctionMap::function_of(trace::Location location) {
    const std::lock_guard lock(mutex_);
    const auto [entry, is_new] = known_.try_emplace(location, location);
    if (!is_new) return entry->second;
    if (const auto interpreted = modules_.interpreted_at(location))
        entry->second = interpreted->begin;
    else if (const auto f = symbols_.function_at(modules_.at(location.module), location.offset))
        entry->second.offset = f->begin;
    return entry->second;
}

bool SymbolFunctionMap::wants_arguments_at(const trace::Location& place) const {
    return symbols_.is_described_function(modules_.at(place.module), place.offset);
}

void SymbolFunctionMap::forget() {
    const std::lock_guard lock(mutex_);
    known_.clear();
}

}  // namespace shadowprof::report
