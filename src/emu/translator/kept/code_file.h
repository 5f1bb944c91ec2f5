// A file of translated code, believed only as a whole: made by this very build on such a processor,
// undamaged, and where nobody else could write (base/kept_files.h).
#pragma once

#include <string>
#include <string_view>

#include "base/sections.h"

namespace shadowprof::emu::translator {

// The file's contents, as they are mapped.
class CodeFile {
  public:
    explicit CodeFile(const std::string& name);
    ~CodeFile();
    CodeFile(const CodeFile&) = delete;
    CodeFile& operator=(const CodeFile&) = delete;

    // False: there is none, or it is not believed.
    bool is_sound() const { return !sections_.empty(); }
    SectionReader sections() const { return SectionReader{sections_}; }

  private:
    std::string_view contents_, sections_;
};

// Without success where nothing can be kept, or if it would be too large.
void write_code_file(const std::string& name, const SectionWriter& sections);

}  // namespace shadowprof::emu::translator
