#include "proc/processors.h"

#include <doctest/doctest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "report/temporary_directory.h"

using namespace shadowprof::proc;

namespace {

// As /sys/devices/system/cpu is, where each core has so many threads.
class SystemFolder {
  public:
    explicit SystemFolder(std::size_t threads_of_core) {
        for (std::size_t processor = 0; processor < CPU_SETSIZE; ++processor) {
            const auto first = processor / threads_of_core * threads_of_core;
            const auto topology = folder_.file("cpu" + std::to_string(processor)) + "/topology";
            std::filesystem::create_directories(topology);
            std::ofstream{topology + "/thread_siblings_list"}
                << first << '-' << first + threads_of_core - 1 << '\n';
        }
    }
    const std::string& path() const { return folder_.path(); }

  private:
    shadowprof::report::TemporaryDirectory folder_;
};

}  // namespace

TEST_CASE("threads of one core are known as such") {
    cpu_set_t ours;
    REQUIRE(sched_getaffinity(0, sizeof ours, &ours) == 0);
    const auto processors = static_cast<std::size_t>(CPU_COUNT(&ours));

    const auto all_in_one = usable_cores(SystemFolder{CPU_SETSIZE}.path());
    CHECK(all_in_one.processors == processors);
    CHECK(all_in_one.cores == 1);

    const auto one_each = usable_cores(SystemFolder{1}.path());
    CHECK(one_each.processors == processors);
    CHECK(one_each.cores == processors);

    // Where the kernel does not say, each is taken for a core.
    CHECK(usable_cores("/nowhere").cores == processors);
}

TEST_CASE("spare time is what all usable processors had, idle or at low priority") {
    const shadowprof::report::TemporaryDirectory folder;
    const auto file = folder.file("stat");
    std::ofstream text{file};
    text << "cpu  9 9 9 9 9 0 0\n";
    for (std::size_t n = 0; n < CPU_SETSIZE; ++n) text << "cpu" << n << " 700 1 20 30 4 0 0\n";
    text << "intr 5\n";
    text.close();
    const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    const auto spare = spare_time(file);
    REQUIRE(spare);
    CHECK(spare->count() * ticks ==
          doctest::Approx(35.0 * static_cast<double>(usable_cores().processors)));

    CHECK(!spare_time("/nowhere"));
    const auto here = spare_time();
    REQUIRE(here);
    CHECK(here->count() >= 0);
}
