// Reads JSON text front to back, item by item, into whatever the caller has: no tree is built, so
// a file costs no more memory than what it describes, and nothing in it can exhaust the stack
// (what is skipped is skipped without recursion; what is read is as deep as its reader).
// Every way in which the text disappoints is a JsonError that names the line.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/wide.h"

namespace shadowprof::model {

struct JsonError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// One key of an object and what reads its value. Made by required() and optional().
template <class Read>
struct JsonKey {
    std::string_view name;
    bool is_required;
    Read read;
};
template <class Read>
JsonKey<Read> required(std::string_view name, Read read) {
    return {name, true, read};
}
template <class Read>
JsonKey<Read> optional(std::string_view name, Read read) {
    return {name, false, read};
}

class JsonCursor {
  public:
    explicit JsonCursor(std::string_view text) : text_(text) {}

    // Keys not named are skipped: files of later versions add some.
    template <class... Read>
    void object(JsonKey<Read>... keys) {
        object_and([](const std::string&) { return false; }, keys...);
    }
    // Keys not named are offered to `others`, which says whether it has read the value.
    template <class Others, class... Read>
    void object_and(Others others, JsonKey<Read>... keys) {
        static_assert(sizeof...(keys) <= 32);
        std::uint32_t seen = 0;
        each_key([&](const std::string& name) {
            bool known = false;
            std::uint32_t bit = 1;
            const auto offer = [&](auto& key) {
                if (!known && key.name == name) {
                    known = true;
                    if (seen & bit) fail_twice(name);
                    seen |= bit;
                    key.read();
                }
                bit <<= 1;
            };
            (offer(keys), ...);
            if (!known && !others(name)) skip();
        });
        std::uint32_t bit = 1;
        const auto demand = [&](const auto& key) {
            if (key.is_required && !(seen & bit)) fail_missing(key.name);
            bit <<= 1;
        };
        (demand(keys), ...);
    }

    // Calls `read` with each key; it reads the value.
    template <class Read>
    void each_key(Read read) {
        expect('{', "an object");
        if (take_if('}')) return;
        do {
            const std::string name = text();
            expect(':', "a colon");
            read(name);
        } while (take_if(','));
        expect('}', "a comma or the end of the object");
    }

    template <class Read>
    void array(Read read) {
        expect('[', "an array");
        if (take_if(']')) return;
        do {
            read();
        } while (take_if(','));
        expect(']', "a comma or the end of the array");
    }

    std::string text();
    std::uint64_t number(std::uint64_t most = ~std::uint64_t{0});
    std::uint32_t small_number() { return static_cast<std::uint32_t>(number(0xffffffff)); }
    std::int64_t signed_number();
    double real();
    bool boolean();
    bool null_if_there();
    std::uint64_t hex64();
    Wide hex128();
    void skip();
    void end();  // nothing may follow

    [[noreturn]] void fail(const std::string& why) const;
    [[noreturn]] void fail_twice(const std::string& key) const;

  private:
    [[noreturn]] void fail_missing(std::string_view key) const;
    void skip_space();
    void expect(char c, const char* what);
    bool take_if(char c);
    bool take_word(std::string_view word);
    std::string_view number_token();
    Wide hex(std::size_t most_digits);
    void append_escape(std::string& to);
    std::uint32_t four_hex_digits();

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace shadowprof::model
