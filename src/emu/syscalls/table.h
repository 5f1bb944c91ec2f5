// The table of system calls: one row each.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "emu/syscalls/rules/rule.h"
#include "emu/syscalls/system_calls.h"

namespace shadowprof::emu {

struct SystemCallRow {
    std::int32_t number;
    std::string_view name;
    SystemCallClass kind;
    rules::BurstRule in_burst;
    rules::ReplicaRule in_replica;
};

std::span<const SystemCallRow> system_call_rows();  // by number
const SystemCallRow* find_system_call(std::int32_t number);

}  // namespace shadowprof::emu
