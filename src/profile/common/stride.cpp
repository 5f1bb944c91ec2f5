#include "profile/common/stride.h"

namespace shadowprof::profile {

std::optional<Stride> StrideDetector::stride() const {
    if (steps_ < 2 || candidate_ == 0) return std::nullopt;
    const auto share = static_cast<double>(hits_) / static_cast<double>(steps_);
    if (share < least_share) return std::nullopt;
    return Stride{candidate_, share, hits_, steps_};
}

}  // namespace shadowprof::profile
