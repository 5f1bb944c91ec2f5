#include "report/symbols/parameters.h"

#include <dwarf.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "report/symbols/dies.h"

namespace shadowprof::report {

namespace {

using Kind = Parameter::Kind;

constexpr std::size_t most_integers = 6, most_vectors = 8, most_enumerators = 64;
constexpr std::uint64_t word = 8;

// Names and qualifications of a type lead to it, and not back to themselves: libdw would follow
// them for ever.
bool is_finite(Dwarf_Die type) {
    constexpr unsigned most_steps = 100;
    for (unsigned n = 0; n < most_steps; ++n) {
        Dwarf_Attribute attribute;
        Dwarf_Die next;
        if (!dwarf_formref_die(dwarf_attr_integrate(&type, DW_AT_type, &attribute), &next))
            return true;
        type = next;
    }
    return false;
}

std::optional<Dwarf_Die> type_of(Dwarf_Die& die) {
    Dwarf_Attribute attribute;
    Dwarf_Die named, type;
    if (!dwarf_formref_die(dwarf_attr_integrate(&die, DW_AT_type, &attribute), &named)) return {};
    if (!is_finite(named) || dwarf_peel_type(&named, &type) != 0) return {};
    return type;
}

std::uint64_t size_of(Dwarf_Die& type) {
    Dwarf_Word size = 0;
    return dwarf_aggregate_size(&type, &size) == 0 ? size : 0;
}

// ---- What the calling convention makes of a type

struct Passing {
    std::size_t integers = 0, vectors = 0;  // registers
    bool is_returned_by_address = false;    // which the caller passes
};

class Words {
  public:
    // Which of its two words have anything but floating-point numbers. False: it is in memory.
    bool add(Dwarf_Die type, std::uint64_t at) {
        const auto size = size_of(type);
        if (at > 2 * word || size > 2 * word - at || ++parts_ > most_parts) return false;
        switch (dwarf_tag(&type)) {
            case DW_TAG_structure_type:
            case DW_TAG_class_type:
            case DW_TAG_union_type:
                return add_members(type, at);
            case DW_TAG_array_type: {
                auto element = type_of(type);
                const auto step = element ? size_of(*element) : 0;
                if (step == 0) return false;
                for (std::uint64_t done = 0; done + step <= size; done += step)
                    if (!add(*element, at + done)) return false;
                return true;
            }
            default: {
                const auto encoding = number(type, DW_AT_encoding);
                const bool is_float =
                    dwarf_tag(&type) == DW_TAG_base_type &&
                    (encoding == DW_ATE_float || encoding == DW_ATE_complex_float);
                if (size == 0 || at % std::min(size, word) != 0 || (is_float && size > word))
                    return false;
                for (auto n = at / word; n <= (at + size - 1) / word; ++n)
                    (is_float ? floats_ : others_).at(n) = true;
                return true;
            }
        }
    }
    Passing passing() const {
        Passing all;
        for (std::size_t n = 0; n < others_.size(); ++n) {
            all.integers += others_[n];
            all.vectors += floats_[n] && !others_[n];
        }
        return all;
    }

  private:
    bool add_members(Dwarf_Die type, std::uint64_t at) {
        bool fits = true;
        each_child(type, [&](Dwarf_Die child) {
            const int tag = dwarf_tag(&child);
            if (tag != DW_TAG_member && tag != DW_TAG_inheritance) return true;
            if (dwarf_hasattr(&child, DW_AT_external)) return true;  // static
            const auto of_member = type_of(child);
            if (dwarf_hasattr(&child, DW_AT_data_bit_offset))
                others_.at(std::min<std::uint64_t>(
                    at / word + number(child, DW_AT_data_bit_offset) / 64, 1)) = true;
            else
                fits = of_member && add(*of_member, at + number(child, DW_AT_data_member_location));
            return fits;
        });
        return fits;
    }

