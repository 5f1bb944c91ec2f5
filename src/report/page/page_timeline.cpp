#include "report/page/page_timeline.h"

#include <map>
#include <string>

#include "model/utf8.h"
#include "report/text/format.h"
#include "report/views/sample_slices.h"

namespace shadowprof::report {

namespace {

// Texts that occur often are written once, and else their numbers.
class Numbers {
  public:
    std::uint64_t of(const std::string& text) {
        const auto [known, is_new] = numbers_.try_emplace(text, numbers_.size());
        if (is_new) texts_.push_back(text);
        return known->second;
    }
    void write(JsonOutput& out) const {
        out.open_array();
        for (const auto& text : texts_) out.text(text);
        out.close_array();
    }

  private:
    std::map<std::string, std::uint64_t> numbers_;
    std::vector<std::string> texts_;
};

}  // namespace

void write_timeline(JsonOutput& out, const Profile& p) {
    out.break_line();
    out.key("timeline");
    const auto* const list = p.find<profile::TimelineSection>();
    if (!list || list->entries.empty()) {
        out.null();
        return;
    }
    Numbers threads, states, functions;
    out.open_object();
    out.key("width").number(list->column_width);
    out.key("whole").boolean(list->dropped == 0);
    out.key("entries").open_array();
    for (const auto& e : list->entries) {
        auto state = std::string{model::name_of(e.state)};
        if (!e.call.empty()) state += " (" + printable(e.call) + ")";
        out.number(e.column);
        out.number(threads.of(printable(e.thread)));
        out.number(states.of(state));
        out.boolean(profile::is_waiting(e.state));
        out.number(functions.of(e.function ? function_label(p, p.at(*e.function)) : ""));
        out.number(e.statistics.count);
    }
    out.close_array();
    for (const auto& [key, texts] : {std::pair{"threads", &threads}, std::pair{"states", &states},
                                     std::pair{"functions", &functions}}) {
        out.key(key);
        texts->write(out);
    }
    out.close_object();
}

void write_samples(JsonOutput& out, const Profile& p) {
    out.break_line();
    out.key("samples");
    const auto* const list = p.find<profile::SampleSection>();
    if (!list || list->entries.empty()) {
        out.null();
        return;
    }
    Numbers functions, arguments;
    arguments.of({});
    out.open_object();
    out.key("threads").open_array();
    for (const auto& thread : profile::threads_of(*list)) {
        out.open_object();
        out.key("name").text(printable(thread.stretches.front()->name));
        out.key("instructions").number(thread.instructions);
        out.key("nanoseconds").real(thread.nanoseconds_of_instruction().value_or(0));
        out.key("calls").open_array();
        for (const auto& slice : slices_of(p, thread)) {
            out.number(functions.of(function_label(p, p.at(slice.function))));
            out.number(slice.depth);
            out.number(slice.begin);
            out.number(slice.length);
            out.number(arguments.of(argument_text(slice.arguments)));
        }
        out.close_array();
        out.close_object();
    }
    out.close_array();
    out.key("functions");
    functions.write(out);
    out.key("arguments");
    arguments.write(out);
    out.close_object();
}

}  // namespace shadowprof::report
