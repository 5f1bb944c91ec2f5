// Trace Event JSON, which Perfetto (ui.perfetto.dev), Chrome and speedscope open: the timeline, a
// track for each thread.
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
    return e.function ? function_label(p, p.at(*e.function)) : model::printable(state_text(e));
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

void name_of_track(JsonOutput& out, std::uint64_t track, std::string_view key,
                   const std::string& name) {
    out.break_line();
    out.open_object();
    out.key("ph").text("M");
    out.key("name").text(key);
    out.key("pid").number(1);
    out.key("tid").number(track);
    out.key("args").open_object();
    out.key("name").text(name);
    out.close_object();
    out.close_object();
}

}  // namespace

Exported export_trace(const Profile& p, const ExportOptions&) {
    const auto* const list = p.find<TimelineSection>();
    if (!list || list->entries.empty())
        throw UserError(
            "this profile has no timeline: --profile timeline takes one, in modes that take "
            "samples");
    JsonOutput out;
    out.open_object();
    out.key("displayTimeUnit").text("ms");
    out.key("otherData").open_object();
    out.key("tool").text(p.tool);
    out.close_object();
    out.key("traceEvents").open_array();
    name_of_track(out, 1, "process_name", program_of(p));
    std::uint64_t track = 0;
    for (const auto& [thread, slices] : tracks_of(p, *list)) {
        name_of_track(out, ++track, "thread_name", model::printable(thread));
        for (const auto& slice : slices) {
            out.break_line();
            out.open_object();
            out.key("ph").text("X");
            out.key("name").text(slice.name);
            out.key("cat").text(slice.state);
            out.key("pid").number(1);
            out.key("tid").number(track);
            out.key("ts").number(slice.begin);
            out.key("dur").number(slice.length);
            out.close_object();
        }
    }
    out.break_line();
    out.close_array();
    out.close_object();
    return {out.take() + "\n",
            {fmt::format("within {} the order is not known: what took longest comes first",
                         model::seconds_text(static_cast<double>(list->column_width) * 1e-3))}};
}

}  // namespace shadowprof::report