    // Classes that contain themselves, as no compiler makes them, have no end.
    static constexpr unsigned most_parts = 1000;
    unsigned parts_ = 0;
    std::array<bool, 2> floats_{}, others_{};
};

// C and C++, whose calling convention is known. The last ones are newer than some dwarf.h: C17,
// C++17 and C++20.
bool is_in_c(Dwarf_Die unit) {
    static constexpr std::array<int, 11> languages{DW_LANG_C89,
                                                   DW_LANG_C,
                                                   DW_LANG_C99,
                                                   DW_LANG_C11,
                                                   DW_LANG_C_plus_plus,
                                                   DW_LANG_C_plus_plus_03,
                                                   DW_LANG_C_plus_plus_11,
                                                   DW_LANG_C_plus_plus_14,
                                                   0x2a,
                                                   0x2b,
                                                   0x2c};
    return std::ranges::find(languages, dwarf_srclang(&unit)) != languages.end();
}

bool is_class(Dwarf_Die& type) {
    const int tag = dwarf_tag(&type);
    return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

// Whether a member function of the class makes its copies more than copies of its bytes.
bool copies_or_destroys(Dwarf_Die& function, Dwarf_Die& type) {
    if (dwarf_hasattr(&function, DW_AT_virtuality)) return true;
    const char *const name = dwarf_diename(&function), *const of = dwarf_diename(&type);
    if (!name || !of || number(function, DW_AT_defaulted) == DW_DEFAULTED_in_class) return false;
    if (*name == '~') return true;
    if (const std::string_view whole{of}; name != whole.substr(0, whole.find('<'))) return false;
    bool is_of_same = false;
    std::size_t count = 0;
    each_child(function, [&](Dwarf_Die child) {
        if (dwarf_tag(&child) != DW_TAG_formal_parameter || ++count != 2) return true;
        auto reference = type_of(child);
        auto to = reference ? type_of(*reference) : std::nullopt;
        is_of_same = to && dwarf_tag(&*reference) != DW_TAG_pointer_type &&
                     dwarf_dieoffset(&*to) == dwarf_dieoffset(&type);
        return true;
    });
    return is_of_same;
}

// If not, it is passed and returned by its address, which compilers do not say everywhere.
bool is_copied_by_bytes(Dwarf_Die type, unsigned& parts, unsigned depth = 0) {
    constexpr unsigned deepest = 50, most_parts = 10'000;
    if (depth == deepest || ++parts > most_parts) return true;
    if (dwarf_tag(&type) == DW_TAG_array_type) {
        const auto element = type_of(type);
        return !element || is_copied_by_bytes(*element, parts, depth + 1);
    }
    if (!is_class(type)) return true;
    bool is = true;
    each_child(type, [&](Dwarf_Die child) {
        const int tag = dwarf_tag(&child);
        if (tag == DW_TAG_subprogram) is = !copies_or_destroys(child, type);
        if (tag == DW_TAG_inheritance) is = !dwarf_hasattr(&child, DW_AT_virtuality);
        const bool is_part = tag == DW_TAG_inheritance ||
                             (tag == DW_TAG_member && !dwarf_hasattr(&child, DW_AT_external));
        const auto part = is && is_part ? type_of(child) : std::nullopt;
        if (part) is = is_copied_by_bytes(*part, parts, depth + 1);
        return is;
    });
    return is;
}

Passing passing_of_class(Dwarf_Die type) {
    const auto convention = number(type, DW_AT_calling_convention);
    unsigned parts = 0;
    const bool is_copied =
        convention == DW_CC_pass_by_value ||
        (convention != DW_CC_pass_by_reference && is_copied_by_bytes(type, parts));
    if (!is_copied) return {.integers = 1, .is_returned_by_address = true};
    Words words;
    return words.add(type, 0) ? words.passing() : Passing{.is_returned_by_address = true};
}

// Nothing if it is not understood.
std::optional<Passing> passing_of(Dwarf_Die type) {
    switch (dwarf_tag(&type)) {
        case DW_TAG_pointer_type:
        case DW_TAG_reference_type:
        case DW_TAG_rvalue_reference_type:
        case DW_TAG_enumeration_type:
        case DW_TAG_unspecified_type:  // of nullptr
            return Passing{.integers = 1};
        case DW_TAG_structure_type:
        case DW_TAG_class_type:
        case DW_TAG_union_type:
            return passing_of_class(type);
        case DW_TAG_base_type: {
            const auto encoding = number(type, DW_AT_encoding);
            const auto words = (size_of(type) + word - 1) / word;
            if (encoding == DW_ATE_complex_float) return {};
            if (encoding == DW_ATE_float) return Passing{.vectors = words == 1 ? 1u : 0u};
            return Passing{.integers = words};
        }
        default:
            return {};
    }
}

// ---- What a value means

Kind kind_of_number(Dwarf_Die& type) {
    const auto encoding = number(type, DW_AT_encoding);
    const char* const name = dwarf_diename(&type);
    switch (encoding) {
        case DW_ATE_boolean:
            return Kind::boolean;
        case DW_ATE_UTF:
            return Kind::character;
        case DW_ATE_signed_char:
        case DW_ATE_unsigned_char:
            // Others are small numbers: int8_t.
            if (name && name == std::string_view{"char"}) return Kind::character;
            break;
        default:
            break;
    }
    return encoding == DW_ATE_signed || encoding == DW_ATE_signed_char ? Kind::signed_number
                                                                       : Kind::unsigned_number;
}

std::int64_t constant(Dwarf_Die& die) {
    Dwarf_Attribute attribute;
    if (!dwarf_attr(&die, DW_AT_const_value, &attribute)) return 0;
    const auto form = dwarf_whatform(&attribute);
    Dwarf_Sword value = 0;
    if (form == DW_FORM_sdata || form == DW_FORM_implicit_const)
        dwarf_formsdata(&attribute, &value);
    else
        value = static_cast<std::int64_t>(number(die, DW_AT_const_value));
    return value;
}

void describe_enumeration(Dwarf_Die type, Parameter& p) {
    const auto underlying = type_of(type);
    p.kind = Kind::unsigned_number;
    each_child(type, [&](Dwarf_Die child) {
        const char* const name = dwarf_diename(&child);
        if (dwarf_tag(&child) != DW_TAG_enumerator || !name) return true;
        p.enumerators.emplace(name, constant(child));
        if (constant(child) < 0) p.kind = Kind::signed_number;
        return true;
    });
    if (underlying) {
        auto number_type = *underlying;
        p.kind = kind_of_number(number_type);
    }
    if (p.enumerators.size() > most_enumerators) p.enumerators.clear();
}

// Nothing if it is no number.
std::optional<Parameter> described(Dwarf_Die type) {
    Parameter p;
    switch (dwarf_tag(&type)) {
        case DW_TAG_pointer_type:
        case DW_TAG_reference_type:
        case DW_TAG_rvalue_reference_type:
            p.kind = Kind::pointer;
            return p;
        case DW_TAG_base_type:
            p.kind = kind_of_number(type);
            break;
        case DW_TAG_enumeration_type:
            describe_enumeration(type, p);
            break;
        default:
            return {};
    }
    const auto size = size_of(type);
    if (size == 0 || size > word) return {};
    p.bits = static_cast<std::uint32_t>(8 * size);
    return p;
}

// ---- Where a parameter is

enum class Place : std::uint8_t { by_convention, in_register, behind_pointer, elsewhere };

std::pair<Place, std::size_t> place_at(Dwarf_Die& parameter, Dwarf_Addr entry) {
    // rdi, rsi, rdx, rcx, r8 and r9 as DWARF numbers them.
    static constexpr std::array<unsigned, most_integers> registers{5, 4, 1, 2, 8, 9};
    Dwarf_Attribute attribute;
    if (dwarf_hasattr(&parameter, DW_AT_const_value)) return {Place::elsewhere, 0};
    if (!dwarf_attr(&parameter, DW_AT_location, &attribute)) return {Place::by_convention, 0};
    Dwarf_Op* operations = nullptr;
    std::size_t count = 0;
    if (dwarf_getlocation_addr(&attribute, entry, &operations, &count, 1) != 1 || count == 0)
        return {Place::by_convention, 0};
    const auto& first = operations[0];
    // It is to be found there once the function has put it there.
    if (first.atom == DW_OP_fbreg) {
        if (count == 1) return {Place::by_convention, 0};
        const bool is_pointer_there = count == 2 && operations[1].atom == DW_OP_deref;
        return {is_pointer_there ? Place::behind_pointer : Place::elsewhere, 0};
    }
    if (count != 1 || first.atom < DW_OP_reg0 || first.atom > DW_OP_reg31)
        return {Place::elsewhere, 0};
    const auto known = std::ranges::find(registers, first.atom - DW_OP_reg0);
    if (known == registers.end()) return {Place::elsewhere, 0};
    return {Place::in_register, static_cast<std::size_t>(known - registers.begin())};
}

// Those that the compiler adds to constructors are not always passed.
bool is_hidden(Dwarf_Die& parameter) {
    const char* const name = dwarf_diename(&parameter);
    return name &&
           (name == std::string_view{"__in_chrg"} || name == std::string_view{"__vtt_parm"});
}

}  // namespace

std::vector<PassedParameter> parameters_of(Dwarf_Die unit, Dwarf_Die function, Dwarf_Addr entry,
                                           bool is_changed) {
    bool is_kept_to =
        !is_changed && number(function, DW_AT_calling_convention) <= DW_CC_normal && is_in_c(unit);
    bool is_understood = true;  // so far
    std::size_t count = 0, integers = 0, vectors = 0;
    if (const auto returned = type_of(function)) {
        const auto passing = passing_of(*returned);
        is_understood = passing.has_value();
        if (passing && passing->is_returned_by_address) ++integers;
    }
    std::vector<std::pair<PassedParameter, Place>> found;
    each_child(function, [&](Dwarf_Die child) {
        if (dwarf_tag(&child) != DW_TAG_formal_parameter) return true;
        ++count;
        const auto type = type_of(child);
        auto [place, at] = place_at(child, entry);
        auto known = type ? passing_of(*type) : std::nullopt;
        if (place == Place::behind_pointer) known = Passing{.integers = 1};
        if (!known || is_hidden(child)) is_understood = false;
        const auto passing = known.value_or(Passing{});
        const bool is_in_registers = integers + passing.integers <= most_integers &&
                                     vectors + passing.vectors <= most_vectors;
        const bool is_integer = is_understood && is_in_registers && passing.integers == 1;
        if (place == Place::in_register && is_integer && at != integers) is_kept_to = false;
        if (place == Place::by_convention) {
            at = integers;
            if (!is_integer) place = Place::elsewhere;
        }
        auto parameter = type ? described(*type) : std::nullopt;
        if (parameter && (place == Place::in_register || place == Place::by_convention)) {
            const char* const name = dwarf_diename(&child);
            parameter->name = name ? name : fmt::format("arg {}", count);
            found.push_back({{std::move(*parameter), at}, place});
        }
        if (is_in_registers) {
            integers += passing.integers;
            vectors += passing.vectors;
        }
        return true;
    });
    std::vector<PassedParameter> passed;
    for (auto& [parameter, place] : found)
        if (place == Place::in_register || is_kept_to) passed.push_back(std::move(parameter));
    return passed;
}

}  // namespace shadowprof::report
