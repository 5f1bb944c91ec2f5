// pprof's profile.proto (https://github.com/google/pprof/blob/main/proto/profile.proto): tables of
// strings, functions, locations and mappings; samples are lists of locations, innermost first.
// A location is a place in code, or what stands for others in a stack. Each sample has a value of
// each type: stacks of the clock have time, those of samples instructions, and the other is 0.
#include <algorithm>
#include <ctime>
#include <iomanip>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "model/json_values.h"
#include "model/utf8.h"
#include "report/exports/exports.h"
#include "report/exports/gzip.h"
#include "report/exports/protobuf.h"
#include "report/exports/request_parts.h"
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
    time = 9,
    duration = 10,
    period_type = 11,
    period = 12,
    default_sample_type = 14
};
enum ValueType : unsigned { type = 1, unit = 2 };
enum Sample : unsigned { location_id = 1, value = 2, label = 3 };
enum Label : unsigned { key = 1, text = 2, quantity = 3 };
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

constexpr std::uint64_t nanoseconds_of_second = 1'000'000'000;

class PprofWriter {
  public:
    explicit PprofWriter(const Profile& p) : p_(p) { number_of(""); }

    // Readers that know no default take the last type.
    Exported write(std::optional<Weight> asked) {
        auto shown = stacks_to_show(p_, asked);
        const auto is_time = shown.weight == Weight::time;
        const auto other = stacks_of(p_, is_time ? Weight::instructions : Weight::time);
        const auto& time = is_time ? shown : other;
        const auto& instructions = is_time ? other : shown;
        const bool has_both = !other.all.empty();
        if (has_both || !is_time) value_type("instructions", "count");
        if (has_both || is_time) value_type("time", "nanoseconds");
        RequestParts requests(p_);
        for (const auto& stack : time.all)
            for (const auto& part : stack.of ? requests.of(*stack.of, stack.weight)
                                             : std::vector{RequestParts::Part{{}, stack.weight}})
                sample(stack, has_both ? Values{0, part.nanoseconds} : Values{part.nanoseconds},
                       part.request);
        for (const auto& stack : instructions.all)
            sample(stack, has_both ? Values{stack.weight, 0} : Values{stack.weight});
        out_.number(field::default_sample_type, number_of(std::string(name_of(shown.weight))));
        for (std::size_t i = 0; i < p_.modules.size(); ++i) mapping(i);
        for (const auto& [frames, id] : locations_) location(frames, id);
        run();
        for (const auto& s : strings_) out_.text(field::string_table, printable(s));
        return {gzip(out_.bytes()), std::move(shown.notes)};
    }

  private:
    using Values = std::vector<std::uint64_t>;

    std::uint64_t number_of(const std::string& s) {
        const auto [known, is_new] = string_numbers_.try_emplace(s, strings_.size());
        if (is_new) strings_.push_back(s);
        return known->second;
    }

    ProtobufMessage type_of_value(const char* name, const char* unit) {
        ProtobufMessage m;
        m.number(field::type, number_of(name));
        m.number(field::unit, number_of(unit));
        return m;
    }
    void value_type(const char* name, const char* unit) {
        out_.message(field::sample_type, type_of_value(name, unit));
    }

    // When it was, for how long, and how much time a look of the clock stands for.
    void run() {
        constexpr double longest = 1e9;  // seconds, so that nothing overflows
        std::istringstream started{p_.run.started};
        std::tm utc{};
        if (started >> std::get_time(&utc, "%Y-%m-%dT%H:%M:%S"))
            out_.number(field::time,
                        static_cast<std::uint64_t>(std::max<std::time_t>(timegm(&utc), 0)) *
                            nanoseconds_of_second);
        out_.number(field::duration,
                    static_cast<std::uint64_t>(std::clamp(p_.run.duration, 0.0, longest) *
                                               static_cast<double>(nanoseconds_of_second)));
        const auto* const time = p_.find<TimeSection>();
        if (!time || time->totals.samples == 0) return;
        out_.message(field::period_type, type_of_value("time", "nanoseconds"));
        out_.number(field::period, time->totals.total / time->totals.samples);
    }

    void label(ProtobufMessage& sample, const std::string& key, const std::string& text) {
        if (text.empty()) return;
        ProtobufMessage m;
        m.number(field::key, number_of(key));
        m.number(field::text, number_of(text));
        sample.message(field::label, m);
    }
    void label(ProtobufMessage& sample, const char* key, std::int64_t number) {
        if (number <= 0) return;
        ProtobufMessage m;
        m.number(field::key, number_of(key));
        m.number(field::quantity, static_cast<std::uint64_t>(number));
        sample.message(field::label, m);
    }

    // Frames of one place are one location: functions that were expanded there.
    void sample(const WeightedStack& stack, const Values& values,
                const RequestEntry* request = nullptr) {
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
        m.numbers(field::value, values);
        label(m, "thread", stack.thread);
        label(m, "process", stack.process.program);
        label(m, "pid", stack.process.pid);
        label(m, "system call", stack.system_call);
        if (request) {
            label(m, "trace id", request->trace);
            label(m, "span id", request->span);
            for (const auto& [name, value] : request->attributes) label(m, name, value);
        }
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
};

}  // namespace

Exported export_pprof(const Profile& p, const ExportOptions& options) {
    return PprofWriter(p).write(options.weight);
}

}  // namespace shadowprof::report
