#include "report/diff/diff_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/json_output.h"
#include "report/diff/diff_words.h"
#include "report/text/format.h"

namespace shadowprof::report {

namespace {

class DiffWriter {
  public:
    std::string write(const Diff& d, const GateResult* gate) {
        out_.open_object();
        out_.line("schema").text(diff_schema_name);
        out_.line("version").number(diff_schema_version);
        out_.line("bases").open_array();
        for (const auto& base : d.bases) profile(base);
        out_.close_array();
        out_.line("new");
        profile(d.now);
        out_.line("notes").open_array();
        for (const auto& note : d.notes) out_.text(note);
        out_.close_array();
        out_.line("instructions");
        d.instructions ? change(*d.instructions) : out_.null();
        out_.line("total_waiting");
        d.waiting ? change(*d.waiting) : out_.null();
        for (const auto& l : d.lists) list(l);
        values(d);
        if (gate) verdicts(*gate);
        out_.break_line();
        out_.close_object();
        return out_.take() + "\n";
    }

  private:
    void profile(const DiffedProfile& p) {
        out_.open_object();
        out_.key("name").text(p.name);
        out_.key("command").text(p.command);
        out_.key("mode").text(p.mode);
        out_.key("runs").number(p.runs);
        out_.key("samples").number(p.samples);
        out_.close_object();
    }

    void change(const Change& c) {
        out_.open_object();
        out_.key("name").text(c.name);
        out_.key("base").real(c.base);
        out_.key("new").real(c.now);
        out_.key("noise").real(c.noise);
        out_.key("real").boolean(c.is_real());
        out_.close_object();
    }

    void list(const DiffList& l) {
        out_.line(l.name).open_object();
        out_.key("measure").text(l.measure);
        out_.key("exact").boolean(l.exact);
        out_.key("why_not");
        l.why_not.empty() ? out_.null() : out_.text(l.why_not);
        out_.key("base_total").real(l.base_total);
        out_.key("new_total").real(l.now_total);
        out_.key("compared").number(l.changes.size());
        out_.key("changes").open_array();
        for (const auto& c : l.changes) {
            if (!c.is_real()) continue;
            out_.break_line();
            change(c);
        }
        out_.close_array();
        out_.close_object();
    }

    void values(const Diff& d) {
        out_.line("values").open_object();
        out_.key("why_not");
        d.values_why_not.empty() ? out_.null() : out_.text(d.values_why_not);
        out_.key("changes").open_array();
        for (const auto& v : d.values) {
            out_.break_line();
            out_.open_object();
            out_.key("place").text(v.place);
            out_.key("operand").text(v.operand);
            out_.key("text").text(v.text);
            out_.key("base_value").text(v.base_value);
            out_.key("new_value").text(v.now_value);
            out_.key("base_share").rounded(v.base_share);
            out_.key("new_share").rounded(v.now_share);
            out_.key("weight").rounded(v.weight);
            out_.close_object();
        }
        out_.close_array();
        out_.close_object();
    }

    void verdicts(const GateResult& gate) {
        out_.line("passed").boolean(gate.passed());
        out_.line("functions_checked").number(gate.functions_checked);
        out_.line("verdicts").open_array();
        for (const auto& v : gate.verdicts) {
            out_.break_line();
            out_.open_object();
            out_.key("limit").text(v.limit);
            out_.key("exceeded").boolean(v.exceeded);
            out_.key("allowed").real(v.allowed);
            out_.key("change");
            change(v.change);
            out_.key("causes").open_array();
            for (const auto& c : v.causes) change(c);
            out_.close_array();
            out_.close_object();
        }
        out_.close_array();
    }

    JsonOutput out_;
};

struct Metric {
    std::string name;
    const Change* change;
    Unit unit;
};

struct UnitNames {
    std::string_view github, bencher;
};
UnitNames names_of(Unit unit) {
    switch (unit) {
        case Unit::count:
            return {"instructions", "instructions"};
        case Unit::share:
            return {"% of instructions", "share-of-instructions"};
        case Unit::waiting:
            return {"ns in 1,000 instructions", "waiting"};
    }
    return {};
}

std::vector<Metric> metrics_of(const Diff& d, double least_share) {
    std::vector<Metric> metrics;
    const auto command = d.now.command.substr(0, d.now.command.find(' '));
    const auto program = file_name(command);
    if (d.instructions) metrics.push_back({program, &*d.instructions, Unit::count});
    if (d.waiting) metrics.push_back({program + ": waiting", &*d.waiting, Unit::waiting});
    const auto& functions = d.functions();
    for (const auto& c : functions.changes)
        if (c.now > 0 && functions.now_share(c) >= least_share)
            metrics.push_back({program + ": " + c.name, &c, functions.unit});
    return metrics;
}

// Shares are in percent, because charts of numbers such as 0.02 are hard to read.
double shown(double amount, Unit unit) {
    return unit == Unit::share ? 100 * amount : amount;
}

}  // namespace

std::string to_json(const Diff& diff, const GateResult* gate) {
    return DiffWriter().write(diff, gate);
}

std::string to_github_action_benchmark(const Diff& diff, double least_share) {
    JsonOutput out;
    out.open_array();
    for (const auto& [name, change, unit] : metrics_of(diff, least_share)) {
        out.break_line();
        out.open_object();
        out.key("name").text(name);
        out.key("unit").text(names_of(unit).github);
        out.key("value").real(shown(change->now, unit));
        out.key("range").text(fmt::format("± {:.6g}", shown(change->noise, unit)));
        out.key("extra").text(
            fmt::format("base {:.6g}, {}", shown(change->base, unit),
                        change->is_real() ? difference_text(*change) : "no real change"));
        out.close_object();
    }
    out.break_line();
    out.close_array();
    return out.take() + "\n";
}

std::string to_bencher(const Diff& diff, double least_share) {
    JsonOutput out;
    out.open_object();
    for (const auto& [name, change, unit] : metrics_of(diff, least_share)) {
        out.break_line();
        out.key(name).open_object();
        out.key(names_of(unit).bencher).open_object();
        out.key("value").real(shown(change->now, unit));
        out.key("lower_value").real(std::max(0.0, shown(change->now - change->noise, unit)));
        out.key("upper_value").real(shown(change->now + change->noise, unit));
        out.close_object();
        out.close_object();
    }
    out.break_line();
    out.close_object();
    return out.take() + "\n";
}

}  // namespace shadowprof::report
