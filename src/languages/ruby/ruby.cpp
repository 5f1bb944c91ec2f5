#include "languages/ruby/ruby.h"

#include <array>
#include <filesystem>
#include <string>
#include <utility>

#include "languages/ruby/line_table.h"
#include "languages/ruby/place.h"

namespace shadowprof::languages::ruby {

bool Ruby::is_still(const Glance::Frame& frame) const {
    std::vector now{frame};
    const auto code = memory().read_as<std::array<std::byte, internal_size>>(frame.function);
    if (frame.function != frame.owner) {
        const auto body = code ? body_of_code(*code) : std::nullopt;
        const auto begin = body ? memory().read_as<std::int64_t>(*body + place_.layout.code.encoded)
                                : std::nullopt;
        if (!begin) return false;
        now.front().position = *begin;
    }
    return identify(memory(), place_.layout, now) && now.front().contents == frame.contents;
}

std::optional<KnownFunctions::Read> Ruby::read_code(const Names& names,
                                                    const Glance::Frame& frame) const {
    const auto object = memory().read_as<std::array<std::byte, internal_size>>(frame.function);
    const auto body = object ? body_of_code(*object) : std::nullopt;
    std::vector<std::byte> of_body(place_.layout.code.size);
    if (!body || !memory().read(*body, of_body)) return {};
    const auto facts = code_facts(place_.layout, *body, of_body);
    if (!facts) return {};
    auto label = names.text(facts->label), base = names.text(facts->base_label),
         file = names.path(facts->path);
    std::vector<std::byte> lines(facts->line_count * line_entry_size),
        index(facts->line_count > 1 ? index_size(facts->words) : 0);
    if (!label || !base || !file || !memory().read(facts->lines, lines) ||
        (!index.empty() && !memory().read(facts->line_index, index)))
        return {};
    // "block in area", and "<class:Shape>", which is no method.
    if (frame.owner.value != 0 && label->ends_with(*base) && !base->starts_with('<')) {
        const auto method = memory().read_as<std::array<std::byte, internal_size>>(frame.owner);
        const auto its = method ? method_facts(*method) : std::nullopt;
        const auto name = its ? qualified(names.owner(its->owner), *base) : *base;
        label->replace(label->size() - base->size(), base->size(), name);
    }
    const auto first = std::max(facts->first_line, std::uint32_t{1});
    // The position is that of the next instruction, or of the one that is executed.
    return KnownFunctions::Read{
        {std::move(*label), std::move(*file), first},
        [lines = std::move(lines), index = std::move(index)](std::int64_t position) {
            return line_at(lines, index,
                           static_cast<std::uint32_t>(std::max<std::int64_t>(position - 1, 0)));
        }};
}

// While they are there: before it and after it the objects are those that were seen.
std::optional<KnownFunctions::Read> Ruby::read(const Glance::Frame& frame) const {
    if (!is_still(frame)) return {};
    const Names names{memory(), place_.layout, place_.symbols};
    std::optional<KnownFunctions::Read> found;
    if (frame.function != frame.owner) {
        found = read_code(names, frame);
    } else if (const auto object =
                   memory().read_as<std::array<std::byte, internal_size>>(frame.function)) {
        const auto method = method_facts(*object);
        const auto name = method ? names.method(method->definition) : std::nullopt;
        if (name)
            found = KnownFunctions::Read{{qualified(names.owner(method->owner), *name), "", 0},
                                         [](auto) { return std::nullopt; }};
    }
    if (!is_still(frame)) return {};
    return found;
}

std::unique_ptr<Interpreter> find(pid_t pid, const proc::Maps& maps) {
    std::error_code none;
    const auto program =
        std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", none);
    for (const auto& module : maps.modules()) {
        const std::filesystem::path path = module.path;
        if (path != program && path.filename().string().find("ruby") == std::string::npos) continue;
        if (auto place = find_place(pid, maps, module))
            return std::make_unique<Ruby>(std::move(*place), std::make_unique<ProcessMemory>(pid));
    }
    return nullptr;
}

}  // namespace shadowprof::languages::ruby
