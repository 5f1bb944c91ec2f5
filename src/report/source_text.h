// Lines of source files, if they are there to be read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace shadowprof::report {

class SourceText {
  public:
    // Printable, tabs as spaces; empty if the line cannot be had.
    std::string line(const std::string& file, std::uint32_t number);

  private:
    std::map<std::string, std::vector<std::string>> files_;
};

}  // namespace shadowprof::report
