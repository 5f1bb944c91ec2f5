// Ordered containers that are only ever asked for one key.
//   looked_up [ROUNDS]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
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

[[gnu::noinline]] int known(const std::set<std::uint64_t>& seen, std::uint64_t key) {
    return seen.find(key) != seen.end();  // PLANTED ordered-lookup
}

[[gnu::noinline]] void count(std::map<std::string, int>& words, const std::string& word) {
    ++words[word];  // PLANTED ordered-lookup
}

}  // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 100000;
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 50000; ++i) seen.insert(draw() % 100000);
    std::vector<std::string> vocabulary;
    for (int i = 0; i < 2000; ++i) vocabulary.push_back("word" + std::to_string(draw() % 1000000));
    std::map<std::string, int> words;
    int sum = 0;
    for (int round = 0; round < rounds; ++round) {
        const auto drawn = draw();
        sum += known(seen, drawn % 100000);
        count(words, vocabulary[(drawn >> 32) % vocabulary.size()]);
    }
    std::printf("%d %zu\n", sum > 0, words.size());
}
