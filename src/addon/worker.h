// addon: customisation modules, which users write (include/shadowprof/module.h), each in a process
// of its own. In the code they are addons, because a module is a file with code. The room knows
// what a module wants to watch, hands it what happened, and gets what it counted. It knows neither
// Traces nor who runs.
//
// This file: shadowprof's end. A module that crashes, or makes no progress while it is waited for,
// is ended and left out: then `ended` says why, and everything else does nothing.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "addon/messages.h"
#include "model/statistics.h"
#include "shadowprof/module.h"

namespace shadowprof::addon {

struct Watch {
    std::uint8_t number = 0;
    std::string pattern;
    std::vector<shadowprof_word> words;
};

// Values that were measured.
struct Measured {
    std::uint64_t count = 0, sum = 0, least = 0, most = 0;
    bool operator==(const Measured&) const = default;

    // So many of one value.
    void add(std::uint64_t value, std::uint64_t times = 1) {
        value = std::min(value, most_of_a_sum);
        merge({times, saturated_product(value, times), value, value});
    }
    void merge(const Measured& other);
    double mean() const {
        return count == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(count);
    }
    static constexpr std::uint64_t most_of_a_sum = ~std::uint64_t{0} >> 1;
    static std::uint64_t saturated_product(std::uint64_t value, std::uint64_t times);
};

struct Found {
    struct Entry {
        std::uint32_t place = 0, caller = 0;
        std::string key;
        model::Statistics statistics;
        Measured values;
    };
    model::Totals totals;
    std::vector<Entry> entries;
    std::vector<std::string> said;
};

class Worker {
  public:
    // Throws UserError if it cannot be opened. To be called while there is only one thread.
    Worker(std::string file, std::string arguments);
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    const std::string& name() const { return name_; }
    const std::string& about() const { return about_; }
    const std::vector<Watch>& watches() const { return watches_; }

    void target_is(pid_t pid);
    // The texts and operands that it points at are sent, too.
    void look(const shadowprof_instruction& instruction);
    void take(std::uint32_t sample, std::span<const shadowprof_event> events);
    void end_sample(std::uint32_t sample, std::uint64_t weight);
    // Nothing if the module has ended.
    std::optional<Found> yield();
    // Empty while it lives.
    std::string ended() const;

  private:
    struct Progress {
        std::atomic<std::uint64_t> steps{0};
    };
    class Patience;

    void begin_process();
    [[noreturn]] void run_module(int socket);
    void read_hello();
    void send(MessageKind kind, std::string_view bytes);
    std::optional<std::string> receive(MessageKind& kind);
    bool transfer(bool writes, char* data, std::size_t size);
    void end(const std::string& why);
    void kill_all() const;
    void has_ended_itself();
    bool is_alive() const;

    std::string file_, arguments_, name_, about_;
    std::vector<Watch> watches_;
    pid_t owner_ = 0, pid_ = -1;
    int socket_ = -1;
    Progress* progress_ = nullptr;
    mutable std::mutex mutex_;
    std::string ended_;
};

}  // namespace shadowprof::addon
