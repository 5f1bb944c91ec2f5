#include "report/page/page_data.h"

#include <algorithm>
#include <variant>

#include "model/json_output.h"
#include "model/json_values.h"
#include "model/utf8.h"
#include "report/opportunities/opportunities.h"
#include "report/page/page_code.h"
#include "report/page/page_index.h"
#include "report/page/page_timeline.h"
#include "report/text/format.h"
#include "report/tuning.h"
#include "report/views/certainty.h"
#include "report/views/chapters.h"
#include "report/views/flame_tree.h"
#include "report/views/processes.h"
#include "report/views/shares.h"

namespace shadowprof::report {

namespace {

class PageWriter {
  public:
    PageWriter(const Profile& profile, const SymbolOptions& symbols, const PageLimits& limits)
        : p_(profile),
          symbols_(symbols),
          limits_(limits),
          weight_(weight_for(profile, limits.weight)),
          index_(profile) {}

    std::string write() {
        out_.open_object();
        out_.key("tool").text(p_.tool);
        run();
        certainty();
        time();
        numbers();
        findings();
        chapters();
        if (const auto* loads = p_.find<LatencySection>()) level_limits(loads->scale);
        flames();
        write_timeline(out_, p_);
        write_samples(out_, p_);
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
    void texts(std::string_view key, const std::vector<std::string>& items) {
        out_.key(key).open_array();
        for (const auto& item : items) out_.text(printable(item));
        out_.close_array();
    }

    // How the time is spread over them, if there are several.
    void processes() {
        const auto shown = processes_of(p_);
        out_.break_line();
        out_.key("processes").open_object();
        out_.key("summary").text(shown.summary);
        out_.key("rows").open_array();
        for (const auto& row : shown.rows) {
            out_.open_object();
            out_.key("share").rounded(row.share);
            out_.key("cpu").rounded(row.cpu);
            out_.key("name").text(printable(row.name));
            out_.key("note").text(printable(row.note));
            out_.close_object();
        }
        out_.close_array();
        out_.close_object();
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
        processes();
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
        out_.key("known").text(known_text(p_));
        out_.key("shortage").open_object();
        out_.key("text").text(printable(shortage_text(p_)));
        out_.key("is_noise").boolean(certainty_of(p_).is_noise());
        texts("remedies", remedies_for(p_));
        texts("certain", certain_facts(p_));
        out_.close_object();
    }

    // What the overview begins with, unless that is instructions.
    void time() {
        out_.break_line();
        out_.key("weight").text(name_of(weight_));
        out_.key("time");
        if (!has_time(p_)) return out_.null();
        const auto& totals = p_.find<TimeSection>()->totals;
        out_.open_object();
        out_.key("nanoseconds").number(totals.total);
        out_.key("looks").number(totals.samples);
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
        out_.key("follows").boolean(p_.run.is_whole);
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
        out_.key("least_touched").real(tuning::least_touched);
        out_.key("why_no_findings")
            .text(!weighted_instructions(p_)    ? unknown_total_text
                  : certainty_of(p_).is_noise() ? "None can be founded on so few samples."
                                                : "");
        out_.key("all_code").boolean(limits_.all_code);
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
        for (const auto& f :
             find_opportunities(p_, symbols_, limits_.all_code ? Code::all : Code::of_the_user)) {
            out_.break_line();
            out_.open_object();
            out_.key("kind").text(f.kind->name);
            out_.key("at").number(index_.location(f.location));
            if (!f.where.empty()) out_.key("where").text(printable(f.where));
            out_.key("what").text(printable(f.what));
            texts("evidence", f.evidence);
            out_.key("touches").rounded(f.touches);
            out_.key("interval").text(f.interval);
            out_.close_object();
        }
        out_.close_array();
    }

    // --- chapters, and their tables by key

    void chapters() {
        const auto shown = chapters_of(p_, limits_.rows);
        out_.break_line();
        out_.key("chapters").open_array();
        for (const auto& chapter : shown) {
            out_.open_object();
            out_.key("key").text(chapter.key);
            out_.key("name").text(chapter.name);
            out_.key("about").text(chapter.about);
            out_.key("explanation").text(printable(chapter.explanation));
            texts("notes", chapter.notes);
            out_.key("lists").open_array();
            for (const auto& table : chapter.tables) out_.text(table.key);
            out_.close_array();
            out_.close_object();
        }
        out_.close_array();
        out_.break_line();
        out_.key("lists").open_object();
        for (const auto& chapter : shown)
            for (const auto& table : chapter.tables) list(chapter, table);
        out_.close_object();
    }

    // Rows begin with their part of the total; then come the cells.
    void list(const ShownChapter& chapter, const ShownTable& table) {
        std::size_t rows = 0, steps = 0;
        while (rows < table.rows.size() && steps < limits_.path_blocks)
            for (const auto& cell : table.rows[rows++].cells)
                if (const auto* path = std::get_if<ShownSteps>(&cell)) steps += path->size();
        auto rest = table.rest;
        for (std::size_t i = rows; i < table.rows.size(); ++i) rest += table.rows[i].count;
        out_.break_line();
        out_.key(table.key).open_object();
        out_.key("total").number(chapter.totals.total);
        out_.key("unknown").number(chapter.totals.unknown);
        out_.key("exhaustive").boolean(chapter.totals.exhaustive);
        out_.key("is_of_time").boolean(chapter.is_of_time);
        out_.key("entries").number(table.entries);
        out_.key("dropped").number(chapter.dropped);
        out_.key("rest").number(rest);
        out_.key("columns").open_array();
        for (const auto& c : table.columns)
            if (is_shown(c)) column(c);
        out_.close_array();
        out_.key("rows").open_array();
        for (std::size_t i = 0; i < rows; ++i) {
            out_.break_line();
            out_.open_array();
            out_.number(table.rows[i].count);
            for (std::size_t c = 0; c < table.columns.size(); ++c)
                if (is_shown(table.columns[c])) cell(table.columns[c], table.rows[i].cells[c]);
            out_.close_array();
        }
        out_.close_array();
        out_.close_object();
    }

    static bool is_shown(const ShownColumn& column) {
        return column.on != ShownColumn::On::terminal;
    }

    void column(const ShownColumn& c) {
        out_.open_object();
        out_.key("key").text(c.key);
        out_.key("kind").text(name_of(c.kind));
        if (c.on != ShownColumn::On::pictures) {
            out_.key("title").text(c.title);
            out_.key("stress").text(name_of(c.stress));
            out_.key("importance").number(static_cast<std::uint64_t>(c.importance));
            out_.key("stretch").number(c.stretch);
        }
        out_.close_object();
    }

    void cell(const ShownColumn& column, const ShownCell& cell) {
        using enum ShownColumn::Kind;
        if (std::holds_alternative<std::monostate>(cell)) return out_.null();
        switch (column.kind) {
            case text:
            case word:
            case code:
                return out_.number(index_.string(cell_text(p_, column, cell)));
            case count:
                return out_.number(std::get<std::uint64_t>(cell));
            case nanoseconds:
            case ratio:
                return out_.rounded(std::get<double>(cell));
            case function:
            case place:
            case source:
            case instruction:
                return this->place(column, cell);
            default:
                break;
        }
        out_.open_array();
        if (column.kind == share) estimate(std::get<Estimate>(cell));
        if (column.kind == parts)
            for (const auto& part : std::get<ShownParts>(cell)) {
                out_.text(printable(part.name));
                estimate(part.share);
            }
        if (column.kind == stack)
            for (const auto& frame : std::get<ShownSteps>(cell))
                out_.number(index_.location(frame.first));
        if (column.kind == path)
            for (const auto& block : std::get<ShownSteps>(cell)) {
                out_.number(index_.location(block.first));
                out_.number(index_.location(block.last));
                out_.number(block.instructions);
            }
        if (column.kind == pairs)
            for (const auto& [a, b] : std::get<ShownPairs>(cell)) {
                out_.number(a);
                out_.number(b);
            }
        out_.close_array();
    }

    // The index of a location, with that of a caller if there is one; or words instead.
    void place(const ShownColumn& column, const ShownCell& cell) {
        const auto* place = std::get_if<ShownPlace>(&cell);
        if (!place) return out_.text(cell_text(p_, column, cell));
        if (!place->caller) return out_.number(index_.location(place->at));
        out_.open_array();
        out_.number(index_.location(place->at));
        out_.number(index_.location(*place->caller));
        out_.close_array();
    }

    void estimate(const Estimate& e) {
        out_.rounded(e.share);
        out_.rounded(e.low);
        out_.rounded(e.high);
    }

    // Up to which time a load is said to hit each level; empty if nothing was timed.
    void level_limits(const LatencyScale& s) {
        out_.key("level_limits").open_array();
        if (s.clock_is_usable)
            for (const auto limit : s.limits_ns) out_.rounded(limit);
        out_.close_array();
    }

    // --- flame graphs

    void flames() {
        out_.break_line();
        out_.key("flames").open_object();
        if (weight_ == Weight::time) flame_by_time();
        if (const auto* contexts = p_.find<ContextSection>())
            flame("contexts", flame_of_contexts(p_), contexts->totals.total);
        if (p_.find<PathSection>())
            flame("paths", flame_of_paths(p_), weighted_instructions(p_).value_or(0));
        if (weight_ != Weight::time) flame_by_time();
        out_.close_object();
    }

    void flame_by_time() {
        if (has_time(p_)) flame("time", flame_of_time(p_), p_.find<TimeSection>()->totals.total);
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
    const Weight weight_;
    PageIndex index_;
    JsonOutput out_;
};

}  // namespace

std::string page_data(const Profile& profile, const SymbolOptions& symbols,
                      const PageLimits& limits) {
    return PageWriter(profile, symbols, limits).write();
}

}  // namespace shadowprof::report
