// Values read from memory that are nearly always, but not always, the same. The program can test
// for the usual value first and have a version of the following code for it.
#include <fmt/format.h>

#include "profile/value/value_words.h"
#include "report/opportunities/finders.h"
#include "report/opportunities/last_writers.h"
#include "report/opportunities/program_loads.h"
#include "report/text/format.h"

namespace shadowprof::report {

std::vector<Finding> find_steady_values(const Evidence& e, Symbols& symbols) {
    std::vector<Finding> found;
    for (const auto& load : program_loads(e, symbols)) {
        const auto& ratio = load.value.ratio;
        if (ratio.low < tuning::least_value_share || is_unchanged(ratio) ||
            looks_like_an_address(load.value))
            continue;
        const auto block = e.instructions_in_block_of(load.at);
        Finding f;
        f.location = e.location(load.at);
        f.what =
            fmt::format("reads {} in {} of {}", value_text(load.value.value, *load.value.entry),
                        ratio_text(ratio), counted("execution", e.executions(load.at)));
        f.evidence.push_back(fmt::format("{}, in a block of {}", e.place(load.at).text,
                                         counted("instruction", block)));
        f.touches = e.share_of_instructions(static_cast<double>(e.executions(load.at)) *
                                            ratio.share * block);
        f.covers.push_back(f.location);
        found.push_back(std::move(f));
    }
    return found;
}

}  // namespace shadowprof::report
