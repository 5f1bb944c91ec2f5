// What a command prints on stdout for a person to read: how wide, with colours or without.
#pragma once

#include <cstddef>
#include <string>

namespace shadowprof::cli {

// Wide enough for the tables even where no terminal says how wide it is.
std::size_t page_width();
bool wants_color(bool forbidden);

void print_page(const std::string& page);

}  // namespace shadowprof::cli
