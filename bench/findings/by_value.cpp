// Containers that are passed by value although the callees only read them.
//   by_value [ROUNDS]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace {

std::uint64_t state = 0x9e3779b97f4a7c15;
std::uint64_t draw() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

[[gnu::noinline]] double interpolate(std::vector<double> table, double at) {
    const auto i = static_cast<std::size_t>(at);
    return table[i] + (table[i + 1] - table[i]) * (at - static_cast<double>(i));
}

[[gnu::noinline]] std::size_t hash_of(std::string text, std::size_t seed) {
    std::size_t hash = seed;
    for (std::size_t i = 0; i < text.size(); i += 16)
        hash = hash * 31 + static_cast<unsigned char>(text[i]);
    return hash;
}

[[gnu::noinline]] int price_of(std::map<int, int> prices, int what) {
    const auto found = prices.upper_bound(what);
    return found == prices.end() ? 0 : found->second;
}

}  // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 100000;
    std::vector<double> table(1200);
    for (auto& value : table) value = static_cast<double>(draw() >> 40);
    std::string text(300, 'x');
    std::map<int, int> prices;
    for (int i = 0; i < 12; ++i) prices[static_cast<int>(draw() % 1000)] = i;
    double sum = 0;
    std::size_t hash = 0;
    for (int round = 0; round < rounds; ++round) {
        const auto drawn = draw();
        sum += interpolate(table, static_cast<double>(drawn % 1190));     // PLANTED temporary-copy
        for (int i = 0; i < 4; ++i) hash += hash_of(text, drawn + hash);  // PLANTED temporary-copy
        if (drawn >> 63)
            sum += price_of(prices, static_cast<int>(drawn % 1000));  // PLANTED temporary-copy
    }
    std::printf("%d\n", (sum > 0) + static_cast<int>(hash & 1));
}
