// Writes the hand-made profile to a file: what check_schema.py validates and the fuzzer starts
// from.
#include "report/model/json_writer.h"
#include "sample_profile.h"

int main(int, char** argv) {
    shadowprof::report::write_profile(shadowprof::report::sample_profile(), argv[1]);
}
