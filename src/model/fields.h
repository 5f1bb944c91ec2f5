// A table of fields says once what a struct consists of; the writer, the reader and the schema of
// its JSON object follow from it:
//
//     static constexpr auto fields() {
//         return std::tuple(field("cpu", &Host::cpu), field("cores", &Host::cores));
//     }
//
// Entries and sections of profiles have tables of the fields in entry_fields.h, which also know how
// profiles are merged, checked and renumbered.
#pragma once

#include <string_view>
#include <tuple>
#include <utility>

#include "model/json_values.h"

namespace shadowprof::model {

// What a field keeps while its object is being read, if it needs to.
struct NothingToKeep {};

template <class Owner, class T, class Codec>
struct Field {
    std::string_view key;
    T Owner::*member;
    std::string_view description = {};
    bool must_be_there = true;
    bool is_omitted_if_empty = false;

    // Files of earlier versions lack it.
    constexpr Field optional() const {
        auto changed = *this;
        changed.must_be_there = false;
        return changed;
    }
    constexpr Field unless_empty() const {
        auto changed = optional();
        changed.is_omitted_if_empty = true;
        return changed;
    }
    constexpr Field about(std::string_view text) const {
        auto changed = *this;
        changed.description = text;
        return changed;
    }

    template <class Object, class... Context>
    void write(JsonOutput& out, const Object& object, const Context&...) const {
        const auto& value = object.*member;
        if (is_omitted_if_empty && value == T{}) return;
        Codec::write(out.key(key), value);
    }
    NothingToKeep begin_reading() const { return {}; }
    template <class Object>
    auto keys(JsonCursor& in, Object& object, NothingToKeep&) const {
        const auto read = [&in, &value = object.*member] { Codec::read(in, value); };
        return std::tuple(JsonKey<decltype(read)>{key, must_be_there, read});
    }
    template <class Object>
    void end_reading(JsonCursor&, Object&, NothingToKeep&) const {}
    void describe(ObjectSchema& schema) const {
        schema.add(key, Codec::schema(), must_be_there, description);
    }
};

template <class Codec, class Owner, class T>
constexpr auto field(std::string_view key, T Owner::*member) {
    return Field<Owner, T, Codec>{key, member};
}
template <class Owner, class T>
constexpr auto field(std::string_view key, T Owner::*member) {
    return Field<Owner, T, Json<T>>{key, member};
}

// Calls `use` with each field of a table.
template <class Fields, class Use>
constexpr void for_each_field(const Fields& fields, Use use) {
    std::apply([&](const auto&... field) { (use(field), ...); }, fields);
}

// `context` is what the fields need to know besides: the section that an entry is in.
template <class Owner, class... Context>
void write_members(JsonOutput& out, const Owner& owner, const Context&... context) {
    for_each_field(Owner::fields(), [&](const auto& f) { f.write(out, owner, context...); });
}

template <class Owner>
void write_object(JsonOutput& out, const Owner& owner) {
    out.open_object();
    write_members(out, owner);
    out.close_object();
}

template <class Owner>
void read_object(JsonCursor& in, Owner& owner) {
    static constexpr auto fields = Owner::fields();
    auto kept =
        std::apply([](const auto&... f) { return std::tuple(f.begin_reading()...); }, fields);
    [&]<std::size_t... i>(std::index_sequence<i...>) {
        std::apply([&](auto... keys) { in.object(keys...); },
                   std::tuple_cat(std::get<i>(fields).keys(in, owner, std::get<i>(kept))...));
        (std::get<i>(fields).end_reading(in, owner, std::get<i>(kept)), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<decltype(fields)>>());
}

template <class Owner>
void describe_members(ObjectSchema& schema) {
    for_each_field(Owner::fields(), [&](const auto& f) { f.describe(schema); });
}

template <class Owner>
std::string schema_of_object() {
    ObjectSchema schema;
    describe_members<Owner>(schema);
    return schema.take();
}

}  // namespace shadowprof::model
