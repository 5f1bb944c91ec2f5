#include "profile/common/convergence.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "model/statistics.h"
#include "profile/tuning.h"

namespace shadowprof::profile {

void ShareTracker::add(const Sample& sample) {
    const double n = std::accumulate(sample.begin(), sample.end(), 0.0);
    if (n <= 0) return;
    ++samples_;
    if (weight_ >= tuning::samples_until_usual) {
        double distance = 0;
        for (std::size_t i = 0; i < bins; ++i)
            distance += std::abs(sample[i] / n - sums_[i].x / total_) / 2;
        latest_[latest_count_++ % of_late] = distance;
        if (latest_count_ >= of_late && distance_weight_ >= tuning::samples_until_usual) {
            const double usual = distances_ / distance_weight_;
            const double variance =
                std::max(0.0, square_distances_ / distance_weight_ - usual * usual);
            const double mean = std::accumulate(latest_.begin(), latest_.end(), 0.0) / of_late;
            const double error = std::sqrt(variance / of_late);
            if (mean - usual > std::max(tuning::surprising * error, tuning::least_surprise))
                forget_most();
        }
        distances_ += distance;
        square_distances_ += distance * distance;
        distance_weight_ += 1;
    }
    weight_ += 1;
    total_ += n;
    total_squares_ += n * n;
    for (std::size_t i = 0; i < bins; ++i) {
        sums_[i].x += sample[i];
        sums_[i].squares += sample[i] * sample[i];
        sums_[i].products += sample[i] * n;
    }
}

void ShareTracker::forget_most() {
    ++changes_;
    for (auto& sums : sums_) {
        sums.x *= tuning::weight_of_old_samples;
        sums.squares *= tuning::weight_of_old_samples;
        sums.products *= tuning::weight_of_old_samples;
    }
    weight_ *= tuning::weight_of_old_samples;
    total_ *= tuning::weight_of_old_samples;
    total_squares_ *= tuning::weight_of_old_samples;
    distances_ = square_distances_ = distance_weight_ = 0;
    latest_count_ = 0;
}

double ShareTracker::precision() const {
    if (weight_ < tuning::samples_until_usual ||
        total_ * total_ < tuning::samples_until_usual / 2 * total_squares_)
        return 1;
    double widest = 0;
    for (const auto& sums : sums_) {
        const double r = sums.x / total_;
        widest = std::max(widest, sums.squares - 2 * r * sums.products + r * r * total_squares_);
    }
    // As if there had been three more that were all different: nothing is certain that is only seen
    // to be always the same.
    return model::normal_quantile * std::sqrt(widest) / total_ +
           3 / (weight_ + 3) / model::normal_quantile;
}

void Convergence::add(const trace::Block& from, Address, const Location&, std::uint64_t count) {
    auto place = from.place;
    place.offset /= tuning::bytes_together;
    sample_[trace::hash_of(place) % ShareTracker::bins] +=
        static_cast<double>(count * from.instructions.size());
}

void Convergence::end_sample() {
    tracker_.add(std::exchange(sample_, {}));
    precision_ = tracker_.precision();
}

}  // namespace shadowprof::profile
