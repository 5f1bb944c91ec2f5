#include "languages/ruby/objects.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace shadowprof::languages::ruby {

namespace {

// RBasic::flags
constexpr std::uint64_t type_mask = 0x1f, of_class = 0x02, of_module = 0x03, of_text = 0x05,
                        of_array = 0x07, of_internal = 0x1a;
constexpr unsigned user_bits = 12;
constexpr std::uint64_t is_singleton = 1u << user_bits, has_pointer = 1u << (user_bits + 1),
                        is_embedded_array = 1u << (user_bits + 1);

constexpr std::uint64_t longest_name = 4096, most_instructions = 1u << 24, most_lines = 100'000'000;

std::uint64_t flags_of(std::span<const std::byte> object) {
    return field<std::uint64_t>(object, 0);
}

std::uint64_t type_of(std::span<const std::byte> object) {
    return flags_of(object) & type_mask;
}

// Characters that are there to be seen, in UTF-8.
bool is_name(std::string_view text) {
    std::size_t n = 0;
    while (n < text.size()) {
        const auto first = static_cast<unsigned char>(text[n]);
        if (first < ' ' || first == 0x7f) return false;
        const std::size_t size = first < 0x80    ? 1
                                 : first >= 0xf0 ? 4
                                 : first >= 0xe0 ? 3
                                 : first >= 0xc2 ? 2
                                                 : 0;
        if (size == 0 || first > 0xf4 || size > text.size() - n) return false;
        for (std::size_t more = 1; more < size; ++more)
            if ((static_cast<unsigned char>(text[n + more]) & 0xc0) != 0x80) return false;
        n += size;
    }
    return !text.empty();
}

}  // namespace

bool is_internal(std::span<const std::byte> object, Internal kind) {
    return type_of(object) == of_internal &&
           (flags_of(object) >> user_bits & 0xf) == static_cast<std::uint64_t>(kind);
}

std::uint64_t CodeFacts::hash() const {
    auto hash = combine_hashes(body.value, encoded.value);
    for (const auto at : {path, base_label, label, lines, line_index})
        hash = combine_hashes(hash, at.value);
    hash = combine_hashes(hash, line_count);
    return combine_hashes(hash, first_line ^ std::uint64_t{words} << 32);
}

std::optional<Address> body_of_code(std::span<const std::byte> object) {
    const auto body = field<Address>(object, 16);
    if (!is_internal(object, Internal::code) || !may_be_pointer(body)) return {};
    return body;
}

std::optional<CodeFacts> code_facts(const Layout& layout, Address body,
                                    std::span<const std::byte> of_body) {
    const auto& fields = layout.code;
    const auto pointer = [&](std::uint64_t offset) { return field<Address>(of_body, offset); };
    CodeFacts facts;
    facts.body = body;
    facts.encoded = pointer(fields.encoded);
    facts.path = pointer(fields.path);
    facts.base_label = pointer(fields.base_label);
    facts.label = pointer(fields.label);
    facts.lines = pointer(fields.lines);
    facts.line_index = pointer(fields.line_index);
    facts.words = field<std::uint32_t>(of_body, fields.instructions);
    facts.line_count = field<std::uint32_t>(of_body, fields.line_count);
    // 3.1 has it as a number of the language.
    const auto first_line = layout.minor == 1 ? field<std::int64_t>(of_body, fields.first_line) >> 1
                                              : field<std::int32_t>(of_body, fields.first_line);
    constexpr std::uint32_t most_kinds = 9;
    const auto pointers = {facts.encoded, facts.path, facts.base_label, facts.label, facts.lines};
    if (of_body.size() < fields.size || field<std::uint32_t>(of_body, fields.kind) >= most_kinds ||
        !std::ranges::all_of(pointers, may_be_pointer) || facts.words == 0 ||
        facts.words > most_instructions || facts.line_count == 0 ||
        facts.line_count > facts.words || first_line < 0 ||
        first_line > static_cast<std::int64_t>(most_lines) ||
        (facts.line_count > 1 && !may_be_pointer(facts.line_index)))
        return {};
    facts.first_line = static_cast<std::uint32_t>(first_line);
    return facts;
}

std::uint64_t MethodFacts::hash() const {
    return combine_hashes(definition.value, owner.value);
}

std::optional<MethodFacts> method_facts(std::span<const std::byte> object) {
    const MethodFacts facts{field<Address>(object, 16), field<Address>(object, 32)};
    if (!is_internal(object, Internal::method) || !may_be_pointer(facts.definition) ||
        !may_be_pointer(facts.owner))
        return {};
    return facts;
}

std::optional<Address> wrapped_method(std::span<const std::byte> object) {
    if (!is_internal(object, Internal::special_variables)) return {};
    return field<Address>(object, 8);
}

