// shadowprof: which paths a program takes, which values its instructions see, how long its loads
// wait, at about 1 % slowdown. The commands are in src/cli, one file each.
#include "cli/commands.h"

int main(int argc, char** argv) {
    return shadowprof::cli::main(argc, argv);
}
