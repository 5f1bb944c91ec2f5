#include "report/text/text_table.h"

#include <algorithm>
#include <optional>

#include "model/utf8.h"

namespace shadowprof::report {

using model::columns_of, model::shorten_end, model::shorten_name;

namespace {

constexpr std::size_t gap = 2;
constexpr std::size_t indentation = 2;
constexpr std::size_t comfortable_name = 16;
constexpr std::size_t step_indentation = 6;
constexpr std::size_t most_step_lines = 5;
constexpr const char* arrow = " → ";
constexpr std::size_t arrow_columns = 3;

std::string painted(const Cell& cell, const std::string& text, const Paint& paint) {
    switch (cell.tint) {
        case Tint::dim:
            return paint.dim(text);
        case Tint::bold:
            return paint.bold(text);
        case Tint::accent:
            return paint.accent(text);
        case Tint::heat:
            return paint.heat(cell.heat, text);
        case Tint::none:
            break;
    }
    return text;
}

void trim_right(std::string& line) {
    while (!line.empty() && line.back() == ' ') line.pop_back();
}

// Puts as many steps on each line as fit. A step wider than a line is cut.
std::vector<std::string> fill_lines(const std::vector<std::string>& steps, std::size_t width) {
    std::vector<std::string> lines;
    std::size_t used = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const bool last = i + 1 == steps.size();
        const auto room = width - (last ? 0 : std::min(width - 1, arrow_columns - 1));
        const auto step = shorten_name(steps[i], room);
        const auto wide = columns_of(step);
        if (lines.empty() || used + arrow_columns + wide + (last ? 0 : 2) > width) {
            if (!lines.empty()) lines.back() += " →";
            lines.push_back(step);
            used = wide;
        } else {
            lines.back() += arrow + step;
            used += arrow_columns + wide;
        }
    }
    return lines;
}

}  // namespace

std::string Paint::with(const char* code, const std::string& text) const {
    if (!on_ || text.empty()) return text;
    return std::string("\x1b[") + code + "m" + text + "\x1b[0m";
}

std::string Paint::heat(double share, const std::string& text) const {
    return share >= 0.2 ? with("1;31", text) : share >= 0.05 ? with("33", text) : text;
}

std::string pad_left(const std::string& text, std::size_t columns) {
    const auto wide = columns_of(text);
    return wide >= columns ? text : std::string(columns - wide, ' ') + text;
}

std::string pad_right(const std::string& text, std::size_t columns) {
    const auto wide = columns_of(text);
    return wide >= columns ? text : text + std::string(columns - wide, ' ');
}

std::vector<std::size_t> TextTable::fit(std::size_t width, std::vector<bool>& shown) const {
    std::vector<std::size_t> natural(columns_.size());
    for (std::size_t c = 0; c < columns_.size(); ++c) {
        bool filled = false;
        for (const auto& row : rows_) {
            natural[c] = std::max(natural[c], columns_of(row[c].text));
            filled = filled || !row[c].text.empty();
        }
        shown[c] = filled;
        natural[c] = std::max(natural[c], columns_of(columns_[c].title));
    }
    for (;;) {
        std::size_t fixed = indentation, wanted = 0, parts = 0;
        std::optional<std::size_t> least;
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            if (!shown[c]) continue;
            fixed += gap;
            parts += columns_[c].stretch;
            if (columns_[c].stretch == 0)
                fixed += natural[c];
            else
                wanted += std::min(natural[c], comfortable_name);
            if (columns_[c].importance < 9 &&
                (!least || columns_[c].importance < columns_[*least].importance))
                least = c;
        }
        fixed -= std::min(fixed, gap);
        if (fixed + wanted > width && least) {
            shown[*least] = false;
            continue;
        }
        // A column that needs less than its part leaves the rest to the others.
        std::size_t room = width > fixed ? width - fixed : 0;
        std::vector<std::size_t> order;
        for (std::size_t c = 0; c < columns_.size(); ++c)
            if (shown[c] && columns_[c].stretch > 0) order.push_back(c);
        std::sort(order.begin(), order.end(), [&](auto a, auto b) {
            return natural[a] * columns_[b].stretch < natural[b] * columns_[a].stretch;
        });
        for (const auto c : order) {
            natural[c] = std::min(natural[c], room * columns_[c].stretch / parts);
            room -= natural[c];
            parts -= columns_[c].stretch;
        }
        return natural;
    }
}

