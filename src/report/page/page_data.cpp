#include "report/page/page_data.h"

#include <algorithm>

#include "model/json_output.h"
#include "model/utf8.h"
#include "profile/registry.h"
#include "report/opportunities/opportunities.h"
#include "report/page/page_code.h"
#include "report/page/page_index.h"
#include "report/text/format.h"
#include "report/text/latency_notes.h"
#include "report/text/value_notes.h"
#include "report/views/certainty.h"
#include "report/views/flame_tree.h"
#include "report/views/shares.h"

namespace shadowprof::report {

namespace {

constexpr std::size_t most_values = 12;  // of one instruction

class PageWriter {
  public:
    PageWriter(const Profile& profile, const SymbolOptions& symbols, const PageLimits& limits)
        : p_(profile), symbols_(symbols), limits_(limits), index_(profile) {}

    std::string write() {
        out_.open_object();
        out_.key("tool").text(p_.tool);
        run();
        certainty();
        numbers();
        findings();
        out_.break_line();
        out_.key("lists").open_object();
        if (p_.find<MethodSection>()) functions(*p_.find<MethodSection>());
        if (p_.find<PathSection>()) paths(*p_.find<PathSection>());
        if (p_.find<EdgeSection>()) edges(*p_.find<EdgeSection>());
        if (p_.find<CallSection>()) calls(*p_.find<CallSection>());
        if (p_.find<ValueSection>()) values(*p_.find<ValueSection>());
        if (p_.find<LatencySection>()) latencies(*p_.find<LatencySection>());
        if (p_.find<StackSection>()) stacks(*p_.find<StackSection>());
        out_.close_object();
        if (p_.find<LatencySection>()) scale(p_.find<LatencySection>()->scale);
        tables();
        flames();
        write_code(out_, p_, symbols_, index_, limits_);
        out_.break_line();
        out_.key("modules").open_array();
        for (const auto& m : p_.modules) out_.text(printable(m.path));
        out_.close_array();
        index_.write(out_);
        out_.close_object();
        return out_.take();
    }

  private:
    // Of profile types that have no part of their own on the page.
    void tables() {
        std::vector<std::pair<std::string_view, ShownTable>> shown;
        for (const auto* type : profile::profile_types())
            if (const auto* section = p_.sections.find(type->section.key); section && type->table)
                shown.emplace_back(type->name, type->table(*section));
        if (shown.empty()) return;
        out_.break_line();
        out_.key("tables").open_array();
        for (const auto& [name, t] : shown) table(name, t);
        out_.close_array();
    }
    void table(std::string_view name, const ShownTable& t) {
        out_.open_object();
        out_.key("id").text(name);
        out_.key("title").text(t.title);
        out_.key("explanation").text(t.explanation);
        out_.key("total").number(t.totals.total);
        texts("columns", t.columns);
        out_.key("rows").open_array();
        for (const auto& row : t.rows) {
            out_.open_array();
            for (const auto& c : row) cell(c);
            out_.close_array();
        }
        out_.close_array();
        out_.close_object();
    }
    // A text, a count, or a share with its interval.
    void cell(const ShownCell& c) {
        if (c.kind == ShownCell::Kind::text) return out_.text(printable(c.words));
        if (c.kind == ShownCell::Kind::count) return out_.number(c.count);
        out_.open_array();
        for (const auto part : {c.estimate.share, c.estimate.low, c.estimate.high})
            out_.rounded(part);
        out_.close_array();
    }
    void texts(std::string_view key, const std::vector<std::string>& items) {
        out_.key(key).open_array();
        for (const auto& item : items) out_.text(printable(item));
        out_.close_array();
    }

    void run() {
        const auto& r = p_.run;
        out_.break_line();
        out_.key("targets").open_array();
        for (const auto& t : p_.targets) {
            out_.open_object();
            texts("command", t.command);
            out_.key("pid").signed_number(t.pid);
            out_.key("exit");
            t.exit ? out_.signed_number(*t.exit) : out_.null();
            out_.key("attached").boolean(t.attached);
            out_.close_object();
        }
        out_.close_array();
        out_.break_line();
        out_.key("run").open_object();
        out_.key("mode").text(r.mode);
        texts("profiles", r.profiles);
        out_.key("started").text(r.started);
        out_.key("duration").real(r.duration);
        out_.key("runs").number(r.runs());
        out_.key("machines").number(std::max<std::size_t>(p_.hosts.size(), 1));
        out_.key("interrupted");
        r.interrupted ? out_.text(printable(*r.interrupted)) : out_.null();
        texts("warnings", r.warnings);
        texts("failures", r.failures);
        out_.close_object();
    }

