#include "model/profile_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/input_file.h"
#include "base/output_file.h"
#include "model/utf8.h"

namespace shadowprof::model {

namespace {

constexpr std::size_t largest_file = std::size_t{4} << 30;

template <class T>
void write_line(JsonOutput& out, std::string_view key, const T& value) {
    out.line(key);
    Json<T>::write(out, value);
}

// An item a line.
template <class T>
void write_lines(JsonOutput& out, std::string_view key, const std::vector<T>& items) {
    out.line(key).open_array();
    for (const auto& item : items) {
        out.break_line();
        Json<T>::write(out, item);
    }
    out.break_line();
    out.close_array();
}

void write_parts(JsonOutput& out, const std::vector<Part>& parts) {
    out.line("parts").open_array();
    for (const auto& part : parts) {
        out.break_line();
        out.open_object();
        Json<Coverage>::write(out.key("coverage"), part.coverage);
        for (const auto& section : part.sections) section->write(out.key(section->key()));
        out.close_object();
    }
    out.break_line();
    out.close_array();
}

template <class T>
auto value(JsonCursor& in, std::string_view key, T& into) {
    return required(key, [&in, &into] { Json<T>::read(in, into); });
}

Profile read(JsonCursor& in, SectionTypes types) {
    Profile p;
    const auto schema = [&] {
        if (in.text() != schema_name) in.fail(fmt::format("\"schema\" is not {}", schema_name));
    };
    const auto version = [&] {
        const auto found = in.number();
        if (found != schema_version)
            in.fail(fmt::format("version {} of the format; this shadowprof reads version {}", found,
                                schema_version));
    };
    const auto into = [&](Sections& sections) {
        return [&](const std::string& key) {
            const auto type = std::find_if(types.begin(), types.end(),
                                           [&](const auto& known) { return known.key == key; });
            if (type == types.end()) return false;
            if (sections.find(key)) in.fail_twice(key);
            sections.put(type->make()).read(in);
            return true;
        };
    };
    const auto part = [&] {
        auto& read = p.parts.emplace_back();
        in.object_and(into(read.sections), value(in, "coverage", read.coverage));
        read.sections.put_in_order(types);
    };
    in.object_and(
        into(p.sections), required("schema", schema), required("version", version),
        value(in, "tool", p.tool), value(in, "host", p.host),
        optional("hosts", [&] { Json<std::vector<Host>>::read(in, p.hosts); }),
        value(in, "targets", p.targets), value(in, "run", p.run), value(in, "cost", p.cost),
        value(in, "coverage", p.coverage),
        optional("processes", [&] { Json<std::vector<Process>>::read(in, p.processes); }),
        optional("other_processes", [&] { Json<OtherProcesses>::read(in, p.other_processes); }),
        optional("parts", [&] { in.array(part); }), value(in, "modules", p.modules),
        value(in, "locations", p.locations));
    in.end();
    p.sections.put_in_order(types);
    if (const auto defect = defect_of(p)) throw JsonError(*defect);
    return p;
}

// Definitions that several parts of the schema refer to.
void define(ObjectSchema& definitions) {
    const auto number = [](const char* most) {
        return fmt::format(R"({{"type": "integer", "minimum": 0, "maximum": {}}})", most);
    };
    definitions.add("count", number("18446744073709551615"), false);
    definitions.add("index", number("4294967295"), false);
    definitions.add("indices",
                    R"({"type": "array", "items": {"$ref": "#/$defs/index"}, "minItems": 1})",
                    false);
    definitions.add("hex64", R"({"type": "string", "pattern": "^0x[0-9a-fA-F]{1,16}$"})", false);
    definitions.add("hex128", R"({"type": "string", "pattern": "^0x[0-9a-fA-F]{1,32}$"})", false);
    definitions.add("share", R"({"type": "number", "minimum": 0, "maximum": 1})", false);

    ObjectSchema totals;
    totals.add("total", schema_ref("count"), true);
    totals.add("unknown", schema_ref("count"), true, "part of the total that has no entry");
    totals.add("exhaustive", Json<bool>::schema(), true, "nothing is estimated");
    totals.add("samples", schema_ref("count"), true);
    totals.add("total_squares", schema_ref("hex128"), true);
    definitions.add("totals", totals.take(), false);

    ObjectSchema hotlist;
    hotlist.extend("totals");
    hotlist.add("dropped", schema_ref("count"), false, "entries that --limit cut off");
    hotlist.add("entries", R"({"type": "array"})", true);
    definitions.add("hotlist", hotlist.take(), false);

    ObjectSchema counted, statistics;
    statistics.add("read", schema_ref("count"), false);
    statistics.add("samples", schema_ref("count"), true);
    statistics.add("squares", schema_ref("hex128"), true);
    statistics.add("products", schema_ref("hex128"), true);
    counted.add("count", schema_ref("count"), true);
    counted.add("share", schema_ref("share"), true);
    counted.add("interval",
                R"({"type": "array", "items": {"$ref": "#/$defs/share"}, "minItems": 2, )"
                R"("maxItems": 2})",
                true);
    counted.add("stats", statistics.take(), true);
    definitions.add("counted", counted.take(), false);
}

// The properties of `object` alone: {…} without what surrounds them.
std::string properties_of(const ObjectSchema& object) {
    static constexpr std::string_view before = R"({"type": "object", "properties": )";
    const auto text = object.take();
    return text.substr(before.size(), text.size() - before.size() - 1);
}

}  // namespace

std::string to_json(const Profile& p) {
    JsonOutput out;
    out.open_object();
    out.line("schema").text(schema_name);
    out.line("version").number(schema_version);
    out.line("tool").text(p.tool);
    write_line(out, "host", p.host);
    if (!p.hosts.empty()) write_lines(out, "hosts", p.hosts);
    write_lines(out, "targets", p.targets);
    write_line(out, "run", p.run);
    write_line(out, "cost", p.cost);
    write_line(out, "coverage", p.coverage);
    if (!p.processes.empty()) {
        write_lines(out, "processes", p.processes);
        write_line(out, "other_processes", p.other_processes);
    }
    write_lines(out, "modules", p.modules);
    write_lines(out, "locations", p.locations);
    for (const auto& section : p.sections) section->write(out.line(section->key()));
    if (!p.parts.empty()) write_parts(out, p.parts);
    out.break_line();
    out.close_object();
    return out.take() + "\n";
}

void write_profile(const Profile& profile, const std::string& path) {
    write_file(path, to_json(profile));
}

Profile from_json(std::string_view json, SectionTypes types) {
    JsonCursor in(json);
    return read(in, types);
}

Profile read_profile(const std::string& path, SectionTypes types) {
    const std::string text = read_whole_file(path, largest_file);
    try {
        return from_json(text, types);
    } catch (const JsonError& e) {
        throw UserError(fmt::format("{}: not a shadowprof profile: {}", path, printable(e.what())));
    }
}

std::string profile_schema(SectionTypes types) {
    ObjectSchema profile, definitions;
    profile.add("schema", fmt::format(R"({{"const": "{}"}})", schema_name), true);
    profile.add("version", fmt::format(R"({{"const": {}}})", schema_version), true);
    profile.add("tool", Json<std::string>::schema(), true);
    profile.add("host", Json<Host>::schema(), true);
    profile.add("hosts", Json<std::vector<Host>>::schema(), false,
                "of a merged profile: each machine");
    profile.add("targets", Json<std::vector<Target>>::schema(), true);
    profile.add("run", Json<Run>::schema(), true);
    profile.add("cost", Json<Cost>::schema(), true);
    profile.add("coverage", Json<Coverage>::schema(), true);
    profile.add("processes", Json<std::vector<Process>>::schema(), false,
                "if there was more than one");
    profile.add("other_processes", Json<OtherProcesses>::schema(), false,
                "too short to be told of one by one");
    profile.add("modules", Json<std::vector<Module>>::schema(), true);
    profile.add("locations", Json<std::vector<Location>>::schema(), true);
    for (const auto& type : types) profile.add(type.key, type.make()->schema(), false);
    profile.add("parts", R"({"type": "array", "items": {"$ref": "#/$defs/part"}})", false,
                "what was seen of one process of several, or of several of one program");
    ObjectSchema part;
    part.add("coverage", Json<Coverage>::schema(), true);
    for (const auto& type : types)
        part.add(type.key, fmt::format(R"({{"$ref": "#/properties/{}"}})", type.key), false);
    definitions.add("part", part.take(), false);
    define(definitions);
    const auto object = profile.take();
    return pretty_json(
        R"({"$schema": "https://json-schema.org/draft/2020-12/schema", )"
        R"("title": "shadowprof profile", )"
        R"("description": "What shadowprof-profile(5) describes. Readers must ignore keys they do )"
        R"(not know.", )" +
        object.substr(1, object.size() - 2) + R"(, "$defs": )" + properties_of(definitions) + "}");
}

}  // namespace shadowprof::model
