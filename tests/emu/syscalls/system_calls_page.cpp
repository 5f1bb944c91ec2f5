// Prints docs/system-calls.md from the table. With a file's name it compares instead, so that the
// page cannot differ from what is done:  system-calls-page docs/system-calls.md
#include <algorithm>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

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
  none of your program's open files. Reads are *answered* from files that shadowprof opened anew, at
  an offset of the replica's own, and output is answered with success. A later call that could
  notice that the output never happened *ends* the replica. So does a call on a descriptor that
  shadowprof knows nothing about, or on a path that leads to its file only since the fork.

Elsewhere the program makes its own calls, and this page does not apply: in modes `full` and `step`,
and in samples in place, which are those of mode `instant` and some of those of mode `auto`.

Every other call ends the sample, as does one of which a condition of its row does not hold, or a
form that its row does not name. The profile counts why samples ended, as `system call NAME`, or
`system call #N` for numbers without a name. Calls of one row are treated alike; their numbers are
in parentheses.
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

// The introduction says it once for all rows.
std::string without_end(std::string words) {
    const std::string end = "; otherwise ends";
    if (words.ends_with(end)) words.resize(words.size() - end.size());
    return words;
}

std::string page() {
    const auto treatments = shadowprof::emu::system_call_treatments();
    std::ostringstream out;
    out << introduction;
    for (const auto& section : sections) {
        std::string title(to_string(section.kind));
        title[0] = static_cast<char>(std::toupper(title[0]));
        out << "\n## " << title << "\n\n" << section.text << "\n\n";
        out << "| calls | in a burst | in a replica |\n|---|---|---|\n";
        std::vector<std::pair<std::string, std::string>> rows;  // treatment, calls
        for (const auto& treatment : treatments) {
            if (treatment.kind != section.kind || always_ends(treatment)) continue;
            const bool same = treatment.in_burst == treatment.in_replica;
            const std::string words =
                without_end(treatment.in_burst) + " | " +
                (same ? std::string("the same") : without_end(treatment.in_replica));
            const std::string call =
                "`" + std::string(treatment.name) + "` (" + std::to_string(treatment.number) + ")";
            const auto row = std::find_if(rows.begin(), rows.end(),
                                          [&](const auto& other) { return other.first == words; });
            if (row == rows.end()) {
                rows.emplace_back(words, call);
            } else {
                row->second += ", " + call;
            }
        }
        for (const auto& [words, calls] : rows) out << "| " << calls << " | " << words << " |\n";
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
