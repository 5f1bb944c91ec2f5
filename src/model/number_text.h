// Numbers for people, in the same words in every report.
#pragma once

#include <cstdint>
#include <string>

namespace shadowprof::model {

std::string count_text(std::uint64_t n);                  // "950", "12.3k", "4.00M"
std::string counted(const char* thing, std::uint64_t n);  // "1 call", "2 calls"
std::string share_text(double share);                     // "61.3 %", "0.042 %", "<0.01 %"
std::string interval_text(double low, double high);       // "58.1–64.5 %"
std::string seconds_text(double seconds);                 // "3.21 s", "12.0 ms"
std::string nanoseconds_text(double nanoseconds);         // "1.7 ns", "120 ns", "4.2 us"
std::string hex_text(std::uint64_t n);                    // "0x2a"

}  // namespace shadowprof::model
