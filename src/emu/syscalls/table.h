// The table of system calls: one row each.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "emu/syscalls/rules/rule.h"
#include "emu/syscalls/system_calls.h"

namespace shadowprof::emu {

// How a thread in the code cache of mode full makes the call.
enum class CallInCache : std::uint8_t {
    seen,       // outside of the cache, and the profiler stops the thread before and after it
    alone,      // from the cache; the profiler does not hear of it
    undivided,  // the same, and it is not interrupted, because a part of it may have been done
    bounded,    // the same as alone, unless it is about memory of ours: then it is seen
    hinted,     // from the cache, and the profiler hears of it afterwards: it may change mappings
};

struct SystemCallRow {
    std::int32_t number;
    std::string_view name;
    SystemCallClass kind;
    rules::BurstRule in_burst;
    rules::ReplicaRule in_replica;
    CallInCache in_cache = CallInCache::alone;  // or hinted, see in_cache()
};

CallInCache in_cache(const SystemCallRow& row);
std::span<const SystemCallRow> system_call_rows();  // by number
const SystemCallRow* find_system_call(std::int32_t number);

}  // namespace shadowprof::emu