std::optional<std::string> Names::text(Address at) const {
    std::array<std::byte, internal_size> header{};
    if (!may_be_pointer(at) || !memory_.read(at, header) || type_of(header) != of_text) return {};
    const bool is_apart = flags_of(header) & has_pointer;
    auto length = field<std::uint64_t>(header, 16);
    auto begin = is_apart ? field<Address>(header, 24) : at + 24;
    if (layout_.has_length_in_flags && !is_apart) {
        length = flags_of(header) >> (user_bits + 2) & 0x1f;
        begin = at + 16;
    }
    if (length == 0 || length > longest_name) return {};
    std::string characters(length, '\0');
    if (!memory_.read(begin, std::as_writable_bytes(std::span{characters})) || !is_name(characters))
        return {};
    return characters;
}

std::optional<Address> Names::element(Address array, std::uint64_t n) const {
    std::array<std::byte, internal_size> header{};
    if (!may_be_pointer(array) || !memory_.read(array, header) || type_of(header) != of_array)
        return {};
    const bool is_embedded = flags_of(header) & is_embedded_array;
    const std::uint64_t length_mask = layout_.has_length_in_flags ? 0x3 : 0x7f;
    const auto length = is_embedded ? flags_of(header) >> (user_bits + 3) & length_mask
                                    : field<std::uint64_t>(header, 16);
    const auto begin = is_embedded ? array + 16 : field<Address>(header, 32);
    if (n >= length || !may_be_pointer(begin)) return {};
    return memory_.read_as<Address>(begin + n * sizeof(Address));
}

std::optional<std::string> Names::path(Address at) const {
    if (auto alone = text(at)) return alone;
    const auto short_name = element(at, 0), full = element(at, 1);
    if (full)
        if (auto name = text(*full)) return name;
    return short_name ? text(*short_name) : std::nullopt;
}

// An array of arrays, each of 512 pairs of a text and a symbol.
std::optional<std::string> Names::symbol(std::uint64_t id) const {
    constexpr std::uint64_t last_operator = 169, scope_bits = 4, per_array = 512;
    const auto number = id > last_operator ? id >> scope_bits : id;
    const auto arrays = memory_.read_as<Address>(symbols_ + 16);
    const auto array = arrays ? element(*arrays, number / per_array) : std::nullopt;
    const auto name = array ? element(*array, number % per_array * 2) : std::nullopt;
    return name ? text(*name) : std::nullopt;
}

// 3.1 keeps them as variables of the class.
std::optional<Address> Names::type_field(Address type, std::uint64_t offset,
                                         std::string_view variable) const {
    if (layout_.type.variables == 0) return memory_.read_as<Address>(type + offset);
    const auto extension = memory_.read_as<Address>(type + layout_.type.extension);
    if (!extension || !may_be_pointer(*extension)) return {};
    const auto table = memory_.read_as<Address>(*extension + layout_.type.variables);
    if (!table || !may_be_pointer(*table)) return {};
    const auto end = memory_.read_as<std::uint64_t>(*table + 40);
    const auto entries = memory_.read_as<Address>(*table + 48);
    constexpr std::uint64_t most_variables = 64;
    if (!end || !entries || !may_be_pointer(*entries)) return {};
    struct Entry {
        std::uint64_t hash, name;
        Address value;
    };
    for (std::uint64_t n = 0; n < std::min(*end, most_variables); ++n) {
        const auto entry = memory_.read_as<Entry>(*entries + n * sizeof(Entry));
        if (!entry) return {};
        if (symbol(entry->name) == variable) return entry->value;
    }
    return {};
}

std::optional<std::string> Names::type_name(Address type) const {
    const auto at = type_field(type, layout_.type.name, "__classpath__");
    return at ? text(*at) : std::nullopt;
}

std::optional<Names::Owner> Names::owner(Address type) const {
    const auto flags_at = [&](Address at) {
        return may_be_pointer(at) ? memory_.read_as<std::uint64_t>(at) : std::nullopt;
    };
    const auto is_type = [](std::uint64_t flags) {
        return (flags & type_mask) == of_class || (flags & type_mask) == of_module;
    };
    const auto flags = flags_at(type);
    if (!flags || !is_type(*flags)) return {};
    const bool is_of_object = (*flags & type_mask) == of_class && (*flags & is_singleton);
    if (is_of_object) {
        const auto attached = type_field(type, layout_.type.attached, "__attached__");
        const auto its_flags = attached ? flags_at(*attached) : std::nullopt;
        if (!its_flags || !is_type(*its_flags)) return {};
        type = *attached;
    }
    auto name = type_name(type);
    if (!name) return {};
    return Owner{std::move(*name), is_of_object};
}

std::optional<std::string> Names::method(Address definition) const {
    const auto id = memory_.read_as<std::uint64_t>(definition + 32);
    return id ? symbol(*id) : std::nullopt;
}

std::string qualified(const std::optional<Names::Owner>& owner, const std::string& method) {
    if (!owner) return method;
    return owner->name + (owner->is_singleton ? "." : "#") + method;
}

}  // namespace shadowprof::languages::ruby