    // Nothing to say where there are samples enough.
    void certainty() {
        out_.break_line();
        out_.key("everything").boolean(saw_everything(p_));
        out_.key("shortage").open_object();
        out_.key("text").text(printable(shortage_text(p_)));
        out_.key("is_noise").boolean(certainty_of(p_).is_noise());
        texts("remedies", remedies_for(p_));
        texts("certain", certain_facts(p_));
        out_.close_object();
    }

    void numbers() {
        out_.break_line();
        out_.key("host").open_object();
        out_.key("cpu").text(printable(p_.host.cpu));
        out_.key("cores").number(p_.host.cores);
        out_.key("kernel").text(printable(p_.host.kernel));
        out_.close_object();
        const auto& cost = p_.cost;
        out_.key("cost").open_object();
        out_.key("stops").number(cost.stops);
        out_.key("stop_time").real(cost.stop_time);
        out_.key("forks").number(cost.forks);
        out_.key("extra_faults").number(cost.extra_faults);
        out_.key("extra_cpu").real(cost.extra_cpu);
        out_.key("slowdown");
        cost.slowdown ? out_.real(*cost.slowdown) : out_.null();
        out_.close_object();
        const auto& seen = p_.coverage;
        out_.key("coverage").open_object();
        out_.key("samples").number(seen.samples);
        out_.key("instructions").number(seen.instructions);
        out_.key("blocks").number(seen.blocks);
        out_.key("weights").text(weights_text(p_));
        out_.key("ended").open_object();
        for (const auto& [reason, n] : seen.ended) out_.key(printable(reason)).number(n);
        out_.close_object();
        out_.close_object();
    }

    void findings() {
        out_.break_line();
        out_.key("least_touched").real(thresholds::least_touched);
        out_.key("why_no_findings")
            .text(!weighted_instructions(p_)    ? unknown_total_text
                  : certainty_of(p_).is_noise() ? "None can be founded on so few samples."
                                                : "");
        out_.key("kinds").open_object();
        for (const auto* kind : finding_kinds()) {
            out_.key(kind->name).open_object();
            out_.key("title").text(kind->title);
            out_.key("advice").text(kind->advice);
            out_.key("measure").text(kind->measure);
            out_.close_object();
        }
        out_.close_object();
        out_.break_line();
        out_.key("findings").open_array();
        for (const auto& f : find_opportunities(p_, symbols_)) {
            out_.break_line();
            out_.open_object();
            out_.key("kind").text(f.kind->name);
            out_.key("at").number(index_.location(f.location));
            out_.key("what").text(printable(f.what));
            texts("evidence", f.evidence);
            out_.key("touches").rounded(f.touches);
            out_.key("interval").text(f.interval);
            out_.close_object();
        }
        out_.close_array();
    }

    // --- hotlists: {total, unknown, …, rows}

    template <class Entry, class Count, class Row>
    void list(std::string_view key, const Totals& totals, std::uint64_t dropped,
              const std::vector<const Entry*>& entries, std::size_t all, std::size_t rows,
              Count count, Row row) {
        out_.break_line();
        out_.key(key).open_object();
        out_.key("total").number(totals.total);
        out_.key("unknown").number(totals.unknown);
        out_.key("exhaustive").boolean(totals.exhaustive);
        out_.key("entries").number(all);
        out_.key("dropped").number(dropped);
        std::uint64_t rest = 0;
        for (std::size_t i = rows; i < entries.size(); ++i) rest += count(*entries[i]);
        out_.key("rest").number(rest);
        out_.key("rows").open_array();
        for (std::size_t i = 0; i < std::min(rows, entries.size()); ++i) {
            out_.break_line();
            out_.open_array();
            row(*entries[i]);
            out_.close_array();
        }
        out_.close_array();
        out_.close_object();
    }

