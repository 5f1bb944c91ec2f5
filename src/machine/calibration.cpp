#include "machine/calibration.h"

#include <cpuid.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <numeric>
#include <sstream>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/kept_files.h"
#include "base/random.h"
#include "base/x86.h"

namespace shadowprof::machine {

namespace {

using Clock = std::chrono::steady_clock;
using machine::CacheGeometry;
using machine::LatencyScale;

constexpr std::size_t huge_page = 2u << 20;

std::uint64_t ticks() {
    std::uint32_t low = 0, high = 0;
    asm volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high)::"memory");
    return std::uint64_t{high} << 32 | low;
}

// Exactly as translated code does it (UnitCompiler::time_load).
std::uint32_t time_one_load(const void* address) {
    std::uint32_t end = 0;
    std::uint64_t begin = 0, scratch = 0;
    asm volatile(
        "lfence\n\t"
        "rdtsc\n\t"
        "mov %%rax, %1\n\t"
        "lfence\n\t"
        "movzbl (%3), %%edx\n\t"
        "lfence\n\t"
        "rdtsc\n\t"
        : "=&a"(end), "=m"(begin), "=&d"(scratch)
        : "r"(address)
        : "memory");
    return end - static_cast<std::uint32_t>(begin);
}

std::string cpu_info(const std::string& key) {
    std::ifstream file{"/proc/cpuinfo"};
    for (std::string line; std::getline(file, line);) {
        const auto colon = line.find(':');
        if (line.compare(0, key.size(), key) == 0 && colon != line.npos)
            return line.substr(std::min(colon + 2, line.size()));
    }
    return {};
}

double nanoseconds_per_tick() {
    constexpr std::chrono::milliseconds long_enough{10};
    const auto from = Clock::now();
    const auto first = ticks();
    auto to = from;
    while (to - from < long_enough) to = Clock::now();
    const auto passed = ticks() - first;
    return std::chrono::duration<double, std::nano>(to - from).count() /
           static_cast<double>(std::max<std::uint64_t>(passed, 1));
}

double nanoseconds_to_read() {
    constexpr int readings = 100;
    const auto from = Clock::now();
    for (int i = 0; i < readings; ++i) ticks();
    return std::chrono::duration<double, std::nano>(Clock::now() - from).count() / readings;
}

