// What the tests of replicas share: how a replica's decision is written down and compared.
#pragma once

#include <asm/prctl.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "fake_guest.h"

namespace doctest {
template <>
struct StringMaker<shadowprof::emu::ReplicaAction> {
    static String convert(const shadowprof::emu::ReplicaAction& action) {
        std::string text;
        if (std::holds_alternative<shadowprof::emu::Execute>(action)) text = "execute";
        if (const auto* answer = std::get_if<shadowprof::emu::Answer>(&action)) {
            text = "answer " + std::to_string(answer->result);
        }
        if (const auto* end = std::get_if<shadowprof::emu::End>(&action))
            text = "end: " + end->reason;
        if (const auto* other = std::get_if<shadowprof::emu::ExecuteInstead>(&action)) {
            text = "execute instead #" + std::to_string(other->call.number);
            for (const auto argument : other->call.arguments) {
                text += " " + std::to_string(argument);
            }
        }
        return text.c_str();
    }
};
}  // namespace doctest

namespace shadowprof::emu {

inline const ReplicaAction execute = Execute{};
inline ReplicaAction answer(std::int64_t result) {
    return Answer{result};
}
inline ReplicaAction ends(const std::string& name) {
    return End{"system call " + name};
}
inline ReplicaAction shows_faked(const std::string& name) {
    return End{"system call " + name + " would show a faked effect"};
}
inline ReplicaAction instead(std::int32_t number, std::array<std::uint64_t, 6> arguments) {
    return ExecuteInstead{{number, arguments}};
}

// How a replica opens a file for reading.
inline ReplicaAction opens(std::uint64_t directory, std::uint64_t path, std::uint64_t flags) {
    return instead(SYS_openat, {directory, path, flags | O_NONBLOCK | O_NOCTTY, 0, 0, 0});
}

inline constexpr std::uint64_t cwd = static_cast<std::uint64_t>(AT_FDCWD);
inline constexpr std::uint64_t no_fd = static_cast<std::uint64_t>(-1);

}  // namespace shadowprof::emu
