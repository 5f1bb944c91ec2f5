// How a program's time is spread over its processes, in the order in which reports show it; and a
// profile cut to some of them.
#pragma once

#include <string>
#include <vector>

#include "report/model/profile.h"

namespace shadowprof::report {

struct ShownProcess {
    double share = 0;  // of the time that all computed
    double cpu = 0;    // seconds
    std::string name;  // of the program; "3 × name" for several
    std::string note;  // process id, samples or why there are none, threads
};

struct ShownProcesses {
    std::string summary;             // one line
    std::vector<ShownProcess> rows;  // the one that computed longest first
};

// Nothing if there was one process.
ShownProcesses processes_of(const Profile& profile);

// What was seen of the process of that number, or of all of that program. Throws UserError if there
// is none, or nothing was seen of it.
Profile cut_to_process(Profile profile, const std::string& who);

}  // namespace shadowprof::report
