// How a C++ value looks in a JSON file: written, read, and described in the schema. A codec has
// three static functions: write(out, value), read(in, value) and schema(), which returns JSON.
// Json<T> is the codec of a type; others, such as Hex, are chosen by the table of fields.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/json_cursor.h"
#include "model/json_output.h"
#include "model/schema_text.h"

namespace shadowprof::model {

template <class Owner>
void write_object(JsonOutput& out, const Owner& owner);
template <class Owner>
void read_object(JsonCursor& in, Owner& owner);
template <class Owner>
std::string schema_of_object();

// By default: a struct with a table of fields.
template <class T>
struct Json {
    static void write(JsonOutput& out, const T& value) { write_object(out, value); }
    static void read(JsonCursor& in, T& value) { read_object(in, value); }
    static std::string schema() { return schema_of_object<T>(); }
};

template <>
struct Json<std::string> {
    static void write(JsonOutput& out, const std::string& text) { out.text(text); }
    static void read(JsonCursor& in, std::string& text) { text = in.text(); }
    static std::string schema() { return R"({"type": "string"})"; }
};
template <>
struct Json<bool> {
    static void write(JsonOutput& out, bool b) { out.boolean(b); }
    static void read(JsonCursor& in, bool& b) { b = in.boolean(); }
    static std::string schema() { return R"({"type": "boolean"})"; }
};
template <>
struct Json<std::uint64_t> {
    static void write(JsonOutput& out, std::uint64_t n) { out.number(n); }
    static void read(JsonCursor& in, std::uint64_t& n) { n = in.number(); }
    static std::string schema() { return schema_ref("count"); }
};
template <>
struct Json<std::uint32_t> {
    static void write(JsonOutput& out, std::uint32_t n) { out.number(n); }
    static void read(JsonCursor& in, std::uint32_t& n) { n = in.small_number(); }
    static std::string schema() { return schema_ref("index"); }
};
template <>
struct Json<std::int64_t> {
    static void write(JsonOutput& out, std::int64_t n) { out.signed_number(n); }
    static void read(JsonCursor& in, std::int64_t& n) { n = in.signed_number(); }
    static std::string schema() { return R"({"type": "integer"})"; }
};
template <>
struct Json<double> {
    static void write(JsonOutput& out, double d) { out.real(d); }
    static void read(JsonCursor& in, double& d) { d = in.real(); }
    static std::string schema() { return R"({"type": "number"})"; }
};

// Six digits, for what is derived from integers beside it.
struct Rounded : Json<double> {
    static void write(JsonOutput& out, double d) { out.rounded(d); }
};

struct Hex {
    static void write(JsonOutput& out, std::uint64_t n) { out.hex(n); }
    static void read(JsonCursor& in, std::uint64_t& n) { n = in.hex64(); }
    static std::string schema() { return schema_ref("hex64"); }
};
struct WideHex {
    static void write(JsonOutput& out, Wide n) { out.hex(n); }
    static void read(JsonCursor& in, Wide& n) { n = in.hex128(); }
    static std::string schema() { return schema_ref("hex128"); }
};

template <class Item>
struct ListOf {
    template <class T>
    static void write(JsonOutput& out, const std::vector<T>& items) {
        out.open_array();
        for (const auto& item : items) Item::write(out, item);
        out.close_array();
    }
    template <class T>
    static void read(JsonCursor& in, std::vector<T>& items) {
        // An empty string takes three bytes of the file and ten times that in memory; no command
        // line or list of warnings is that long.
        constexpr std::size_t most_strings = 1 << 20;
        in.array([&] {
            if (std::is_same_v<T, std::string> && items.size() == most_strings)
                in.fail("too many strings in an array");
            Item::read(in, items.emplace_back());
        });
        items.shrink_to_fit();
    }
    static std::string schema() { return R"({"type": "array", "items": )" + Item::schema() + "}"; }
};
template <class T>
struct Json<std::vector<T>> : ListOf<Json<T>> {};

template <class T>
struct Json<std::map<std::string, T>> {
    static void write(JsonOutput& out, const std::map<std::string, T>& values) {
        out.open_object();
        for (const auto& [key, value] : values) Json<T>::write(out.key(key), value);
        out.close_object();
    }
    static void read(JsonCursor& in, std::map<std::string, T>& values) {
        in.each_key([&](const std::string& key) {
            T value{};
            Json<T>::read(in, value);
            if (!values.emplace(key, std::move(value)).second) in.fail_twice(key);
        });
    }
    static std::string schema() {
        return R"({"type": "object", "additionalProperties": )" + Json<T>::schema() + "}";
    }
};

// Written as null if it is not set.
template <>
struct Json<std::optional<std::string>> {
    static void write(JsonOutput& out, const std::optional<std::string>& text) {
        text ? out.text(*text) : out.null();
    }
    static void read(JsonCursor& in, std::optional<std::string>& text) {
        if (!in.null_if_there()) text = in.text();
    }
    static std::string schema() { return R"({"type": ["string", "null"]})"; }
};
template <>
struct Json<std::optional<std::int32_t>> {
    static void write(JsonOutput& out, const std::optional<std::int32_t>& n) {
        n ? out.signed_number(*n) : out.null();
    }
    static void read(JsonCursor& in, std::optional<std::int32_t>& n) {
        if (!in.null_if_there()) n = static_cast<std::int32_t>(in.number(0x7fffffff));
    }
    static std::string schema() { return R"({"type": ["integer", "null"], "minimum": 0})"; }
};

// Of an optional value whose key is left out if it is not set.
template <class Value>
struct IfSet {
    template <class T>
    static void write(JsonOutput& out, const std::optional<T>& value) {
        Value::write(out, *value);
    }
    template <class T>
    static void read(JsonCursor& in, std::optional<T>& value) {
        Value::read(in, value.emplace());
    }
    static std::string schema() { return Value::schema(); }
};

template <class Kind>
constexpr std::string_view name_of(Kind kind) {
    for (const auto& [known, name] : names_of(Kind{}))
        if (known == kind) return name;
    return "?";
}

// An enumeration by the names in its table: `names_of(Kind)` returns an array of pairs.
template <class Kind>
struct Named {
    static void write(JsonOutput& out, Kind kind) { out.text(name_of(kind)); }
    static void read(JsonCursor& in, Kind& kind) {
        const auto text = in.text();
        for (const auto& [known, name] : names_of(Kind{})) {
            if (name != text) continue;
            kind = known;
            return;
        }
        in.fail("an unknown kind");
    }
    static std::string schema() {
        std::string all;
        for (const auto& [kind, name] : names_of(Kind{}))
            all += (all.empty() ? "\"" : ", \"") + std::string(name) + "\"";
        return R"({"enum": [)" + all + "]}";
    }
};

}  // namespace shadowprof::model
