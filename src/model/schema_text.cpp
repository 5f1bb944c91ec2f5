#include "model/schema_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace shadowprof::model {

namespace {

constexpr std::size_t longest_line = 100;

// Where the item that begins at `from` ends: at a comma or closing bracket of its own depth.
std::size_t end_of_item(std::string_view json, std::size_t from) {
    int depth = 0;
    bool in_string = false;
    for (auto at = from; at < json.size(); ++at) {
        const char c = json[at];
        if (in_string) {
            if (c == '\\')
                ++at;
            else if (c == '"')
                in_string = false;
            continue;
        }
        if (c == '"') in_string = true;
        if (c == '{' || c == '[') ++depth;
        if ((c == '}' || c == ']') && depth-- == 0) return at;
        if (c == ',' && depth == 0) return at;
    }
    return json.size();
}

void write_pretty(std::string& out, std::string_view json, std::size_t indent, std::size_t used) {
    const auto bracket = json.find_first_of("{[");
    const auto first_string = json.find('"');
    const bool is_key = first_string == 0;
    const auto key_end = is_key ? json.find("\": ") : json.npos;
    if (used + json.size() <= longest_line || bracket == json.npos ||
        (is_key && key_end == json.npos)) {
        out += json;
        return;
    }
    out += json.substr(0, bracket + 1);
    const std::string margin(indent + 2, ' ');
    auto at = bracket + 1;
    while (true) {
        const auto end = end_of_item(json, at);
        out += "\n" + margin;
        write_pretty(out, json.substr(at, end - at), indent + 2, indent + 3);
        if (json[end] != ',') {
            out += "\n" + std::string(indent, ' ') + std::string(json.substr(end));
            return;
        }
        out += ",";
        at = json.find_first_not_of(' ', end + 1);
    }
}

}  // namespace

std::string schema_ref(std::string_view name) {
    return fmt::format(R"({{"$ref": "#/$defs/{}"}})", name);
}

void ObjectSchema::add(std::string_view key, const std::string& schema, bool is_required,
                       std::string_view about) {
    if (is_required) required_.push_back(fmt::format("\"{}\"", key));
    properties_.push_back(about.empty() ? fmt::format(R"("{}": {})", key, schema)
                                        : fmt::format(R"("{}": {{"description": "{}", {})", key,
                                                      about, schema.substr(1)));
}

std::string ObjectSchema::take() const {
    std::string text = extended_.empty() ? R"({"type": "object")"
                                         : fmt::format(R"({{"$ref": "#/$defs/{}")", extended_);
    if (!required_.empty())
        text += fmt::format(R"(, "required": [{}])", fmt::join(required_, ", "));
    if (!properties_.empty())
        text += fmt::format(R"(, "properties": {{{}}})", fmt::join(properties_, ", "));
    return text + "}";
}

std::string pretty_json(std::string_view json) {
    std::string out;
    write_pretty(out, json, 0, 0);
    return out + "\n";
}

}  // namespace shadowprof::model