    template <class Entry, class Row>
    void list(std::string_view key, const Hotlist<Entry>& from, std::size_t rows, Row row) {
        std::vector<const Entry*> entries;
        entries.reserve(from.entries.size());
        for (const auto& e : from.entries) entries.push_back(&e);
        list(
            key, from.totals, from.dropped, entries, entries.size(), rows,
            [](const Entry& e) { return e.statistics.count; }, row);
    }

    void estimate(const Share& e) {
        out_.rounded(e.share);
        out_.rounded(e.low);
        out_.rounded(e.high);
    }
    void shares(const Statistics& s, const Totals& totals) {
        out_.number(s.count);
        estimate(share_of(s, totals));
    }

    void functions(const MethodSection& from) {
        std::vector<const MethodEntry*> order;
        for (const auto& e : from.entries)
            if (e.instructions.count + e.statistics.count > 0) order.push_back(&e);
        std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
            return a->instructions.count > b->instructions.count;
        });
        list(
            "functions", from.instructions, from.dropped, order, order.size(), limits_.rows,
            [](const MethodEntry& e) { return e.instructions.count; },
            [&](const MethodEntry& e) {
                shares(e.instructions, from.instructions);
                out_.number(index_.location(e.function));
                out_.number(e.calls);
                out_.number(e.tail_calls);
                out_.number(e.back_edges);
            });
    }

    void paths(const PathSection& from) {
        std::size_t rows = 0, blocks = 0;
        while (rows < std::min(from.entries.size(), limits_.rows) && blocks < limits_.path_blocks)
            blocks += from.entries[rows++].blocks.size();
        list("paths", from, rows, [&](const PathEntry& e) {
            shares(e.statistics, from.totals);
            out_.number(e.instructions());
            const auto work = work_of(e, p_);
            work ? out_.rounded(*work) : out_.null();
            out_.open_array();
            for (const auto& b : e.blocks) {
                out_.number(index_.location(b.start));
                out_.number(index_.location(b.end));
                out_.number(b.instructions);
            }
            out_.close_array();
        });
    }

    void edges(const EdgeSection& from) {
        list("edges", from, limits_.rows, [&](const EdgeEntry& e) {
            shares(e.statistics, from.totals);
            out_.number(index_.location(e.from));
            out_.number(index_.location(e.to));
            out_.number(index_.string(std::string(name_of(e.kind))));
        });
    }

    void calls(const CallSection& from) {
        list("calls", from, limits_.rows, [&](const CallEntry& e) {
            shares(e.statistics, from.totals);
            out_.number(index_.location(e.from));
            out_.number(index_.location(e.to));
        });
    }

    // Those that vary, the most predictable work first.
    void values(const ValueSection& from) {
        struct Row {
            const ValueEntry* entry;
            double weight;
        };
        std::vector<Row> found;
        for (const auto& e : from.entries)
            if (!is_constant_by_construction(p_, e))
                found.push_back(
                    {&e, regularity_of(p_, e).share * static_cast<double>(e.all_executions())});
        std::stable_sort(found.begin(), found.end(),
                         [](const auto& a, const auto& b) { return a.weight > b.weight; });
        std::vector<const ValueEntry*> order;
        order.reserve(found.size());
        for (const auto& row : found) order.push_back(row.entry);
        list(
            "values", from.all_executions(), from.dropped, order, from.entries.size(), limits_.rows,
            [](const ValueEntry& e) { return e.all_executions(); },
            [&](const ValueEntry& e) { value(e); });
    }

    void value(const ValueEntry& e) {
        out_.number(e.all_executions());
        out_.number(index_.location(e.location));
        out_.number(index_.string(operand_label(e)));
        e.context ? out_.number(index_.location(*e.context)) : out_.null();
        const bool steps = tells_step(p_, e);
        out_.signed_number(steps ? e.stride->step : 0);
        out_.rounded(steps ? e.stride->share : 0);
        out_.open_array();
        for (std::size_t i = 0; i < std::min(e.top.size(), most_values); ++i) {
            out_.open_array();
            out_.text(value_text(e.top[i].value, e));
            estimate(share_of(e.top[i], e));
            out_.close_array();
        }
        out_.close_array();
    }

