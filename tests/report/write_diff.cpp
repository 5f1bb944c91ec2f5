// Writes a diff with verdicts to a file, for check_schema.py.
#include "report/diff/diff_json.h"
#include "report/model/output_file.h"
#include "sample_profile.h"

using namespace shadowprof::report;

namespace {

// As if everything had been counted.
Profile counted() {
    auto p = sample_profile();
    p.run.interrupted.reset();
    for (auto* t : {&p.methods->totals, &p.methods->instructions, &p.edges->totals,
                    &p.calls->totals, &p.paths->totals, &p.values->entries[0].executions})
        t->exhaustive = true;
    p.values->entries[0].probability_inverse = 1;
    return p;
}

}  // namespace

int main(int, char** argv) {
    const auto base = counted();
    auto slower = counted();
    slower.coverage.instructions += 300;
    slower.methods->entries[0].instructions.count += 8;
    slower.methods->instructions.unknown -= 8;
    slower.edges->entries[0].statistics.count += 1;
    slower.calls->entries[0].statistics.count -= 1;
    slower.paths->entries[0].statistics.count -= 1;
    slower.values->entries[0].top[0].statistics.count -= 30;
    const auto d = diff({{"base.json", base}}, {"slower.json", slower});
    GateLimits limits;
    limits.instructions = parse_allowance("+1%");
    const auto gate = check_limits(d, limits);
    write_file(argv[1], to_json(d, &gate));
}
