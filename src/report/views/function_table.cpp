#include "report/views/function_table.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <unordered_map>

namespace shadowprof::report {

namespace {

// Prefers the name of an address that people know: exported names to local ones, names without
// leading underscores to names with them, then the shorter.
auto preference(const SymbolCandidate& s) {
    const auto underscores = s.symbol.starts_with("_Z") ? 0 : s.symbol.find_first_not_of('_');
    return std::tuple(!s.is_global, underscores, s.symbol.size(), std::string_view(s.symbol));
}

void keep_one_name_per_address(std::vector<SymbolCandidate>& symbols) {
    std::sort(symbols.begin(), symbols.end(), [](const auto& a, const auto& b) {
        return a.begin != b.begin ? a.begin < b.begin : preference(a) < preference(b);
    });
    symbols.erase(std::unique(symbols.begin(), symbols.end(),
                              [](const auto& a, const auto& b) { return a.begin == b.begin; }),
                  symbols.end());
}

}  // namespace

FunctionTable::FunctionTable(std::vector<SymbolCandidate> symbols) {
    const auto unsized = std::partition(symbols.begin(), symbols.end(),
                                        [](const auto& s) { return s.is_function && s.size > 0; });
    std::vector<SymbolCandidate> labels(std::make_move_iterator(unsized),
                                        std::make_move_iterator(symbols.end()));
    symbols.erase(unsized, symbols.end());
    add_sized(std::move(symbols));
    join_cold_parts();
    add_unsized(std::move(labels));
}

void FunctionTable::add_sized(std::vector<SymbolCandidate> sized) {
    keep_one_name_per_address(sized);
    std::vector<std::uint32_t> open;  // the functions we are inside, outermost first
    std::uint64_t at = 0;
    const auto emit_until = [&](std::uint64_t limit) {
        while (!open.empty()) {
            const std::uint64_t end = std::min(functions_[open.back()].end, limit);
            if (at < end) {
                ranges_.push_back({at, end, open.back()});
                at = end;
            }
            if (functions_[open.back()].end > limit) break;
            open.pop_back();
        }
    };
    for (auto& s : sized) {
        emit_until(s.begin);
        at = s.begin;
        open.push_back(static_cast<std::uint32_t>(functions_.size()));
        functions_.push_back({std::move(s.symbol), s.begin, s.begin + s.size});
    }
    emit_until(~std::uint64_t{0});
}

void FunctionTable::add_unsized(std::vector<SymbolCandidate> unsized) {
    keep_one_name_per_address(unsized);
    std::vector<Function> found;
    for (std::size_t i = 0; i < unsized.size(); ++i) {
        auto& s = unsized[i];
        const auto next = i + 1 < unsized.size() ? unsized[i + 1].begin : s.section_end;
        found.push_back({std::move(s.symbol), s.begin, std::min(next, s.section_end)});
    }
    fill_gaps(std::move(found));
}

void FunctionTable::fill_gaps(std::vector<Function> added) {
    std::sort(added.begin(), added.end(),
              [](const auto& a, const auto& b) { return a.begin < b.begin; });
    std::vector<Range> filled;
    std::uint64_t covered_to = 0;
    for (auto& f : added) {
        if (f.begin < covered_to || range_at(f.begin)) continue;
        f.end = std::min(f.end, next_range_after(f.begin));
        if (f.begin >= f.end) continue;
        covered_to = f.end;
        filled.push_back({f.begin, f.end, static_cast<std::uint32_t>(functions_.size())});
        functions_.push_back(std::move(f));
    }
    const auto middle = static_cast<std::ptrdiff_t>(ranges_.size());
    ranges_.insert(ranges_.end(), filled.begin(), filled.end());
    std::inplace_merge(ranges_.begin(), ranges_.begin() + middle, ranges_.end(),
                       [](const Range& a, const Range& b) { return a.begin < b.begin; });
}

// Two static functions of the same name cannot be distinguished here. Their cold parts stay
// functions of their own.
void FunctionTable::join_cold_parts() {
    static constexpr std::string_view suffix = ".cold";
    constexpr auto ambiguous = ~std::uint32_t{0};
    std::unordered_map<std::string_view, std::uint32_t> by_name;
    for (std::uint32_t i = 0; i < functions_.size(); ++i)
        if (!by_name.emplace(functions_[i].symbol, i).second)
            by_name[functions_[i].symbol] = ambiguous;
    for (auto& range : ranges_) {
        const std::string_view symbol = functions_[range.function].symbol;
        if (!symbol.ends_with(suffix)) continue;
        const auto parent = by_name.find(symbol.substr(0, symbol.size() - suffix.size()));
        if (parent != by_name.end() && parent->second != ambiguous) range.function = parent->second;
    }
}

const FunctionTable::Range* FunctionTable::range_at(std::uint64_t address) const {
    const auto after =
        std::upper_bound(ranges_.begin(), ranges_.end(), address,
                         [](std::uint64_t a, const Range& range) { return a < range.begin; });
    if (after == ranges_.begin() || std::prev(after)->end <= address) return nullptr;
    return &*std::prev(after);
}

std::uint64_t FunctionTable::next_range_after(std::uint64_t address) const {
    const auto after =
        std::upper_bound(ranges_.begin(), ranges_.end(), address,
                         [](std::uint64_t a, const Range& range) { return a < range.begin; });
    return after == ranges_.end() ? ~std::uint64_t{0} : after->begin;
}

const Function* FunctionTable::find(std::uint64_t address) const {
    const Range* range = range_at(address);
    return range ? &functions_[range->function] : nullptr;
}

}  // namespace shadowprof::report
