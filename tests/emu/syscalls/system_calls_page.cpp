// Prints docs/system-calls.md from the table. With a file's name it compares instead, so that the
// page cannot differ from what is done:  system-calls-page docs/system-calls.md
#include <fstream>
#include <iostream>
#include <sstream>

#include "emu/syscalls/system_calls.h"

namespace {

using shadowprof::emu::SystemCallClass;
using shadowprof::emu::SystemCallTreatment;

constexpr const char* introduction =
    R"(# What a sample does with each system call

<!-- Made from the table in src/emu/syscalls/table.cpp by the program system-calls-page. -->

shadowprof runs parts of your program a second time, apart from the program itself. There, a system
call must not act on the world. This page says what happens with each one.

- A **burst** (`--mode burst`) interprets a stopped thread's next instructions on a private view of
  its memory. It executes no system call. A call is *answered* from what is known, or the burst
  *ends*; the thread then goes on and does everything for real. Modes `auto`, `shadow` and `instant`
  take bursts where their own samples are impossible or too dear.
- A **replica** (modes `auto` and `shadow`) is a forked copy of the program in which every system
  call is stopped before it executes. Calls that touch only the copy are *executed* in it. It has
  none of your program's open files (of a directory it has only the place, to find paths from
  there): reads are *answered* from files that shadowprof opened anew, at an offset of the replica's
  own, and output is answered with success. A later call that could notice that the output never
  happened *ends* the replica. So does a call on a descriptor that shadowprof knows nothing about,
  or on a path that leads to its file only since the replica was forked.

Elsewhere the program makes its own calls, and this page does not apply: in modes `full` and `step`,
and in samples in place, which are those of mode `instant` and some of those of mode `auto`.

The profile counts why samples ended, by reason, as `system call NAME`. Numbers that are not listed
here end a sample as `system call #N`.
)";

struct Section {
    SystemCallClass kind;
    const char* text;
};
constexpr Section sections[] = {
    {SystemCallClass::benign, "They change nothing outside the process."},
    {SystemCallClass::output, "They change the world; here they only seem to have done so."},
    {SystemCallClass::input, "They bring in data, or wait for it."},
    {SystemCallClass::miscellaneous, "It depends on the arguments."},
    {SystemCallClass::unsafe, "They end a sample, apart from harmless forms."},
};

bool always_ends(const SystemCallTreatment& treatment) {
    return treatment.in_burst == "ends" && treatment.in_replica == "ends";
}

std::string page() {
    const auto treatments = shadowprof::emu::system_call_treatments();
    std::ostringstream out;
    out << introduction;
    for (const auto& section : sections) {
        std::string title(to_string(section.kind));
        title[0] = static_cast<char>(std::toupper(title[0]));
        out << "\n## " << title << "\n\n" << section.text << "\n\n";
        out << "| number | call | in a burst | in a replica |\n|---:|---|---|---|\n";
        std::string ending;
        for (const auto& treatment : treatments) {
            if (treatment.kind != section.kind) continue;
            if (always_ends(treatment)) {
                ending += ending.empty() ? "`" : ", `";
                ending += std::string(treatment.name) + "`";
                continue;
            }
            out << "| " << treatment.number << " | `" << treatment.name << "` | "
                << treatment.in_burst << " | " << treatment.in_replica << " |\n";
        }
        if (!ending.empty()) out << "\nAlways end both: " << ending << ".\n";
    }
    return out.str();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::cout << page();
        return 0;
    }
    std::ifstream file(argv[1]);
    std::ostringstream written;
    written << file.rdbuf();
    if (written.str() == page()) return 0;
    std::cerr << argv[1] << " is not what the table says; write it anew: " << argv[0] << " > "
              << argv[1] << "\n";
    return 1;
}
