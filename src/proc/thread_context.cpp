#include "proc/thread_context.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "proc/tuning.h"

namespace shadowprof::proc {

namespace {

// The record: its fixed part, byte by byte.
constexpr std::size_t place_of_span = 16, place_of_valid = 24, place_of_size = 26,
                      size_of_fixed_part = 28;

std::size_t size_of_attributes(std::span<const std::byte> record) {
    std::uint16_t size = 0;
    std::memcpy(&size, &record[place_of_size], sizeof size);
    return size;
}

bool is_valid(std::span<const std::byte> record) {
    return record.size() >= size_of_fixed_part && record[place_of_valid] == std::byte{1} &&
           size_of_fixed_part + size_of_attributes(record) <= tuning::largest_thread_context;
}

}  // namespace

std::optional<ThreadContext> parse_thread_context(std::span<const std::byte> record) {
    if (!is_valid(record)) return {};
    const auto size = size_of_attributes(record);
    if (record.size() < size_of_fixed_part + size) return {};
    ThreadContext context;
    std::memcpy(context.trace.data(), record.data(), context.trace.size());
    std::memcpy(context.span.data(), &record[place_of_span], context.span.size());
    auto rest = record.subspan(size_of_fixed_part, size);
    // An entry that is not all there ends the list; of several of one key the last counts.
    while (rest.size() >= 2 && rest.size() - 2 >= static_cast<std::size_t>(rest[1])) {
        const auto key = static_cast<std::uint8_t>(rest[0]);
        const auto length = static_cast<std::size_t>(rest[1]);
        std::string value(length, '\0');
        if (length > 0) std::memcpy(value.data(), &rest[2], length);
        const auto known =
            std::ranges::lower_bound(context.attributes, key, {}, &ThreadContext::Attribute::key);
        if (known != context.attributes.end() && known->key == key)
            known->value = std::move(value);
        else
            context.attributes.insert(known, {key, std::move(value)});
        rest = rest.subspan(2 + length);
    }
    return context;
}

namespace {

struct Record {
    Address at;  // 0: none
    std::vector<std::byte> bytes;
    bool operator==(const Record&) const = default;
};

std::optional<Record> read_once(const Memory& memory, Address variable) {
    const auto pointer = memory.read_as<Address>(variable);
    if (!pointer) return {};
    Record record{*pointer, {}};
    if (pointer->value == 0) return record;
    // Mostly all there is; a page may end sooner.
    constexpr std::size_t usual = 128;
    record.bytes.resize(usual);
    record.bytes.resize(memory.read(*pointer, record.bytes));
    if (record.bytes.size() < size_of_fixed_part) return {};
    if (!is_valid(record.bytes)) return Record{};
    const auto size = size_of_fixed_part + size_of_attributes(record.bytes);
    const auto known = std::min(record.bytes.size(), size);
    record.bytes.resize(size);
    if (size > known &&
        memory.read(*pointer + known, std::span{record.bytes}.subspan(known)) != size - known)
        return {};
    return record;
}

}  // namespace

std::optional<std::vector<std::byte>> read_thread_context(const Memory& memory, Address variable,
                                                          bool is_stopped) {
    auto record = read_once(memory, variable);
    if (!record) return {};
    if (!is_stopped && read_once(memory, variable) != record) return {};
    return std::move(record->bytes);
}

namespace {

// Takes a message of protocol buffers apart, field by field.
class Fields {
  public:
    explicit Fields(std::span<const std::byte> message) : rest_(message) {}

    struct Field {
        std::uint64_t number = 0;
        std::span<const std::byte> bytes;  // of those that have a length
    };
    // Nothing at the end, and where it makes no sense.
    std::optional<Field> next() {
        const auto key = varint();
        if (!key) return {};
        Field field{*key >> 3, {}};
        switch (*key & 7) {
            case 0:
                return varint() ? std::optional(field) : std::nullopt;
            case 1:
                return take(8) ? std::optional(field) : std::nullopt;
            case 5:
                return take(4) ? std::optional(field) : std::nullopt;
            case 2: {
                const auto length = varint();
                const auto bytes = length ? take(*length) : std::nullopt;
                if (!bytes) return {};
                field.bytes = *bytes;
                return field;
            }
            default:
                return {};
        }
    }

