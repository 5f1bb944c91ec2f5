#include "profile/value/value_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string_view>

#include "model/number_text.h"
#include "model/utf8.h"
#include "profile/common/instruction_text.h"
#include "profile/tuning.h"

namespace shadowprof::profile {

namespace {

constexpr std::array<std::string_view, 3> movers{"mov", "movabs", "push"};
constexpr std::array<std::string_view, 10> zeroing{"xor",   "sub",    "pxor",   "xorps",  "xorpd",
                                                   "vpxor", "vxorps", "vxorpd", "vpxord", "vpxorq"};

using Entry = ValueSection::Entry;

template <std::size_t n>
bool contains(const std::array<std::string_view, n>& list, std::string_view word) {
    return std::find(list.begin(), list.end(), word) != list.end();
}

std::string step_text(std::int64_t step) {
    return fmt::format("step {:+}", step);
}

// Scalar and packed floating-point numbers: the difference of their bits is no step.
bool is_floating(const std::string_view mnemonic) {
    return mnemonic.ends_with("sd") || mnemonic.ends_with("ss") || mnemonic.ends_with("pd") ||
           mnemonic.ends_with("ps");
}

// Where the kernel puts stacks.
bool is_stack_address(std::uint64_t value) {
    return value >= 0x7ff000000000 && value < 0x800000000000;
}

bool is_about_the_stack(const Entry& e) {
    if (e.kind == ValueKind::address) {
        const auto registers = registers_in(e.operand);
        return std::ranges::find(registers, RegisterFamily::rsp) != registers.end();
    }
    if (e.kind == ValueKind::register_ && register_family(e.operand) == RegisterFamily::rsp)
        return true;
    return e.bits == 64 && !e.top.empty() && is_stack_address(e.top.front().value);
}

// Never looks like an integer: "2.0".
std::string floating_text(double d) {
    auto text = fmt::format("{:.6g}", d);
    if (text.find_first_of(".e") == text.npos) text += ".0";
    return text;
}

// Whether programs are likely to compute with this number. Other bit patterns are integers or
// packed data.
bool is_plausible(double d) {
    return std::isfinite(d) && std::abs(d) > 1e-30 && std::abs(d) < 1e30;
}

bool is_vector_register(const std::string& operand) {
    return operand.starts_with("xmm") || operand.starts_with("ymm") || operand.starts_with("zmm");
}

model::Estimate share_of(const ValueShare& value, const Entry& e) {
    return model::estimate_value_share(value.statistics, e.executions, e.probability_inverse);
}

bool stands_out(const Entry& e, std::size_t n) {
    return n < e.top.size() && share_of(e.top[n], e).share >= tuning::values_worth_a_note;
}

}  // namespace

std::string value_text(std::uint64_t value, const Entry& entry) {
    if (entry.kind != ValueKind::address && is_vector_register(entry.operand) && value != 0) {
        const double number =
            entry.bits == 64
                ? std::bit_cast<double>(value)
                : static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(value)));
        if (entry.bits >= 32 && std::isinf(number)) return number > 0 ? "inf" : "-inf";
        if (entry.bits >= 32 && is_plausible(number)) return floating_text(number);
    }
    if (value < 10 || entry.kind == ValueKind::address) return model::hex_text(value);
    if (entry.bits >= 8 && entry.bits <= 64) {
        const auto unused = 64 - entry.bits;
        const auto number = static_cast<std::int64_t>(value << unused) >> unused;
        if (number < 0 && number > -65536)
            return fmt::format("{} ({})", model::hex_text(value), number);
    }
    if (value < 1'000'000) return fmt::format("{} ({})", model::hex_text(value), value);
    return model::hex_text(value);
}

bool is_constant_by_construction(const model::Profile& profile, const Entry& entry) {
    if (is_about_the_stack(entry)) return true;
    if (entry.kind == ValueKind::loaded) return false;
    const std::string_view text = profile.at(entry.location).text;
    if (entry.kind == ValueKind::address)
        return entry.operand.find_first_of("abcdefghijklmnopqrstuvwyz") == std::string::npos ||
               entry.operand.find("rip") != std::string::npos;
    const auto [mnemonic, operands] = parse_instruction(text);
    if (operands.size() < 2) return false;
    const auto source = operands.back();
    if (contains(movers, mnemonic)) return is_number(source);
    if (contains(zeroing, mnemonic)) return source == operands[operands.size() - 2];
    // An operand relative to rip is quoted as an absolute address, without a register.
    return mnemonic == "lea" &&
           (source.find("[0x") != source.npos || source.find("rip") != source.npos);
}

std::string operand_label(const Entry& entry) {
    const auto operand = model::printable(entry.operand);
    return entry.kind == ValueKind::register_
               ? operand
               : std::string(model::name_of(entry.kind)) + " " + operand;
}

