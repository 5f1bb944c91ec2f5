// Writes the comparison of the hand-made profiles to a file, for check_schema.py.
#include "base/output_file.h"
#include "report/compare/compare_json.h"
#include "sample_profile.h"

using namespace shadowprof::report;

int main(int, char** argv) {
    const auto comparison =
        compare({"partial.json", partial_profile()}, {"sample.json", sample_profile()});
    shadowprof::write_file(argv[1], to_json(comparison));
}
