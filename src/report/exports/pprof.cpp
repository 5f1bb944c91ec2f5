// pprof's profile.proto (https://github.com/google/pprof/blob/main/proto/profile.proto): tables of
// strings, functions, locations and mappings; samples are lists of locations, innermost first.
// There are two kinds of value: samples, of stacks, and instructions, of functions by themselves.
#include <algorithm>
#include <map>
#include <string>

#include "base/error.h"
#include "model/utf8.h"
#include "report/exports/exports.h"
#include "report/exports/gzip.h"
#include "report/exports/protobuf.h"
#include "report/exports/weighted_stacks.h"
#include "report/text/format.h"

namespace shadowprof::report {

namespace {

// Field numbers of profile.proto.
namespace field {
enum Profile : unsigned {
    sample_type = 1,
    sample = 2,
    mapping = 3,
    location = 4,
    function = 5,
    string_table = 6,
    duration = 10,
    default_sample_type = 14
};
enum ValueType : unsigned { type = 1, unit = 2 };
enum Sample : unsigned { location_id = 1, value = 2 };
enum Mapping : unsigned {
    mapping_id = 1,
    start = 2,
    limit = 3,
    filename = 5,
    build_id = 6,
    has_functions = 7,
    has_filenames = 8,
    has_line_numbers = 9,
    has_inline_frames = 10
};
enum Location : unsigned { place_id = 1, of_mapping = 2, address = 3, line = 4 };
enum Line : unsigned { of_function = 1, number = 2 };
enum Function : unsigned { function_id = 1, name = 2, system_name = 3, file = 4 };
}  // namespace field

class PprofWriter {
  public:
    explicit PprofWriter(const Profile& p) : p_(p) { number_of(""); }

    std::string write() {
        value_type("samples");
        value_type("instructions");
        const auto sampled = p_.find<StackSection>() ? p_.find<StackSection>()->entries.size() : 0;
        if (p_.find<StackSection>())
            for (const auto& e : p_.find<StackSection>()->entries)
                sample(e.frames, {e.statistics.count, 0});
        std::map<LocationIndex, std::uint64_t> instructions;
        for (const auto& stack : executed_instructions(p_))
            instructions[stack.frames.front().location] += stack.weight;
        for (const auto& [place, n] : instructions) sample({place}, {0, n});
        if (sampled == 0 && instructions.empty())
            throw UserError(
                "nothing to export: the profile has no stacks and neither paths nor methods");
        for (std::size_t i = 0; i < p_.modules.size(); ++i) mapping(i);
        for (LocationIndex i = 0; i < p_.locations.size(); ++i)
            if (used_.contains(i)) location(i);
        out_.number(field::duration,
                    static_cast<std::uint64_t>(std::clamp(p_.run.duration, 0.0, 1e9) * 1e9));
        out_.number(field::default_sample_type, number_of(sampled ? "samples" : "instructions"));
        for (const auto& s : strings_) out_.text(field::string_table, printable(s));
        return gzip(out_.bytes());
    }

  private:
    std::uint64_t number_of(const std::string& s) {
        const auto [known, is_new] = string_numbers_.try_emplace(s, strings_.size());
        if (is_new) strings_.push_back(s);
        return known->second;
    }

    void value_type(const char* name) {
        ProtobufMessage m;
        m.number(field::type, number_of(name));
        m.number(field::unit, number_of("count"));
        out_.message(field::sample_type, m);
    }

    void sample(const std::vector<LocationIndex>& places,
                const std::vector<std::uint64_t>& values) {
        ProtobufMessage m;
        std::vector<std::uint64_t> ids;
        for (const auto i : places) {
            used_[i] = true;
            ids.push_back(i + 1);  // 0 is none
        }
        m.numbers(field::location_id, ids);
        m.numbers(field::value, values);
        out_.message(field::sample, m);
    }

    // Addresses are link-time addresses, so all mappings begin at 0.
    void mapping(std::size_t i) {
        std::uint64_t end = 1;
        for (const auto& l : p_.locations)
            if (l.module == i) end = std::max(end, l.offset + 1);
        ProtobufMessage m;
        m.number(field::mapping_id, i + 1);
        m.number(field::limit, end);
        m.number(field::filename, number_of(p_.modules[i].path));
        m.number(field::build_id, number_of(p_.modules[i].build_id));
        m.number(field::has_functions, 1);
        m.number(field::has_filenames, 1);
        m.number(field::has_line_numbers, 1);
        m.number(field::has_inline_frames, 1);
        out_.message(field::mapping, m);
    }

    void location(LocationIndex i) {
        const auto frames = frames_of(p_, i);
        ProtobufMessage m;
        m.number(field::place_id, i + 1);
        m.number(field::of_mapping, p_.at(i).module + 1);
        m.number(field::address, p_.at(i).offset);
        for (auto f = frames.rbegin(); f != frames.rend(); ++f) {
            ProtobufMessage line;
            line.number(field::of_function, function(*f));
            line.number(field::number, f->line);
            m.message(field::line, line);
        }
        out_.message(field::location, m);
    }

    std::uint64_t function(const StackFrame& f) {
        const auto [known, is_new] =
            functions_.try_emplace(std::pair(f.function, f.file), functions_.size() + 1);
        if (is_new) {
            ProtobufMessage m;
            m.number(field::function_id, known->second);
            m.number(field::name, number_of(f.function));
            m.number(field::system_name, number_of(f.function));
            m.number(field::file, number_of(f.file));
            out_.message(field::function, m);
        }
        return known->second;
    }

    const Profile& p_;
    ProtobufMessage out_;
    std::map<std::string, std::uint64_t> string_numbers_;
    std::vector<std::string> strings_;
    std::map<std::pair<std::string, std::string>, std::uint64_t> functions_;
    std::map<LocationIndex, bool> used_;
};

}  // namespace

Exported export_pprof(const Profile& p, const ExportOptions&) {
    return {PprofWriter(p).write(), {}};
}

}  // namespace shadowprof::report
