// Decides whether a number changed between the baseline runs and a new run, or only varied.
//
// Numbers vary for two reasons: sampling, whose error is in each share's interval, and the program
// itself, which is rarely as deterministic as it looks (hash seeds, time, addresses). The latter
// shows only between runs, so it is learnt from several baseline runs:
// with n of them, mean m and standard deviation s, another run of the same program lies with 99.9 %
// confidence within m ± t s sqrt(1 + 1/n), t of Student's distribution with n - 1 degrees of
// freedom. A difference is believed where it is beyond both, and where both sides have enough
// samples. With one baseline run of a program that was counted exactly, every difference is
// believed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace shadowprof::report {

// A number of one profile, the count of a run or an estimated share, with its 95 % interval.
struct Amount {
    double value = 0;
    double low = 0;
    double high = 0;
    double presence = 1;  // the part of the samples in which it occurred
    // That it rests on, as many equal ones as would say as much; 0: everything was seen.
    double samples = 0;
};

struct Change {
    std::string name;
    double base = 0;  // the mean of the baselines
    double now = 0;
    double noise = 0;                  // how far apart the two may be by chance
    bool has_too_few_samples = false;  // on one side or both: then the noise may be anything

    double difference() const { return now - base; }
    bool is_real() const {
        return !has_too_few_samples && std::abs(difference()) > noise + 1e-9 * std::max(base, now);
    }
    double least_increase() const { return difference() - noise; }
};

// The evidence that something did not occur in a profile.
struct Absence {
    Amount amount;              // what may have gone unseen; and what samples there are
    std::uint64_t samples = 0;  // 0: everything was seen
};

// A pointer is null if it did not occur there; at least one is not null.
Change change_of(std::string name, const std::vector<const Amount*>& bases,
                 const std::vector<Absence>& absent_in_base, const Amount* now,
                 const Absence& absent_now);

}  // namespace shadowprof::report
