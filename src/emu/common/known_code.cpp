#include "emu/common/known_code.h"

#include "base/kept_files.h"

namespace shadowprof::emu {

namespace {

constexpr std::string_view version = "shadowprof-code 1\n";
// A place takes three bytes. The largest libraries (of browsers) have more places, of which those
// executed last are kept.
constexpr std::size_t most_places = 1u << 18;
constexpr std::size_t largest_file = 1u << 21;
constexpr std::size_t longest_build_id = 64;
constexpr std::uint64_t end_of_offsets = std::uint64_t{1} << 47;

// Seven bits a byte, lowest first.
void append_number(std::string& text, std::uint64_t number) {
    for (; number >= 0x80; number >>= 7) text += static_cast<char>(number | 0x80);
    text += static_cast<char>(number);
}
std::optional<std::uint64_t> take_number(std::string_view& text) {
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < 56 && !text.empty(); shift += 7) {
        const auto byte = static_cast<std::uint8_t>(text.front());
        text.remove_prefix(1);
        number |= std::uint64_t{byte & 0x7fu} << shift;
        if (byte < 0x80) return number;
    }
    return {};
}

// Small numbers for small distances in both directions.
std::uint64_t folded(std::uint64_t distance) {
    return distance << 1 ^ (distance >> 63 ? ~std::uint64_t{0} : 0);
}
std::uint64_t unfolded(std::uint64_t number) {
    return number >> 1 ^ (number & 1 ? ~std::uint64_t{0} : 0);
}

std::string checksum(std::string_view text) {
    std::uint64_t hash = text.size();
    for (const char c : text) hash = combine_hashes(hash, static_cast<std::uint8_t>(c));
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(hash >> 8 * i);
    return bytes;
}

std::string file_of(const std::string& build_id) {
    return "code-" + build_id;
}

// The program's memory has said what the build id is.
bool is_name(const std::string& build_id) {
    return !build_id.empty() && build_id.size() <= longest_build_id &&
           build_id.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

std::string written(const std::vector<KnownPlace>& places, std::string_view build_id) {
    std::string text{version};
    text.append(build_id) += '\n';
    std::uint64_t last = 0;
    for (const auto& place : places) {
        append_number(text, folded(place.offset - last) << 1 | (place.is_found ? 1 : 0));
        last = place.offset;
    }
    return text + checksum(text);
}

std::vector<KnownPlace> read_places(std::string_view contents, std::string_view build_id) {
    const auto head = std::string{version}.append(build_id) + '\n';
    if (contents.size() < head.size() + 8 || !contents.starts_with(head)) return {};
    auto text = contents.substr(0, contents.size() - 8);
    if (contents.substr(text.size()) != checksum(text)) return {};
    text.remove_prefix(head.size());
    std::vector<KnownPlace> places;
    std::uint64_t last = 0;
    while (!text.empty()) {
        const auto number = take_number(text);
        if (!number || places.size() == most_places) return {};
        last += unfolded(*number >> 1);
        if (last >= end_of_offsets) return {};
        places.push_back({last, (*number & 1) != 0});
    }
    return places;
}

KnownCode::Module* KnownCode::module_of(const trace::Location& place) {
    if (!is_kept_ || place.content != 0) return nullptr;
    const auto [known, is_new] = by_id_.try_emplace(place.module);
    if (is_new) known->second = module_with(modules_.at(place.module).build_id);
    return known->second;
}

KnownCode::Module* KnownCode::module_with(const std::string& build_id) {
    if (!is_name(build_id)) return nullptr;
    const auto [found, is_new] = by_build_id_.try_emplace(build_id);
    auto& module = found->second;
    if (!is_new) return &module;
    module.build_id = build_id;
    if (const auto file = read_kept_file(file_of(build_id), largest_file))
        module.before = read_places(file->contents, build_id);
    for (std::size_t n = 0; n < module.before.size(); ++n)
        module.facts[module.before[n].offset].number = (n + 1) & 0x3fffffff;
    module.left = module.before.size();
    return &module;
}

void KnownCode::was_executed(const trace::Location& place) {
    auto* const module = module_of(place);
    if (!module) return;
    auto& facts = module->facts[place.offset];
    if (facts.executed) return;
    facts.executed = 1;
    module->executed.push_back(place.offset);
}

bool KnownCode::may_have_been_executed(const trace::Location& place) {
    auto* const module = module_of(place);
    if (!module) return true;
    const auto* const facts = module->facts.find(place.offset);
    return facts && (facts->executed || facts->number > 0);
}

void KnownCode::was_found(const trace::Location& place) {
    if (auto* const module = module_of(place)) module->facts[place.offset].found = 1;
}

bool KnownCode::go_on_from(const trace::Location& place) {
    auto* const module = module_of(place);
    if (!module) return false;
    last_asked_for_ = module;
    const auto* const facts = module->facts.find(place.offset);
    if (!facts || facts->number == 0) return false;
    module->next = facts->number - 1;
    module->left = module->before.size();
    return true;
}

void KnownCode::look_at(const proc::Maps& maps) {
    mapped_.clear();
    for (const auto& mapped : maps.modules())
        if (auto* const module = module_with(mapped.build_id))
            if (!module->before.empty()) mapped_.push_back({module, mapped.bias, mapped.range});
    std::ranges::stable_sort(mapped_, std::greater{}, [](const auto& m) { return m.range.size(); });
}

std::optional<KnownCode::Next> KnownCode::next(const std::shared_ptr<const proc::Maps>& maps) {
    if (!is_kept_) return {};
    if (maps_ != maps) look_at(*(maps_ = maps));
    const Mapped* chosen = nullptr;
    for (const auto& mapped : mapped_) {
        if (mapped.module->left == 0) continue;
        if (!chosen || (mapped.module == last_asked_for_ && chosen->module != last_asked_for_))
            chosen = &mapped;
    }
    if (!chosen) return {};
    auto& module = *chosen->module;
    const auto& place = module.before[module.next];
    module.next = (module.next + 1) % module.before.size();
    --module.left;
    // Of a part that is mapped once more that is what runs.
    for (const auto& mapped : mapped_)
        if (mapped.module == &module && mapped.range.contains({place.offset + mapped.bias}))
            chosen = &mapped;
    return Next{{place.offset + chosen->bias}, place.is_found};
}

std::vector<KnownPlace> KnownCode::places_of(Module& module, bool& has_news) const {
    std::vector<KnownPlace> places;
    for (const auto offset : module.executed) {
        const auto facts = module.facts[offset];
        const auto* const before = facts.number ? &module.before[facts.number - 1] : nullptr;
        places.push_back({offset, facts.found || (before && before->is_found)});
        has_news |= !before || *before != places.back();
    }
    for (const auto& place : module.before)
        if (!module.facts[place.offset].executed) places.push_back(place);
    if (places.size() > most_places) places.resize(most_places);
    return places;
}

void KnownCode::keep() {
    if (!is_kept_) return;
    for (auto& [build_id, module] : by_build_id_) {
        bool has_news = false;
        const auto places = places_of(module, has_news);
        if (has_news) write_kept_file(file_of(build_id), written(places, build_id));
    }
}

}  // namespace shadowprof::emu
