// objdump decodes the C library; we must find the same instructions: length, name, branch target,
// and the address that is meant by a rip-relative operand. Another object can be named in the
// environment: SHADOWPROF_TEST_OBJECT=/usr/lib/…/libx265.so test-decoder -tc=objdump*
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "assembly.h"

using namespace shadowprof;
using namespace shadowprof::decoder;

namespace {

// One line of objdump -d: address, bytes, text and comment.
struct Line {
    Address address;
    std::string bytes;
    std::string name;
    std::optional<Address> target;  // of a direct branch
    std::optional<Address> data;    // of a rip-relative operand
};

bool is_prefix_word(std::string_view word) {
    constexpr std::string_view words[] = {
        "rep", "repz", "repnz", "lock",   "bnd",    "cs",      "ds",       "es",
        "ss",  "fs",   "gs",    "data16", "addr32", "notrack", "xacquire", "xrelease"};
    return word.starts_with("rex") ||
           std::find(std::begin(words), std::end(words), word) != std::end(words);
}

std::string_view take_word(std::string_view& rest) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    const auto word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(word.size());
    return word;
}

std::optional<Address> hexadecimal_number(std::string_view text) {
    const std::string digits(text.substr(0, text.find_first_not_of("0123456789abcdef")));
    if (digits.empty()) return std::nullopt;
    return Address{std::strtoull(digits.c_str(), nullptr, 16)};
}

std::optional<Line> parse(std::string_view text) {
    const auto colon = text.find(":\t");
    const auto tab = colon == text.npos ? colon : text.find('\t', colon + 2);
    if (tab == text.npos) return std::nullopt;
    Line line;
    const auto address = text.substr(0, colon);
    line.address = hexadecimal_number(address.substr(address.find_first_not_of(' '))).value();
    line.bytes = text.substr(colon + 2, tab - colon - 2);
    while (line.bytes.ends_with(' ')) line.bytes.pop_back();
    auto rest = text.substr(tab + 1);
    auto word = take_word(rest);
    while (is_prefix_word(word)) word = take_word(rest);
    line.name = word.substr(0, word.find(','));  // "jne,pt"
    if (const auto comment = rest.find("        # "); comment != rest.npos)
        line.data = hexadecimal_number(rest.substr(comment + 10));
    const bool branches = word.starts_with("j") || word.starts_with("call") ||
                          word.starts_with("loop") || word == "xbegin";
    if (branches) line.target = hexadecimal_number(rest.substr(rest.find_first_not_of(' ')));
    return line;
}

// The same instruction under two names: objdump writes the predicate of a comparison, the halves of
// a carry-less multiplication and the size of a string instruction into or out of the name.
bool same_name(std::string_view objdump, std::string_view ours) {
    if (objdump == ours) return true;
    if (objdump == "movabs") return ours == "mov";
    if (objdump == "xchg") return ours == "nop";  // xchg ax, ax
    for (const std::string_view stem : {"cmp", "vcmp", "vpcmp", "pclmul", "vpclmul", "vpcom"})
        if (ours.starts_with(stem) && objdump.starts_with(stem) &&
            objdump.ends_with(ours.substr(stem.size())))
            return true;
    for (const std::string_view stem : {"movs", "cmps", "stos", "lods", "scas", "ins", "outs"})
        if (objdump == stem && ours.starts_with(stem)) return true;
    return false;
}

std::string path_of_c_library() {
    Dl_info info{};
    REQUIRE(dladdr(reinterpret_cast<void*>(&std::fclose), &info) != 0);
    return info.dli_fname;
}

struct Tally {
    std::size_t lines = 0;
    std::map<std::string, std::string> differences;  // one example of each
};

void compare(const Line& line, const std::string& text_of_objdump, Tally& tally) {
    if (line.name == "(bad)" || line.name.starts_with(".")) return;
    ++tally.lines;
    const auto bytes = bytes_of(line.bytes);
    const auto differs = [&](const std::string& how) {
        tally.differences.emplace(how + " of " + line.name, text_of_objdump);
    };
    const auto instruction = decode(bytes, line.address);
    if (!instruction) return differs("existence");
    if (instruction->length != bytes.size()) return differs("length");
    if (!same_name(line.name, mnemonic_name(*instruction))) return differs("name");
    if (line.target.value_or(Address{}) != instruction->target) return differs("target");
    if (line.data) {
        char digits[20];
        std::snprintf(digits, sizeof digits, "0x%lx", static_cast<unsigned long>(line.data->value));
        if (text(*instruction).find(digits) == std::string::npos) return differs("address");
    }
}

}  // namespace

TEST_CASE("objdump agrees") {
    const char* chosen = std::getenv("SHADOWPROF_TEST_OBJECT");
    const auto command = "objdump -d -w -M intel '" + (chosen ? chosen : path_of_c_library()) + "'";
    const std::unique_ptr<FILE, int (*)(FILE*)> objdump(popen(command.c_str(), "r"), pclose);
    REQUIRE(objdump);
    Tally tally;
    std::string text;
    for (char buffer[1024]; std::fgets(buffer, sizeof buffer, objdump.get());) {
        text = buffer;
        if (text.ends_with('\n')) text.pop_back();
        if (const auto line = parse(text)) compare(*line, text, tally);
    }
    for (const auto& entry : tally.differences)
        CHECK_MESSAGE(false, entry.first, ": ", entry.second);
    CHECK(tally.lines > 10'000);
}