// The smallest step that the counter was seen to make: all steps are multiples of it.
std::uint32_t resolution() {
    std::uint64_t common = 0;
    auto last = ticks();
    for (int i = 0; i < 20'000; ++i) {
        const auto now = ticks();
        // A long step means that we were interrupted.
        if (now - last < 10'000) common = std::gcd(common, now - last);
        last = now;
    }
    return static_cast<std::uint32_t>(std::max<std::uint64_t>(common, 1));
}

// Without the tenth that is farthest from the middle on each side.
double trimmed_mean(std::vector<std::uint32_t> values) {
    std::sort(values.begin(), values.end());
    const auto cut = static_cast<std::ptrdiff_t>(values.size() / 10);
    return std::accumulate(values.begin() + cut, values.end() - cut, 0.0) /
           static_cast<double>(static_cast<std::ptrdiff_t>(values.size()) - 2 * cut);
}

double ticks_of_a_timed_hit() {
    constexpr std::size_t readings = 20'000;
    alignas(cache_line) const char place[cache_line] = {};
    std::vector<std::uint32_t> found;
    Random random{1};
    for (std::size_t i = 0; i < readings; ++i) {
        found.push_back(time_one_load(place));
        // So that readings fall anywhere between two steps of the counter.
        for (auto wait = random.below(32); wait > 0; --wait) asm volatile("" ::: "memory");
    }
    return trimmed_mean(std::move(found));
}

struct Unmap {
    std::size_t size;
    void operator()(char* memory) const { munmap(memory, size); }
};

// A cycle of pointers through every line of so many bytes, in random order.
class Cycle {
  public:
    explicit Cycle(std::size_t bytes)
        : whole_(nullptr, Unmap{bytes + huge_page}), lines_(bytes / cache_line) {
        // Room for huge pages, so that caches are measured and not page tables.
        auto* const mapped = mmap(nullptr, bytes + huge_page, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped == MAP_FAILED) return;
        whole_.reset(static_cast<char*>(mapped));
        const auto away = -reinterpret_cast<std::uintptr_t>(mapped) % huge_page;
        memory_ = reinterpret_cast<void**>(whole_.get() + away);
        madvise(memory_, bytes, MADV_HUGEPAGE);
        std::vector<std::uint32_t> order(lines_);
        std::iota(order.begin(), order.end(), 0u);
        Random random{2};
        for (std::size_t i = lines_ - 1; i > 0; --i)
            std::swap(order[i], order[random.below(i + 1)]);
        for (std::size_t i = 0; i < lines_; ++i) *at(order[i]) = at(order[(i + 1) % lines_]);
    }
    explicit operator bool() const { return memory_ != nullptr; }
    void flush() const {
        for (std::size_t i = 0; i < lines_; ++i) __builtin_ia32_clflush(at(i));
        __builtin_ia32_mfence();
    }
    // Nanoseconds for a step, from where the last chase ended.
    double chase(std::size_t steps) {
        auto* place = place_ ? place_ : memory_;
        const auto from = Clock::now();
        for (std::size_t i = 0; i < steps; ++i) {
            place = static_cast<void**>(*place);
            asm volatile("" : "+r"(place));
        }
        place_ = place;
        return std::chrono::duration<double, std::nano>(Clock::now() - from).count() /
               static_cast<double>(steps);
    }
    std::size_t lines() const { return lines_; }

  private:
    void** at(std::size_t line) const { return memory_ + line * (cache_line / sizeof(void*)); }

    std::unique_ptr<char, Unmap> whole_;
    void** memory_ = nullptr;
    std::size_t lines_;
    void** place_ = nullptr;
};

// The median of pieces that are so short that few of them are interrupted.
double median_of_chases(Cycle& cycle, std::size_t steps) {
    constexpr std::size_t steps_at_once = 500;
    std::vector<double> pieces;
    for (std::size_t done = 0; done < steps; done += steps_at_once)
        pieces.push_back(cycle.chase(steps_at_once));
    std::nth_element(pieces.begin(),
                     pieces.begin() + static_cast<std::ptrdiff_t>(pieces.size() / 2), pieces.end());
    return pieces[pieces.size() / 2];
}

double nanoseconds_in_cache(std::size_t bytes) {
    Cycle cycle{bytes};
    if (!cycle) return 0;
    cycle.chase(cycle.lines());
    return median_of_chases(cycle, std::max<std::size_t>(cycle.lines(), 20'000));
}

// The same without a round beforehand: making the cycle has brought it into the caches, if it fits.
double nanoseconds_just_written(std::size_t bytes) {
    Cycle cycle{bytes};
    return cycle ? median_of_chases(cycle, 20'000) : 0;
}

double nanoseconds_in_memory() {
    Cycle cycle{4u << 20};
    if (!cycle) return 0;
    cycle.flush();
    return median_of_chases(cycle, cycle.lines());
}

// Half of what fits, and more than fits into any lower level.
std::size_t size_for(const CacheGeometry& caches, std::size_t level) {
    const auto half = caches.levels[level].size / 2;
    return level < 2 ? half : std::min(half, 4 * caches.levels[1].size);
}

std::string machine() {
    return fmt::format("{}, {}", cpu_info("model name"), cpu_info("microcode"));
}

std::uint32_t pages_in_tlb() {
    std::uint32_t a = 0, b = 0, c = 0, d = 0;
    std::uint32_t most = 0;
    // Intel: a subleaf for each TLB; the first says how many there are.
    if (__get_cpuid_count(0x18, 0, &a, &b, &c, &d)) {
        const auto last = a;
        for (std::uint32_t leaf = 0; leaf <= std::min(last, 64u); ++leaf) {
            if (!__get_cpuid_count(0x18, leaf, &a, &b, &c, &d)) break;
            const auto type = d & 31;
            const bool is_for_loads = type == 1 || type == 3 || type == 4;
            const bool has_small_pages = b & 1;
            if (is_for_loads && has_small_pages) most = std::max(most, (b >> 16) * c);
        }
    }
    // AMD.
    if (most == 0 && __get_cpuid(0x80000006, &a, &b, &c, &d)) most = b >> 16 & 0xfff;
    return most;
}

// As the kernel describes one processor's.
bool read_caches(CacheGeometry& caches) {
    caches.levels = {};
    for (unsigned index = 0;; ++index) {
        const auto told = [&](const char* what) {
            std::ifstream file{
                fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/{}", index, what)};
            std::string word;
            file >> word;
            return word;
        };
        const auto number = [&](const char* what) {
            return std::strtoull(told(what).c_str(), nullptr, 10);
        };
        const auto level = number("level");
        if (level == 0) return caches.levels[0].size > 0;
        if (level > caches.levels.size() || told("type") == "Instruction") continue;
        // In kilobytes, "32K".
        caches.levels[level - 1] = {1024 * number("size"),
                                    static_cast<std::uint32_t>(number("ways_of_associativity"))};
        if (const auto line = number("coherency_line_size"); line > 0) caches.line = line;
    }
}

// Where the kernel does not say. For AMD's processors this gives all third-level caches together.
bool ask_library(CacheGeometry& caches) {
    constexpr struct {
        int size, ways;
    } names[] = {{_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL1_DCACHE_ASSOC},
                 {_SC_LEVEL2_CACHE_SIZE, _SC_LEVEL2_CACHE_ASSOC},
                 {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL3_CACHE_ASSOC}};
    if (sysconf(names[0].size) <= 0) return false;
    for (std::size_t level = 0; level < caches.levels.size(); ++level) {
        caches.levels[level].size =
            static_cast<std::uint64_t>(std::max(sysconf(names[level].size), 0l));
        caches.levels[level].ways =
            static_cast<std::uint32_t>(std::max(sysconf(names[level].ways), 0l));
    }
    if (const auto line = sysconf(_SC_LEVEL1_DCACHE_LINESIZE); line > 0)
        caches.line = static_cast<std::uint64_t>(line);
    return true;
}

}  // namespace

std::string why_clock_is_unusable(const std::string& cpu_flags, bool may_be_read,
                                  double nanoseconds_to_read) {
    constexpr double slowest = 500;
    if (!may_be_read) return "this process may not read the time stamp counter";
    if ((" " + cpu_flags + " ").find(" constant_tsc ") == std::string::npos)
        return "the time stamp counter's speed changes with the processor's";
    if (nanoseconds_to_read > slowest)
        return fmt::format(
            "the hypervisor intercepts the time stamp counter: a reading takes {:.0f} ns",
            nanoseconds_to_read);
    return {};
}

CacheGeometry caches_of_this_machine() {
    CacheGeometry caches;
    if (!read_caches(caches) && !ask_library(caches)) return {};
    if (const auto pages = pages_in_tlb(); pages > 0) caches.pages_in_tlb = pages;
    return caches;
}

std::uint64_t size_by_time(std::uint64_t said, std::uint64_t confirmed, double limit,
                           const std::function<double(std::uint64_t)>& nanoseconds) {
    constexpr std::uint64_t largest_tried = 64u << 20;
    while (confirmed < said && confirmed < largest_tried) {
        const auto size = std::min(2 * confirmed, said);
        if (nanoseconds(size) > limit) return confirmed;
        confirmed = size;
    }
    // What is larger takes too long to try.
    return said;
}

LatencyScale calibrate() {
    LatencyScale scale;
    scale.caches = caches_of_this_machine();
    int access = PR_TSC_ENABLE;
    prctl(PR_GET_TSC, &access);
    const bool may_be_read = access == PR_TSC_ENABLE;
    scale.why_not = why_clock_is_unusable(cpu_info("flags"), may_be_read,
                                          may_be_read ? nanoseconds_to_read() : 0);
    scale.clock_is_usable = scale.why_not.empty();
    if (!scale.clock_is_usable) return scale;

    scale.nanoseconds_per_tick = nanoseconds_per_tick();
    scale.resolution_ticks = resolution();
    for (std::size_t level = 0; level < scale.caches.levels.size(); ++level)
        if (const auto size = size_for(scale.caches, level))
            scale.typical_ns[level] = nanoseconds_in_cache(size);
    scale.typical_ns.back() = nanoseconds_in_memory();
    for (std::size_t level = 0; level < scale.limits_ns.size(); ++level)
        scale.limits_ns[level] = std::sqrt(scale.typical_ns[level] * scale.typical_ns[level + 1]);
    if (const auto confirmed = size_for(scale.caches, 2))
        scale.caches.levels[2].size = size_by_time(scale.caches.levels[2].size, confirmed,
                                                   scale.limits_ns[2], nanoseconds_just_written);
    scale.overhead_ticks =
        ticks_of_a_timed_hit() - scale.typical_ns[0] / scale.nanoseconds_per_tick;
    constexpr double far = 10;
    scale.longest_ns = far * scale.typical_ns.back();
    return scale;
}

std::string written(const LatencyScale& scale, const std::string& machine) {
    return fmt::format("shadowprof-latency 2\n{}\n{} {} {} {} {} {} {} {} {} {} {} {}\n", machine,
                       scale.nanoseconds_per_tick, scale.resolution_ticks, scale.overhead_ticks,
                       scale.typical_ns[0], scale.typical_ns[1], scale.typical_ns[2],
                       scale.typical_ns[3], scale.limits_ns[0], scale.limits_ns[1],
                       scale.limits_ns[2], scale.caches.levels[2].size, scale.longest_ns);
}

bool read_back(const std::string& text, const std::string& machine, LatencyScale& scale) {
    std::istringstream in{text};
    std::string first, of;
    std::getline(in, first);
    std::getline(in, of);
    if (first != "shadowprof-latency 2" || of != machine) return false;
    in >> scale.nanoseconds_per_tick >> scale.resolution_ticks >> scale.overhead_ticks;
    for (auto& each : scale.typical_ns) in >> each;
    for (auto& each : scale.limits_ns) in >> each;
    in >> scale.caches.levels[2].size >> scale.longest_ns;
    scale.clock_is_usable = static_cast<bool>(in);
    return scale.clock_is_usable;
}

LatencyScale calibrate_once_in_a_while() {
    constexpr std::time_t week = 7 * 24 * 3600;
    constexpr auto* name = "latency";
    const auto of = machine();
    const auto kept = read_kept_file(name, 4096);
    if (kept && std::time(nullptr) - kept->written < week) {
        LatencyScale scale;
        scale.caches = caches_of_this_machine();
        if (read_back(kept->contents, of, scale)) return scale;
    }
    const auto scale = calibrate();
    if (scale.clock_is_usable) write_kept_file(name, written(scale, of));
    return scale;
}

}  // namespace shadowprof::machine
