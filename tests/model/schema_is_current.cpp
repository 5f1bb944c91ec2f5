// docs/profile.schema.json is what the tables of fields say. `schema-is-current FILE` compares;
// `schema-is-current --write FILE` makes it so, after a table was changed.
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "base/output_file.h"
#include "profile/registry.h"

int main(int argc, char** argv) {
    const std::string file = argv[argc - 1];
    const auto schema = shadowprof::profile::profile_schema();
    if (argc == 3) {
        shadowprof::write_file(file, schema);
        return 0;
    }
    std::stringstream checked_in;
    checked_in << std::ifstream(file).rdbuf();
    if (checked_in.str() == schema) return 0;
    std::fprintf(stderr, "%s is not what the profile types' tables say: %s --write %s\n",
                 file.c_str(), argv[0], file.c_str());
    return 1;
}