  private:
    std::optional<std::uint64_t> varint() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
            const auto byte = static_cast<std::uint64_t>(rest_.front());
            rest_ = rest_.subspan(1);
            value |= (byte & 0x7f) << shift;
            if (!(byte & 0x80)) return value;
        }
        return {};
    }
    std::optional<std::span<const std::byte>> take(std::uint64_t size) {
        if (size > rest_.size()) return {};
        const auto part = rest_.first(size);
        rest_ = rest_.subspan(size);
        return part;
    }
    std::span<const std::byte> rest_;
};

std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Of opentelemetry.proto.common.v1. In a Resource, and in what may be around it, attributes are
// fields 1 or 2.
namespace field {
enum KeyValue : std::uint64_t { key = 1, value = 2 };
enum AnyValue : std::uint64_t { text = 1, array = 5 };
enum ArrayValue : std::uint64_t { item = 1 };
}  // namespace field

constexpr std::string_view key_of_names = "threadlocal.attribute_key_map";
constexpr std::size_t most_names = 256;

std::vector<std::string> names_in_value(std::span<const std::byte> value) {
    std::vector<std::string> names;
    Fields of_value{value};
    while (const auto list = of_value.next()) {
        if (list->number != field::array) continue;
        Fields of_list{list->bytes};
        while (const auto item = of_list.next()) {
            if (item->number != field::item || names.size() == most_names) continue;
            auto& name = names.emplace_back();  // empty if it is no text
            Fields of_item{item->bytes};
            while (const auto part = of_item.next())
                if (part->number == field::text) name = text_of(part->bytes);
        }
    }
    return names;
}

std::optional<std::vector<std::string>> names_in(std::span<const std::byte> message, int levels) {
    bool is_it = false;
    std::span<const std::byte> value;
    Fields fields{message};
    while (const auto part = fields.next()) {
        if (part->number == field::key && text_of(part->bytes) == key_of_names) is_it = true;
        if (part->number == field::value) value = part->bytes;
        if (levels > 0 && part->number <= 2)
            if (auto names = names_in(part->bytes, levels - 1)) return names;
    }
    if (is_it) return names_in_value(value);
    return {};
}

struct ProcessContext {
    std::array<char, 8> signature;
    std::uint32_t version, size;
    std::uint64_t published;  // when; 0: it is being written
    Address payload;
};

}  // namespace

std::optional<std::vector<std::string>> attribute_names_in(std::span<const std::byte> payload) {
    constexpr int levels = 2;
    return names_in(payload, levels);
}

std::optional<std::vector<std::string>> attribute_names(const Memory& memory, const Maps& maps) {
    for (const auto& mapping : maps.mappings()) {
        if (!mapping.path.starts_with("/memfd:OTEL_CTX") &&
            !mapping.path.starts_with("[anon_shmem:OTEL_CTX") &&
            !mapping.path.starts_with("[anon:OTEL_CTX"))
            continue;
        const auto header = memory.read_as<ProcessContext>(mapping.range.begin);
        if (!header ||
            std::string_view(header->signature.data(), header->signature.size()) != "OTEL_CTX")
            continue;
        if (header->version == 0 || header->version > 2 || header->published == 0 ||
            header->size > tuning::largest_process_context)
            continue;
        std::vector<std::byte> payload(header->size);
        if (memory.read(header->payload, payload) != payload.size()) continue;
        const auto again = memory.read_as<ProcessContext>(mapping.range.begin);
        if (!again || again->published != header->published) continue;
        if (auto names = attribute_names_in(payload)) return names;
    }
    return {};
}

}  // namespace shadowprof::proc
