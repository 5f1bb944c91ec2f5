// Writes a diff with verdicts to a file, for check_schema.py.
#include "base/output_file.h"
#include "report/diff/diff_json.h"
#include "sample_profile.h"

using namespace shadowprof::report;

namespace {

// As if everything had been counted.
Profile counted() {
    auto p = sample_profile();
    p.run.interrupted.reset();
    for (auto* t : {&p.find<MethodSection>()->totals, &p.find<MethodSection>()->instructions,
                    &p.find<EdgeSection>()->totals, &p.find<CallSection>()->totals,
                    &p.find<PathSection>()->totals, &p.find<ValueSection>()->entries[0].executions})
        t->exhaustive = true;
    p.find<ValueSection>()->entries[0].probability_inverse = 1;
    return p;
}

}  // namespace

int main(int, char** argv) {
    const auto base = counted();
    auto slower = counted();
    slower.coverage.instructions += 300;
    slower.find<MethodSection>()->entries[0].instructions.count += 8;
    slower.find<MethodSection>()->instructions.unknown -= 8;
    slower.find<EdgeSection>()->entries[0].statistics.count += 1;
    slower.find<CallSection>()->entries[0].statistics.count -= 1;
    slower.find<PathSection>()->entries[0].statistics.count -= 1;
    slower.find<ValueSection>()->entries[0].top[0].statistics.count -= 30;
    const auto d = diff({{"base.json", base}}, {"slower.json", slower});
    GateLimits limits;
    limits.instructions = parse_allowance("+1%");
    const auto gate = check_limits(d, limits);
    shadowprof::write_file(argv[1], to_json(d, &gate));
}