bool tells_step(const model::Profile& profile, const Entry& e) {
    if (!e.stride || e.stride->step == 0) return false;
    if (e.kind == ValueKind::address) return true;
    // What goes by steps in a register is the counter of a loop.
    if (e.kind == ValueKind::register_) return false;
    const auto i = parse_instruction(profile.at(e.location).text);
    return !is_floating(i.mnemonic) && !is_vector_register(e.operand);
}

Regularity regularity_of(const model::Profile& profile, const Entry& e) {
    Regularity found;
    if (!e.top.empty()) {
        const auto& top = e.top.front();
        found = {share_of(top, e), value_text(top.value, e)};
    }
    if (tells_step(profile, e) && e.stride->share > found.share.share) {
        const auto share = e.stride->share;
        found = {{share, share, share}, step_text(e.stride->step)};
    }
    return found;
}

std::string value_note(const model::Profile& profile, const Entry& e) {
    std::string note;
    const auto add = [&](double share, const std::string& what) {
        note +=
            (note.empty() ? operand_label(e) + " " : ", ") + model::share_text(share) + " " + what;
    };
    if (tells_step(profile, e) && e.stride->share >= tuning::values_worth_a_note)
        add(e.stride->share, step_text(e.stride->step));
    for (std::size_t n = 0; n < 2 && stands_out(e, n); ++n)
        add(share_of(e.top[n], e).share, value_text(e.top[n].value, e));
    return note;
}

model::ShownChapter value_chapter(const ValueSection& list, const model::ChapterInputs& in) {
    using enum model::ShownColumn::Kind;
    using Column = model::ShownColumn;
    using model::ShownCell, model::ShownPlace;
    const auto& profile = in.profile;
    std::vector<std::pair<double, const Entry*>> found;  // by the executions that it is regular in
    bool is_any_known = false;
    const auto is_known = [&](const Entry& e) {
        return model::reach_of(regularity_of(profile, e).share) <= tuning::worst_reach_of_value;
    };
    for (const auto& e : list.entries) {
        if (is_constant_by_construction(profile, e)) continue;
        const auto share = regularity_of(profile, e).share.share;
        if (share == 0) continue;
        found.emplace_back(share * static_cast<double>(e.all_executions()), &e);
        is_any_known |= is_known(e);
    }
    // Beside those that are known the others are no news.
    if (is_any_known)
        std::erase_if(found, [&](const auto& value) { return !is_known(*value.second); });
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<const Entry*> order;
    order.reserve(found.size());
    for (const auto& [regular, entry] : found) order.push_back(entry);

    const auto step_of = [&](const Entry& e) {
        return tells_step(profile, e) ? e.stride : std::optional<Stride>();
    };
    model::TableOf<Entry> table("values", std::move(order), in,
                                [](const Entry& e) { return e.all_executions(); });
    table
        .column(Column("share", "share", share).with_interval(7),
                [&](const Entry& e) { return regularity_of(profile, e).share; })
        .column(Column("see", "see").wide(3).bold(),
                [&](const Entry& e) { return regularity_of(profile, e).text; })
        .column(Column("operand", "in", code).of(8).wide(2), operand_label)
        .column(Column("top", "distribution", parts).only(Column::On::page),
                [&](const Entry& e) {
                    model::ShownParts parts;
                    for (std::size_t n = 0; n < std::min(e.top.size(), tuning::most_values_shown);
                         ++n)
                        parts.push_back({value_text(e.top[n].value, e), share_of(e.top[n], e)});
                    return parts;
                })
        .count("executions", 5)
        .column(
            Column("instruction", "of", instruction).of(4).wide(3).dim().only(Column::On::terminal),
            [](const Entry& e) { return ShownPlace{e.location}; })
        .column(Column("at", "where", place).wide(5), [](const Entry& e) {
            return ShownPlace{.at = e.location, .caller = e.context ? e.context : e.caller};
        });
    if (std::ranges::any_of(list.entries, [](const Entry& e) { return !e.state.empty(); }))
        table.column(Column("keys", "by"), [](const Entry& e) { return state_text(e.state); });
    table
        .column(Column("step", "").only(Column::On::pictures),
                [&](const Entry& e) {
                    const auto step = step_of(e);
                    return step ? ShownCell(step_text(step->step)) : ShownCell();
                })
        .column(Column("step_share", "", ratio).only(Column::On::pictures), [&](const Entry& e) {
            const auto step = step_of(e);
            return step ? ShownCell(step->share) : ShownCell();
        });
    return {.key = "values",
            .name = "Values",
            .title = "Predictable values",
            .explanation =
                fmt::format("of {}; those that cannot vary, or are hardly known, are left out",
                            model::counted("operand", list.entries.size())),
            .about = "What instructions yield, the most predictable work first",
            .totals = list.all_executions(),
            .dropped = list.dropped,
            .tables = {table.take()}};
}

}  // namespace shadowprof::profile
