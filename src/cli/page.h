// Printing for people on stdout: how wide the terminal is, and whether it shows colours.
#pragma once

#include <cstddef>
#include <string>

namespace shadowprof::cli {

// A width that the tables fit into if there is no terminal.
std::size_t page_width();
bool wants_color(bool forbidden);

}  // namespace shadowprof::cli
