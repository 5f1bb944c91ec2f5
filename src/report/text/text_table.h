// Tables that are no wider than the terminal. Text is measured in terminal columns. Where room is
// short, unimportant columns are dropped first, then names are cut in the middle.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace shadowprof::report {

class Paint {
  public:
    explicit Paint(bool on) : on_(on) {}
    std::string bold(const std::string& text) const { return with("1", text); }
    std::string dim(const std::string& text) const { return with("2", text); }
    std::string alarm(const std::string& text) const { return with("1;31", text); }
    std::string accent(const std::string& text) const { return with("36", text); }
    // The hotter, the redder; cool text is not coloured.
    std::string heat(double share, const std::string& text) const;

  private:
    std::string with(const char* code, const std::string& text) const;
    bool on_;
};

enum class Tint { none, dim, bold, accent, heat };

struct Cell {
    std::string text;  // printable, unpainted
    Tint tint = Tint::none;
    double heat = 0;
};

struct Column {
    std::string title;
    enum class Align { left, right } align = Align::right;
    int importance = 9;       // the least important is dropped first; 9 stays
    std::size_t stretch = 0;  // how many parts of the remaining room this column
                              // takes; 0: it is as wide as its widest cell
};

class TextTable {
  public:
    explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
    // `steps` are written on lines of their own, below the row.
    void add(std::vector<Cell> row, std::vector<std::string> steps = {}) {
        rows_.push_back(std::move(row));
        steps_.push_back(std::move(steps));
    }
    bool empty() const { return rows_.empty(); }
    std::string render(std::size_t width, const Paint& paint) const;

  private:
    std::vector<std::size_t> fit(std::size_t width, std::vector<bool>& shown) const;
    std::vector<Column> columns_;
    std::vector<std::vector<Cell>> rows_;
    std::vector<std::vector<std::string>> steps_;  // of each row
};

// Pads to a width in terminal columns.
std::string pad_left(const std::string& text, std::size_t columns);
std::string pad_right(const std::string& text, std::size_t columns);

// Joins steps with " → " into at most `most_lines` indented lines of at most `width`. Steps in the
// middle are left out if there are too many.
std::string wrap_steps(const std::vector<std::string>& steps, std::size_t indent, std::size_t width,
                       std::size_t most_lines);

// Breaks text into lines of at most `width`; all lines but the first are indented.
std::string wrap_words(const std::string& text, std::size_t indent, std::size_t width);

// A label of `columns` columns with the text beside it, in bold or accented by `tint`.
std::string labelled_line(const Paint& paint, const std::string& label, const std::string& text,
                          std::size_t label_columns, std::size_t width, Tint tint);

}  // namespace shadowprof::report