    // Those that wait, or whose data the model has outside the near caches.
    void latencies(const LatencySection& from) {
        std::vector<const LatencyEntry*> order;
        for (const auto& e : from.entries)
            if (e.statistics.count + e.by_model[2] + e.by_model[3] > 0) order.push_back(&e);
        list(
            "latencies", from.totals, from.dropped, order, order.size(), limits_.rows,
            [](const LatencyEntry& e) { return e.statistics.count; },
            [&](const LatencyEntry& e) { latency(e, from.totals); });
    }

    void latency(const LatencyEntry& e, const Totals& totals) {
        shares(e.statistics, totals);
        out_.number(index_.location(e.location));
        out_.number(index_.string(printable(e.operand)));
        out_.number(e.loads);
        out_.number(e.timed);
        out_.number(e.disturbed);
        out_.rounded(e.mean_ns());
        out_.rounded(profile::latency_quantile(e.histogram, 0.5));
        out_.rounded(profile::latency_quantile(e.histogram, 0.99));
        out_.number(index_.string(pattern_text(p_, e)));
        out_.number(e.modelled);
        out_.number(e.page_walks);
        numbers(e.by_time);
        numbers(e.by_model);
        out_.open_array();
        for (std::size_t bin = 0; bin < latency_bins; ++bin)
            if (e.histogram[bin] != 0) {
                out_.number(bin);
                out_.number(e.histogram[bin]);
            }
        out_.close_array();
    }

    template <class Counts>
    void numbers(const Counts& counts) {
        out_.open_array();
        for (const auto n : counts) out_.number(n);
        out_.close_array();
    }

    void scale(const LatencyScale& s) {
        out_.break_line();
        out_.key("scale").open_object();
        out_.key("text").text(printable(scale_text(s)));
        // Up to which time a load is said to hit each level; empty if nothing was timed.
        out_.key("limits").open_array();
        if (s.clock_is_usable)
            for (const auto limit : s.limits_ns) out_.rounded(limit);
        out_.close_array();
        out_.close_object();
    }

    void stacks(const StackSection& from) {
        list("stacks", from, limits_.rows, [&](const StackEntry& e) {
            shares(e.statistics, from.totals);
            out_.open_array();
            const std::vector<LocationIndex> outermost_first(e.frames.rbegin(), e.frames.rend());
            for (const auto f : outermost_first) out_.number(index_.location(f));
            out_.close_array();
        });
    }

    // --- flame graphs

    void flames() {
        out_.break_line();
        out_.key("flames").open_object();
        if (p_.find<PathSection>())
            flame("paths", flame_of_paths(p_), weighted_instructions(p_).value_or(0));
        if (const auto* stacks = p_.find<StackSection>())
            flame("stacks", flame_of_stacks(p_), stacks->totals.total);
        out_.close_object();
    }

    // `whole` is what frames are shares of: more than the tree's total where some of it has no
    // place.
    void flame(std::string_view key, const FlameTree& tree, std::uint64_t whole) {
        out_.break_line();
        out_.key(key).open_object();
        out_.key("total").number(tree.total);
        out_.key("whole").number(std::max(tree.total, whole));
        out_.key("left_out").number(tree.left_out);
        out_.key("frames").open_array();
        for (const auto& f : tree.frames) {
            out_.number(index_.string(f.function));
            out_.number(f.module);
        }
        out_.close_array();
        out_.key("nodes").open_array();
        for (const auto& n : tree.nodes) {
            out_.number(n.depth);
            out_.number(n.frame);
            out_.number(n.weight);
        }
        out_.close_array();
        out_.close_object();
    }

    const Profile& p_;
    Symbols symbols_;
    const PageLimits limits_;
    PageIndex index_;
    JsonOutput out_;
};

}  // namespace

std::string page_data(const Profile& profile, const SymbolOptions& symbols,
                      const PageLimits& limits) {
    return PageWriter(profile, symbols, limits).write();
}

}  // namespace shadowprof::report
