// pprof's profile.proto (https://github.com/google/pprof/blob/main/proto/profile.proto): tables of
// strings, functions, locations and mappings; samples are lists of locations, innermost first.
// A location is a place in code, or what stands for others in a stack.
#include <algorithm>
#include <map>
#include <string>

#include "model/utf8.h"
#include "report/exports/exports.h"
#include "report/exports/gzip.h"
#include "report/exports/protobuf.h"
#include "report/exports/weighted_stacks.h"

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
    duration = 10
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

    Exported write() {
        value_type("instructions");
        auto stacks = stacks_to_show(p_);
        notes_ = std::move(stacks.notes);
        for (const auto& stack : stacks.all) sample(stack);
        for (std::size_t i = 0; i < p_.modules.size(); ++i) mapping(i);
        for (const auto& [frames, id] : locations_) location(frames, id);
        out_.number(field::duration,
                    static_cast<std::uint64_t>(std::clamp(p_.run.duration, 0.0, 1e9) * 1e9));
        for (const auto& s : strings_) out_.text(field::string_table, printable(s));
        return {gzip(out_.bytes()), std::move(notes_)};
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

    // Frames of one place are one location: functions that were expanded there.
    void sample(const WeightedStack& stack) {
        ProtobufMessage m;
        std::vector<std::uint64_t> ids;
        for (auto end = stack.frames.end(); end != stack.frames.begin();) {
            auto begin = std::prev(end);
            while (begin != stack.frames.begin() && begin->location &&
                   std::prev(begin)->location == begin->location)
                --begin;
            const auto [known, is_new] = locations_.try_emplace(
                std::vector<StackFrame>(begin, end), locations_.size() + 1);  // 0 is none
            ids.push_back(known->second);
            end = begin;
        }
        m.numbers(field::location_id, ids);
        m.numbers(field::value, {stack.weight});
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

    void location(const std::vector<StackFrame>& frames, std::uint64_t id) {
        ProtobufMessage m;
        m.number(field::place_id, id);
        if (const auto place = frames.front().location) {
            m.number(field::of_mapping, p_.at(*place).module + 1);
            m.number(field::address, p_.at(*place).offset);
        }
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
    std::map<std::vector<StackFrame>, std::uint64_t> locations_;
    std::vector<std::string> notes_;
};

}  // namespace

Exported export_pprof(const Profile& p, const ExportOptions&) {
    return PprofWriter(p).write();
}

}  // namespace shadowprof::report
