#include "base/sections.h"

#include <algorithm>
#include <array>

#include "base/address.h"
#include "base/wide.h"

namespace shadowprof {

namespace {

constexpr std::size_t step = 32;

std::uint64_t multiplied(std::uint64_t a, std::uint64_t b) {
    const auto product = Wide{a} * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::size_t padding_after(std::size_t size) {
    return -size % alignment_of_sections;
}

}  // namespace

// Four lanes, because a multiplication takes several cycles.
std::uint64_t checksum_of(std::string_view bytes, std::uint64_t seed) {
    std::array<std::uint64_t, 4> lanes{seed, ~seed, seed + bytes.size(), seed ^ bytes.size() << 32};
    constexpr std::array<std::uint64_t, 4> keys{0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9,
                                                0x94d049bb133111eb, 0xd6e8feb86659fd93};
    const auto add = [&](const char* from) {
        std::array<std::uint64_t, 4> words;
        std::memcpy(words.data(), from, step);
        for (std::size_t lane = 0; lane < 4; ++lane)
            lanes[lane] = multiplied(lanes[lane] ^ words[lane] ^ keys[lane], keys[3 - lane] | 1);
    };
    std::size_t at = 0;
    for (; at + step <= bytes.size(); at += step) add(bytes.data() + at);
    std::array<char, step> last{};
    std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end(), last.begin());
    add(last.data());
    std::uint64_t sum = bytes.size();
    for (const auto lane : lanes) sum = combine_hashes(sum, lane);
    return sum;
}

void SectionWriter::add_bytes(std::string_view bytes) {
    static constexpr std::array<char, alignment_of_sections> zeros{};
    using Head = std::array<std::uint64_t, 2>;
    const auto head = std::make_shared<const Head>(Head{bytes.size(), 0});
    kept_.push_back(head);
    sections_.push_back(bytes);
    parts_.emplace_back(reinterpret_cast<const char*>(head->data()), sizeof(Head));
    if (!bytes.empty()) parts_.push_back(bytes);
    if (const auto padding = padding_after(bytes.size()))
        parts_.emplace_back(zeros.data(), padding);
    size_ += sizeof(Head) + bytes.size() + padding_after(bytes.size());
}

std::uint64_t SectionWriter::checksum() const {
    std::uint64_t sum = 0;
    for (const auto section : sections_) sum = checksum_of(section, sum);
    return sum;
}

std::uint64_t SectionReader::checksum() const {
    std::uint64_t sum = 0;
    for (auto rest = *this; rest.is_sound_ && !rest.rest_.empty();)
        sum = checksum_of(rest.take_bytes(), sum);
    return sum;
}

std::string_view SectionReader::take_bytes() {
    std::array<std::uint64_t, 2> head{};
    is_sound_ = is_sound_ && rest_.size() >= sizeof head;
    if (!is_sound_) return {};
    std::memcpy(head.data(), rest_.data(), sizeof head);
    rest_.remove_prefix(sizeof head);
    is_sound_ = head[0] <= rest_.size() && head[0] + padding_after(head[0]) <= rest_.size();
    if (!is_sound_) return {};
    const auto bytes = rest_.substr(0, head[0]);
    rest_.remove_prefix(head[0] + padding_after(head[0]));
    return bytes;
}

}  // namespace shadowprof
