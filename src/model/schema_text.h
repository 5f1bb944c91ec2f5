// Builds the text of a JSON schema.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shadowprof::model {

// {"$ref": "#/$defs/NAME"}
std::string schema_ref(std::string_view name);

// An object and its properties, in the order of the file.
class ObjectSchema {
  public:
    // What it has besides its own properties: a "$ref" to a definition of the schema.
    void extend(std::string_view definition) { extended_ = definition; }
    // `schema` is JSON; `about` is shown to readers of the schema, if there is anything to say.
    void add(std::string_view key, const std::string& schema, bool is_required,
             std::string_view about = {});
    std::string take() const;

  private:
    std::string extended_;
    std::vector<std::string> required_, properties_;
};

// Indented, with what is short on one line.
std::string pretty_json(std::string_view json);

}  // namespace shadowprof::model
