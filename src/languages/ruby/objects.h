// CRuby's objects: code, methods, texts, and the names of classes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "languages/memory.h"
#include "languages/ruby/layout.h"
#include "languages/structures.h"

namespace shadowprof::languages::ruby {

// What the interpreter makes for itself.
enum class Internal : std::uint8_t { special_variables = 2, method = 6, code = 7 };
inline constexpr std::size_t internal_size = 40;
bool is_internal(std::span<const std::byte> object, Internal kind);

// What tells a function's code from other code that may come to be at its place.
struct CodeFacts {
    Address body, encoded, path, base_label, label, lines, line_index;
    std::uint32_t words = 0, first_line = 0, line_count = 0;
    std::uint64_t hash() const;
};
// The object's part that has the rest of it. Nothing: this is no code.
std::optional<Address> body_of_code(std::span<const std::byte> object);
std::optional<CodeFacts> code_facts(const Layout& layout, Address body,
                                    std::span<const std::byte> of_body);

struct MethodFacts {
    Address definition, owner;
    std::uint64_t hash() const;
};
// Nothing: this is no method.
std::optional<MethodFacts> method_facts(std::span<const std::byte> object);
// What a frame has for its method may be wrapped.
std::optional<Address> wrapped_method(std::span<const std::byte> object);

// Reads names, which takes its time.
class Names {
  public:
    Names(const Memory& memory, const Layout& layout, Address symbols)
        : memory_(memory), layout_(layout), symbols_(symbols) {}

    // In UTF-8; nothing if it is no text, or none that names something.
    std::optional<std::string> text(Address at) const;
    std::optional<Address> element(Address array, std::uint64_t n) const;
    // Of a file, which may come with its full name.
    std::optional<std::string> path(Address at) const;
    std::optional<std::string> symbol(std::uint64_t id) const;
    // Nothing: it has no name.
    struct Owner {
        std::string name;
        bool is_singleton = false;
    };
    std::optional<Owner> owner(Address type) const;
    // What a method is called where it is defined.
    std::optional<std::string> method(Address definition) const;

  private:
    std::optional<std::string> type_name(Address type) const;
    std::optional<Address> type_field(Address type, std::uint64_t offset,
                                      std::string_view variable) const;

    const Memory& memory_;
    const Layout& layout_;
    const Address symbols_;
};

// "Shape#area", "Shape.make", "area" where nobody knows whose it is.
std::string qualified(const std::optional<Names::Owner>& owner, const std::string& method);

}  // namespace shadowprof::languages::ruby
