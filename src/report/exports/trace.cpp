// Trace Event JSON, which Perfetto (ui.perfetto.dev), Chrome and speedscope open: the timeline, a
// track for each thread; and the samples that were kept, each a process of its own that begins at
// 0. There an instruction takes as long as those of the sample do on average, or else a nanosecond.
// Weighted by instructions, each takes a nanosecond, and there is no timeline.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "model/json_output.h"
#include "model/utf8.h"
#include "report/diff/shapes.h"
#include "report/exports/exports.h"
#include "report/text/format.h"
#include "report/views/sample_slices.h"

namespace shadowprof::report {

namespace {

using profile::TimelineSection;
using TimelineEntry = TimelineSection::Entry;

struct Slice {
    std::string name, state;
    std::uint64_t begin = 0, length = 0;  // microseconds
};

std::string state_text(const TimelineEntry& e) {
    std::string text{model::name_of(e.state)};
    return e.call.empty() ? text : text + " (" + e.call + ")";
}

std::string slice_name(const Profile& p, const TimelineEntry& e) {
    if (profile::is_waiting(e.state)) return "waiting: " + model::printable(state_text(e));
    if (e.function) return function_label(p, p.at(*e.function));
    return e.state == profile::ThreadState::user ? "others" : model::printable(state_text(e));
}

// In a column it is known how long, and not in which order: what took longest comes first.
std::map<std::string, std::vector<Slice>> tracks_of(const Profile& p, const TimelineSection& list) {
    using Column = std::pair<std::string, std::uint64_t>;
    std::map<Column, std::vector<const TimelineEntry*>> columns;
    for (const auto& e : list.entries) columns[{e.thread, e.column}].push_back(&e);
    std::map<std::string, std::vector<Slice>> tracks;
    const auto width = list.column_width * 1000;
    for (const auto& [key, entries] : columns) {
        const auto& [thread, column] = key;
        std::uint64_t all = 0;
        for (const auto* e : entries) all += e->statistics.count / 1000;
        auto at = column * width;
        for (const auto* e : entries) {
            auto length = e->statistics.count / 1000;
            // Several threads may have the same name.
            if (all > width) length = length * width / all;
            if (length == 0) continue;
            tracks[thread].push_back({slice_name(p, *e), state_text(*e), at, length});
            at += length;
        }
    }
    return tracks;
}

class TraceEvents {
  public:
    explicit TraceEvents(const Profile& p) : p_(p) {
        out_.open_object();
        out_.key("displayTimeUnit").text("ms");
        out_.key("otherData").open_object();
        out_.key("tool").text(p.tool);
        out_.close_object();
        out_.key("traceEvents").open_array();
    }

    void timeline(const TimelineSection& list) {
        name("process_name", 1, 1, program_of(p_));
        std::uint64_t track = 0;
        for (const auto& [thread, slices] : tracks_of(p_, list)) {
            name("thread_name", 1, ++track, model::printable(thread));
            for (const auto& slice : slices) {
                begin_event("X", slice.name, 1, track);
                out_.key("cat").text(slice.state);
                out_.key("ts").number(slice.begin);
                out_.key("dur").number(slice.length);
                out_.close_object();
            }
        }
    }

    void sample(const profile::ThreadOfSample& thread, std::uint64_t number, bool in_time) {
        const auto process = number + 1;
        const auto known = in_time ? thread.nanoseconds_of_instruction() : std::optional<double>{};
        const auto microseconds = known.value_or(1) * 1e-3;  // of an instruction
        name("process_name", process, 1,
             known ? fmt::format("sample {}, {:.2g} ns an instruction", number, *known)
                   : fmt::format("sample {}, in instructions: 1 ns stands for each", number));
        name("thread_name", process, 1, model::printable(thread.stretches.front()->name));
        for (const auto& slice : slices_of(p_, thread)) {
            begin_event("X", function_label(p_, p_.at(slice.function)), process, 1);
            out_.key("cat").text("call");
            out_.key("ts").real(static_cast<double>(slice.begin) * microseconds);
            out_.key("dur").real(static_cast<double>(slice.length) * microseconds);
            out_.key("args").open_object();
            out_.key("instructions").number(slice.length);
            for (const auto& argument : slice.arguments) write(argument);
            out_.close_object();
            out_.close_object();
        }
    }

    std::string take() {
        out_.break_line();
        out_.close_array();
        out_.close_object();
        return out_.take() + "\n";
    }

  private:
    void write(const Argument& argument) {
        // Keys are not to occur twice.
        out_.key(argument.name == "instructions" ? "instructions (argument)" : argument.name);
        if (const auto* const number = std::get_if<std::int64_t>(&argument.value))
            out_.signed_number(*number);
        else if (const auto* const truth = std::get_if<bool>(&argument.value))
            out_.boolean(*truth);
        else
            out_.text(std::get<std::string>(argument.value));
    }
    void begin_event(std::string_view kind, std::string_view what, std::uint64_t process,
                     std::uint64_t track) {
        out_.break_line();
        out_.open_object();
        out_.key("ph").text(kind);
        out_.key("name").text(what);
        out_.key("pid").number(process);
        out_.key("tid").number(track);
    }
    void name(std::string_view of, std::uint64_t process, std::uint64_t track,
              const std::string& text) {
        begin_event("M", of, process, track);
        out_.key("args").open_object();
        out_.key("name").text(text);
        out_.close_object();
        out_.close_object();
    }

    const Profile& p_;
    JsonOutput out_;
};

}  // namespace

Exported export_trace(const Profile& p, const ExportOptions& options) {
    const auto* const list = p.find<TimelineSection>();
    const auto* const samples = p.find<profile::SampleSection>();
    const bool in_time = options.weight != Weight::instructions;
    const bool has_timeline = in_time && list && !list->entries.empty();
    const bool has_samples = samples && !samples->entries.empty();
    if (!has_samples && !in_time)
        throw UserError(
            "no samples were kept, which a trace in instructions is made of: "
            "--keep-samples does");
    if (!has_timeline && !has_samples)
        throw UserError(
            "this profile has no timeline: --profile timeline takes one, in modes that take "
            "samples; and no samples were kept: --keep-samples does");
    TraceEvents events{p};
    std::vector<std::string> notes;
    if (has_timeline) {
        events.timeline(*list);
        notes.push_back(
            fmt::format("within {} the order is not known: what took longest comes first",
                        model::seconds_text(static_cast<double>(list->column_width) * 1e-3)));
    }
    if (has_samples) {
        std::uint64_t number = 0;
        for (const auto& thread : profile::threads_of(*samples))
            events.sample(thread, ++number, in_time);
        notes.emplace_back(
            in_time ? "samples that were kept begin at 0; there, an instruction takes as long as "
                      "those of the sample do on average, and 1 ns where that is not known"
                    : "samples that were kept begin at 0; there, 1 ns stands for an instruction");
    }
    return {events.take(), std::move(notes)};
}

}  // namespace shadowprof::report
