// The code cache of a program, kept for its later runs: what was translated need not be decoded and
// translated again. For programs that are launched without address randomisation, so that
// everything has the same address each time.
//
// What is kept is code that will be executed, and it is believed only as a whole: made by this very
// build on such a processor, from files that are the same (guest_code_kept.cpp), undamaged, and in
// a file that nobody else could write (base/kept_files.h).
#pragma once

#include <string>

#include "emu/common/guest_code.h"
#include "emu/translator/translator.h"

namespace shadowprof::emu::translator {

class KeptTranslations {
  public:
    KeptTranslations(GuestCode& code, Translator& translator)
        : code_(code), translator_(translator) {}

    // Once, when nothing is translated, and the program's first mappings are known.
    void restore();
    // If there is more than there was. The process may be gone.
    void keep() const;

  private:
    GuestCode& code_;
    Translator& translator_;
    std::string name_;            // of the file; empty: nothing is kept
    std::uint64_t restored_ = 0;  // units
};

}  // namespace shadowprof::emu::translator
