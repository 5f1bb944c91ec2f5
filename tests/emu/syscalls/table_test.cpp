// The table against the kernel's own list, and what holds for every row.
#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "fake_guest.h"

using namespace shadowprof::emu;

namespace {

std::map<std::int32_t, std::string> installed_system_calls() {
    std::map<std::int32_t, std::string> calls;
    for (const char* path :
         {"/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"}) {
        std::ifstream header(path);
        std::string line;
        while (std::getline(header, line)) {
            std::istringstream words(line);
            std::string define, name;
            std::int32_t number = 0;
            const std::string prefix = "__NR_";
            if (words >> define >> name >> number && define == "#define" &&
                name.starts_with(prefix)) {
                calls.emplace(number, name.substr(prefix.size()));
            }
        }
        if (!calls.empty()) break;
    }
    return calls;
}

}  // namespace

TEST_CASE("every system call of the installed kernel headers has one row of its name") {
    std::map<std::int32_t, std::string> rows;
    std::int32_t last = -1;
    for (const auto& treatment : system_call_treatments()) {
        CHECK(treatment.number > last);
        last = treatment.number;
        rows.emplace(treatment.number, std::string(treatment.name));
    }
    const auto installed = installed_system_calls();
    REQUIRE(installed.size() > 300);
    for (const auto& call : installed) {
        CAPTURE(call.first);
        REQUIRE(rows.count(call.first) == 1);
        CHECK(rows.at(call.first) == call.second);
    }
}

TEST_CASE("names and numbers newer than many headers") {
    const std::map<std::int32_t, std::string> newer = {
        {335, "uretprobe"},    {336, "uprobe"},      {451, "cachestat"},  {452, "fchmodat2"},
        {454, "futex_wake"},   {462, "mseal"},       {464, "getxattrat"}, {467, "open_tree_attr"},
        {468, "file_getattr"}, {469, "file_setattr"}};
    for (const auto& [number, name] : newer) {
        CHECK(system_call_end_reason(number) == "system call " + name);
    }
}

TEST_CASE("a call without a row is unsafe") {
    FakeGuest guest;
    // Gaps, the next free number, the x32 numbers, negative ones.
    for (const std::int32_t number : {337, 423, 470, 512, 547, 0x40000000 + 39, -1}) {
        CAPTURE(number);
        CHECK_FALSE(guest.burst(number));
        CHECK(guest.replica(number) ==
              ReplicaAction{End{"system call #" + std::to_string(number)}});
    }
}

TEST_CASE("no arguments make any row do what its class forbids") {
    // Arguments that are unlike each other: null, small numbers, descriptors, addresses, garbage.
    const std::uint64_t values[] = {0, 1, 3, 0x10040, 0xffffffffffffff9c, 0x5555555555555555};
    for (const auto& treatment : system_call_treatments()) {
        CAPTURE(treatment.name);
        for (std::size_t i = 0; i < 6 * 6 * 6; ++i) {
            FakeGuest guest;
            const std::array<std::uint64_t, 6> arguments{
                values[i % 6], values[i / 6 % 6], values[i / 36], values[i % 5], values[i % 3], 0};
            const auto action = guest.replica(treatment.number, arguments);
            const bool executes = std::holds_alternative<Execute>(action) ||
                                  std::holds_alternative<ExecuteInstead>(action);
            if (treatment.kind == SystemCallClass::output && treatment.name != "msync") {
                CHECK_FALSE(executes);
            }
            if (treatment.in_replica == "ends") {
                CHECK(action == ReplicaAction{End{"system call " + std::string(treatment.name)}});
            }
            if (treatment.in_burst == "ends") {
                CHECK_FALSE(guest.burst(treatment.number, arguments));
            }
            if (const auto* end = std::get_if<End>(&action)) {
                CHECK(end->reason.starts_with(system_call_end_reason(treatment.number)));
            }
        }
    }
}

TEST_CASE("creating processes and programs, leaving, and new kernel objects always end a sample") {
    std::map<std::string_view, SystemCallTreatment> by_name;
    for (const auto& treatment : system_call_treatments()) by_name[treatment.name] = treatment;
    for (const auto* name : {"clone",
                             "clone3",
                             "fork",
                             "vfork",
                             "execve",
                             "execveat",
                             "exit",
                             "exit_group",
                             "wait4",
                             "socket",
                             "connect",
                             "accept",
                             "accept4",
                             "bind",
                             "splice",
                             "tee",
                             "vmsplice",
                             "copy_file_range",
                             "epoll_wait",
                             "recvfrom",
                             "recvmsg",
                             "semop",
                             "ptrace",
                             "io_uring_enter",
                             "mount",
                             "reboot",
                             "process_vm_writev",
                             "pidfd_send_signal",
                             "setuid",
                             "setsid"}) {
        CAPTURE(name);
        REQUIRE(by_name.count(name) == 1);
        CHECK(by_name[name].in_burst == "ends");
        CHECK(by_name[name].in_replica == "ends");
    }
}
