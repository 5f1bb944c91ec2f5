// Writes the hand-made profile to a file: what check_schema.py validates and the fuzzer starts
// from.
#include "model/profile_file.h"
#include "sample_profile.h"

int main(int, char** argv) {
    shadowprof::model::write_profile(shadowprof::report::sample_profile(), argv[1]);
}