std::string TextTable::render(std::size_t width, const Paint& paint) const {
    std::vector<bool> shown(columns_.size());
    const auto widths = fit(width, shown);
    const auto line = [&](const auto& cell_of) {
        std::string out(indentation, ' ');
        std::size_t pending = 0;  // spaces, not written at the end of a line
        std::size_t used = indentation;
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            if (!shown[c]) continue;
            const Cell cell = cell_of(c);
            // On a very narrow terminal the remaining text is cut.
            const auto room = width > used + pending ? width - used - pending : 0;
            const auto text = shorten_name(cell.text, std::min(widths[c], room));
            const auto blank = widths[c] - std::min(widths[c], columns_of(text));
            const bool right = columns_[c].align == Column::Align::right;
            if (!text.empty()) {
                const auto before =
                    right ? std::min(pending + blank, width - used - columns_of(text)) : pending;
                out += std::string(before, ' ') + painted(cell, text, paint);
                used += before + columns_of(text);
                pending = (right ? 0 : blank) + gap;
            } else {
                pending += widths[c] + gap;
            }
        }
        trim_right(out);
        return out + "\n";
    };
    std::string out = line([&](std::size_t c) { return Cell{columns_[c].title, Tint::dim}; });
    for (std::size_t r = 0; r < rows_.size(); ++r) {
        out += line([&](std::size_t c) { return rows_[r][c]; });
        if (!steps_[r].empty())
            out += wrap_steps(steps_[r], step_indentation, width, most_step_lines);
    }
    return out;
}

std::string wrap_steps(const std::vector<std::string>& steps, std::size_t indent, std::size_t width,
                       std::size_t most_lines) {
    const auto room = std::max<std::size_t>(width - std::min(width, indent), 8);
    auto lines = fill_lines(steps, room);
    // Removes steps from the middle until the rest fits.
    constexpr std::size_t most_kept = 64;
    for (std::size_t kept = std::min(steps.size() - 1, most_kept);
         lines.size() > most_lines && kept >= 2; --kept) {
        const auto front = static_cast<std::ptrdiff_t>((kept + 1) / 2);
        const auto back = static_cast<std::ptrdiff_t>(kept / 2);
        std::vector<std::string> fewer(steps.begin(), steps.begin() + front);
        fewer.push_back("… " + std::to_string(steps.size() - kept) + " more …");
        fewer.insert(fewer.end(), steps.end() - back, steps.end());
        lines = fill_lines(fewer, room);
    }
    std::string out;
    for (const auto& line : lines) out += std::string(indent, ' ') + line + "\n";
    return out;
}

std::string wrap_words(const std::string& text, std::size_t indent, std::size_t width) {
    const auto room = std::max<std::size_t>(width - std::min(width, indent), 8);
    std::string out;
    std::size_t used = 0;
    for (std::size_t at = 0; at < text.size();) {
        const auto end = std::min(text.find(' ', at), text.size());
        const auto word = shorten_end(text.substr(at, end - at), room);
        const auto wide = columns_of(word);
        if (used > 0 && used + 1 + wide > room) {
            out += "\n" + std::string(indent, ' ');
            used = 0;
        } else if (used > 0) {
            out += ' ';
            ++used;
        }
        out += word;
        used += wide;
        at = end + 1;
    }
    return out + "\n";
}

std::string labelled_line(const Paint& paint, const std::string& label, const std::string& text,
                          std::size_t label_columns, std::size_t width, Tint tint) {
    auto lines = wrap_words(text, label_columns, width);
    lines.pop_back();
    return paint.dim(pad_right(label, label_columns)) +
           (tint == Tint::bold     ? paint.bold(lines)
            : tint == Tint::accent ? paint.accent(lines)
                                   : lines) +
           "\n";
}

}  // namespace shadowprof::report
