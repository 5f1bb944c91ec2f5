#include "languages/known_functions.h"

#include <algorithm>

namespace shadowprof::languages {

namespace {

constexpr std::size_t most_known = 1u << 16;

}  // namespace

KnownFunctions::Known* KnownFunctions::known(const Glance::Frame& frame, const Reader& read) {
    const std::pair key{frame.function, frame.owner};
    const auto at = known_.find(key);
    if (at != known_.end() && at->second.contents == frame.contents) return &at->second;
    auto fresh = read(frame);
    if (!fresh) return nullptr;
    if (known_.size() > most_known) known_.clear();
    auto& known = known_[key];
    known = {frame.contents,
             std::make_shared<const Function>(std::move(fresh->function)),
             std::move(fresh->line_at),
             {}};
    return &known;
}

std::vector<Frame> KnownFunctions::frames_of(const Glance& glance, const Reader& read) {
    std::vector<Frame> frames;
    bool is_outermost_missing = false;
    for (auto seen = glance.frames.rbegin(); seen != glance.frames.rend(); ++seen) {
        is_outermost_missing |= seen->is_outermost_of_loop;
        auto* const of = known(*seen, read);
        if (!of) continue;
        const auto [line, is_new] = of->lines.try_emplace(seen->position, 0);
        if (is_new) line->second = of->line_at(seen->position).value_or(of->function->first_line);
        frames.push_back({of->function, line->second, std::exchange(is_outermost_missing, false)});
    }
    std::ranges::reverse(frames);
    return frames;
}

}  // namespace shadowprof::languages
