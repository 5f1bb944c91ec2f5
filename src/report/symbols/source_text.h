// Reads lines of source files, where the files can be read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace shadowprof::report {

class SourceText {
  public:
    // Compilers often name files relative to the directory they ran in. That is most likely the
    // current directory or one of those above the module.
    explicit SourceText(std::string module_path = {}) : module_path_(std::move(module_path)) {}

    // Printable text with tabs as spaces; empty if the line cannot be read.
    std::string line(const std::string& file, std::uint32_t number);
    bool has(const std::string& file);

  private:
    const std::vector<std::string>& lines(const std::string& file);

    std::string module_path_;
    std::map<std::string, std::vector<std::string>> files_;
};

}  // namespace shadowprof::report
