// Reads what `export --format pprof` writes, as far as tests ask for it.
#pragma once

#include <doctest/doctest.h>
#include <zlib.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace shadowprof::report {

inline std::string gunzipped(std::string packed) {
    z_stream stream{};
    constexpr int gzip_format = 15 + 16;
    REQUIRE(inflateInit2(&stream, gzip_format) == Z_OK);
    stream.next_in = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_in = static_cast<uInt>(packed.size());
    std::string text(1 << 20, '\0');
    stream.next_out = reinterpret_cast<Bytef*>(text.data());
    stream.avail_out = static_cast<uInt>(text.size());
    REQUIRE(inflate(&stream, Z_FINISH) == Z_STREAM_END);
    text.resize(stream.total_out);
    inflateEnd(&stream);
    return text;
}

// The fields of one message, by number: varints, and bytes.
class ProtobufFields {
  public:
    explicit ProtobufFields(std::string_view bytes) {
        while (!bytes.empty()) {
            const auto key = varint(bytes);
            const auto field = static_cast<unsigned>(key >> 3);
            if ((key & 7) == 0) {
                numbers_[field] = varint(bytes);
                continue;
            }
            REQUIRE((key & 7) == 2);
            const auto size = varint(bytes);
            REQUIRE(size <= bytes.size());
            messages_[field].emplace_back(bytes.substr(0, size));
            bytes.remove_prefix(size);
        }
    }
    std::uint64_t number(unsigned field) const {
        const auto found = numbers_.find(field);
        return found == numbers_.end() ? 0 : found->second;
    }
    const std::vector<std::string>& all(unsigned field) const {
        static const std::vector<std::string> none;
        const auto found = messages_.find(field);
        return found == messages_.end() ? none : found->second;
    }
    static std::vector<std::uint64_t> packed(std::string_view bytes) {
        std::vector<std::uint64_t> numbers;
        while (!bytes.empty()) numbers.push_back(varint(bytes));
        return numbers;
    }

  private:
    static std::uint64_t varint(std::string_view& bytes) {
        std::uint64_t value = 0;
        for (unsigned shift = 0;; shift += 7) {
            REQUIRE(!bytes.empty());
            const auto byte = static_cast<unsigned char>(bytes.front());
            bytes.remove_prefix(1);
            value |= std::uint64_t{byte & 0x7fu} << shift;
            if (byte < 0x80) return value;
        }
    }
    std::map<unsigned, std::uint64_t> numbers_;
    std::map<unsigned, std::vector<std::string>> messages_;
};

struct PprofSample {
    std::vector<std::string> functions;  // innermost first
    std::vector<std::uint64_t> values;
    std::map<std::string, std::string> labels;
};

struct PprofProfile {
    std::vector<std::string> types;  // "time/nanoseconds"
    std::string default_type, period_type;
    std::uint64_t time = 0, duration = 0, period = 0;
    std::vector<PprofSample> samples;

    explicit PprofProfile(const std::string& file) {
        const ProtobufFields profile{gunzipped(file)};
        const auto& strings = profile.all(6);
        const auto type = [&](const std::string& bytes) {
            const ProtobufFields fields{bytes};
            return strings.at(fields.number(1)) + "/" + strings.at(fields.number(2));
        };
        for (const auto& bytes : profile.all(1)) types.push_back(type(bytes));
        for (const auto& bytes : profile.all(11)) period_type = type(bytes);
        default_type = strings.at(profile.number(14));
        time = profile.number(9);
        duration = profile.number(10);
        period = profile.number(12);
        std::map<std::uint64_t, std::string> functions, outermost_of_location;
        for (const auto& bytes : profile.all(5)) {
            const ProtobufFields function{bytes};
            functions[function.number(1)] = strings.at(function.number(2));
        }
        for (const auto& bytes : profile.all(4)) {
            const ProtobufFields location{bytes};
            const ProtobufFields line{location.all(4).back()};
            outermost_of_location[location.number(1)] = functions.at(line.number(1));
        }
        for (const auto& bytes : profile.all(2)) {
            const ProtobufFields fields{bytes};
            auto& sample = samples.emplace_back();
            for (const auto id : ProtobufFields::packed(fields.all(1).at(0)))
                sample.functions.push_back(outermost_of_location.at(id));
            sample.values = ProtobufFields::packed(fields.all(2).at(0));
            for (const auto& label_bytes : fields.all(3)) {
                const ProtobufFields label{label_bytes};
                const auto number = label.number(3);
                sample.labels[strings.at(label.number(1))] =
                    number ? std::to_string(number) : strings.at(label.number(2));
            }
        }
    }
    std::vector<std::uint64_t> sums() const {
        std::vector<std::uint64_t> sums(types.size());
        for (const auto& sample : samples)
            for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += sample.values.at(i);
        return sums;
    }
};

}  // namespace shadowprof::report
