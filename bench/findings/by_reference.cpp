// Nothing to find: containers go by reference or are moved, copies are kept, lines are written
// together, and divisors are no powers of two.
//   by_reference [ROUNDS]
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace {

std::uint64_t state = 0x9e3779b97f4a7c15;
std::uint64_t draw() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

[[gnu::noinline]] double interpolate(const std::vector<double>& table, double at) {
    const auto i = static_cast<std::size_t>(at);
    return table[i] + (table[i + 1] - table[i]) * (at - static_cast<double>(i));
}

[[gnu::noinline]] std::size_t keep(std::vector<std::vector<double>>& rows,
                                   std::vector<double> row) {
    rows[draw() % rows.size()] = std::move(row);
    return rows.size();
}

}  // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 100000;
    std::vector<double> table(1200);
    for (auto& value : table) value = static_cast<double>(draw() >> 40);
    std::vector<std::vector<double>> rows(1000);
    std::size_t sum = 0;
    for (int round = 0; round < rounds; ++round) {
        const auto drawn = draw();
        std::vector<double> row;
        for (int i = 0; i < 40; ++i)
            row.push_back(interpolate(table, static_cast<double>((drawn >> i % 13) % 1190)));
        sum += keep(rows, std::move(row));
        std::string name = "row";
        name += std::to_string(drawn % 1000000) + " of many that have names";
        sum += name.size() % (3 + drawn % 50);
        if (round % 4 == 0) std::cout << name << ' ' << sum << '\n';
    }
}
