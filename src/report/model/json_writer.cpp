#include "report/model/json_writer.h"

#include "report/model/json_output.h"
#include "report/model/output_file.h"

namespace shadowprof::report {

namespace {

class ProfileWriter {
  public:
    std::string write(const Profile& p) {
        out_.open_object();
        out_.line("schema").text(schema_name);
        out_.line("version").number(schema_version);
        out_.line("tool").text(p.tool);
        out_.line("host");
        write(p.host);
        if (!p.hosts.empty()) list("hosts", p.hosts);
        list("targets", p.targets);
        out_.line("run");
        write(p.run);
        out_.line("cost");
        write(p.cost);
        out_.line("coverage");
        write(p.coverage);
        list("modules", p.modules);
        list("locations", p.locations);
        hotlist("stacks", p.stacks);
        hotlist("paths", p.paths);
        hotlist("edges", p.edges);
        hotlist("calls", p.calls);
        hotlist("methods", p.methods);
        hotlist("values", p.values);
        hotlist("latencies", p.latencies);
        out_.break_line();
        out_.close_object();
        return out_.take() + "\n";
    }

  private:
    template <class Item>
    void list(std::string_view key, const std::vector<Item>& items) {
        out_.line(key).open_array();
        lines(items);
        out_.close_array();
    }
    template <class Item>
    void lines(const std::vector<Item>& items) {
        for (const auto& item : items) {
            out_.break_line();
            write(item);
        }
        out_.break_line();
    }

    void texts(std::string_view key, const std::vector<std::string>& items) {
        out_.key(key).open_array();
        for (const auto& item : items) out_.text(item);
        out_.close_array();
    }
    void text_unless_empty(std::string_view key, const std::string& text) {
        if (!text.empty()) out_.key(key).text(text);
    }

    void write(const Host& h) {
        out_.open_object();
        out_.key("cpu").text(h.cpu);
        out_.key("cores").number(h.cores);
        out_.key("kernel").text(h.kernel);
        out_.close_object();
    }

    void write(const Target& t) {
        out_.open_object();
        texts("command", t.command);
        out_.key("pid").signed_number(t.pid);
        out_.key("exit");
        t.exit ? out_.signed_number(*t.exit) : out_.null();
        out_.key("attached").boolean(t.attached);
        out_.close_object();
    }

    void write(const Run& r) {
        out_.open_object();
        out_.key("mode").text(r.mode);
        texts("profiles", r.profiles);
        out_.key("options").open_object();
        for (const auto& [name, value] : r.options) out_.key(name).text(value);
        out_.close_object();
        out_.key("seed").hex(r.seed);
        if (!r.seeds.empty()) {
            out_.key("seeds").open_array();
            for (const auto seed : r.seeds) out_.hex(seed);
            out_.close_array();
        }
        out_.key("started").text(r.started);
        out_.key("duration").real(r.duration);
        out_.key("interrupted");
        r.interrupted ? out_.text(*r.interrupted) : out_.null();
        texts("warnings", r.warnings);
        texts("failures", r.failures);
        out_.close_object();
    }

    void write(const Cost& c) {
        out_.open_object();
        out_.key("stops").number(c.stops);
        out_.key("stop_time").real(c.stop_time);
        out_.key("forks").number(c.forks);
        out_.key("extra_faults").number(c.extra_faults);
        out_.key("extra_cpu").real(c.extra_cpu);
        if (c.slowdown) out_.key("slowdown").real(*c.slowdown);
        out_.close_object();
    }

    void write(const Coverage& c) {
        out_.open_object();
        out_.key("samples").number(c.samples);
        out_.key("instructions").number(c.instructions);
        out_.key("blocks").number(c.blocks);
        if (c.weighted_instructions)
            out_.key("weighted_instructions").number(*c.weighted_instructions);
        out_.key("ended").open_object();
        for (const auto& [reason, n] : c.ended) out_.key(reason).number(n);
        out_.close_object();
        out_.close_object();
    }

    void write(const Module& m) {
        out_.open_object();
        out_.key("path").text(m.path);
        out_.key("build_id").text(m.build_id);
        out_.close_object();
    }

    void write(const Location& l) {
        out_.open_object();
        out_.key("module").number(l.module);
        out_.key("offset").hex(l.offset);
        if (l.content) out_.key("content").hex(l.content);
        if (l.return_address) out_.key("return_address").boolean(true);
        text_unless_empty("function", l.function);
        if (l.function_offset) out_.key("function_offset").hex(*l.function_offset);
        text_unless_empty("file", l.file);
        if (l.line) out_.key("line").number(l.line);
        if (!l.inlined.empty()) {
            out_.key("inlined").open_array();
            for (const auto& frame : l.inlined) write(frame);
            out_.close_array();
        }
        text_unless_empty("text", l.text);
        out_.close_object();
    }

    void write(const InlinedFrame& f) {
        out_.open_object();
        out_.key("function").text(f.function);
        out_.key("file").text(f.file);
        out_.key("line").number(f.line);
        out_.close_object();
    }

    template <class List>
    void hotlist(std::string_view key, const std::optional<List>& list) {
        if (!list) return;
        out_.line(key).open_object();
        members(all_events(*list));
        if (list->dropped) out_.key("dropped").number(list->dropped);
        extra_totals(*list);
        totals_ = &list->totals;
        out_.key("entries").open_array();
        lines(list->entries);
        out_.close_array();
        out_.close_object();
    }
    template <class Entry>
    static Totals all_events(const Hotlist<Entry>& list) {
        return list.totals;
    }
    static Totals all_events(const ValueHotlist& list) { return list.all_executions(); }
    template <class Entry>
    void extra_totals(const Hotlist<Entry>&) {}
    void extra_totals(const ValueHotlist& list) {
        if (list.unread) out_.key("read").number(list.totals.total);
    }
    void extra_totals(const MethodHotlist& list) {
        out_.key("instructions").open_object();
        members(list.instructions);
        out_.close_object();
        instruction_totals_ = &list.instructions;
    }

    void extra_totals(const LatencyHotlist& list) {
        const auto& scale = list.scale;
        out_.key("loads").number(list.loads);
        out_.key("clock").open_object();
        out_.key("usable").boolean(scale.clock_is_usable);
        if (scale.clock_is_usable) {
            // Rounded, as products are, so that they are the same when read and written again.
            out_.key("resolution_ns").rounded(scale.resolution_ticks * scale.nanoseconds_per_tick);
            out_.key("overhead_ns").rounded(scale.overhead_ticks * scale.nanoseconds_per_tick);
            out_.key("longest_ns").real(scale.longest_ns);
            out_.key("typical_ns");
            by_level(scale.typical_ns, [&](double ns) { out_.real(ns); });
            out_.key("limits_ns").open_array();
            for (const auto ns : scale.limits_ns) out_.real(ns);
            out_.close_array();
        } else {
            out_.key("why_not").text(scale.why_not);
        }
        out_.close_object();
        out_.key("caches").open_object();
        out_.key("line").number(scale.caches.line);
        out_.key("sizes").open_array();
        for (const auto& level : scale.caches.levels) out_.number(level.size);
        out_.close_array();
        out_.key("ways").open_array();
        for (const auto& level : scale.caches.levels) out_.number(level.ways);
        out_.close_array();
        out_.key("page").number(scale.caches.page);
        out_.key("pages_in_tlb").number(scale.caches.pages_in_tlb);
        out_.close_object();
    }
    template <class Number, class Write>
    void by_level(const std::array<Number, memory_levels>& numbers, Write write) {
        out_.open_object();
        for (std::size_t level = 0; level < memory_levels; ++level) {
            out_.key(level_names[level]);
            write(numbers[level]);
        }
        out_.close_object();
    }

    void members(const Totals& t) {
        out_.key("total").number(t.total);
        out_.key("unknown").number(t.unknown);
        out_.key("exhaustive").boolean(t.exhaustive);
        out_.key("samples").number(t.samples);
        out_.key("total_squares").hex(t.total_squares);
    }

    void members(const Statistics& s, const Totals& totals) {
        members(s, profile::estimate_share(s, totals));
    }
    void members(const Statistics& s, const profile::Estimate& estimate) {
        members(s, estimate, s.count);
    }
    // `count` is what the counted events stand for, which may be more.
    void members(const Statistics& s, const profile::Estimate& estimate, std::uint64_t count) {
        out_.key("count").number(count);
        out_.key("share").rounded(estimate.share);
        out_.key("interval").open_array();
        out_.rounded(estimate.low);
        out_.rounded(estimate.high);
        out_.close_array();
        out_.key("stats").open_object();
        if (count != s.count) out_.key("read").number(s.count);
        out_.key("samples").number(s.samples);
        out_.key("squares").hex(s.squares);
        out_.key("products").hex(s.products);
        out_.close_object();
    }

    void write(const StackEntry& e) {
        out_.open_object();
        out_.key("frames").open_array();
        for (auto f : e.frames) out_.number(f);
        out_.close_array();
        members(e.statistics, *totals_);
        out_.close_object();
    }

    void write(const PathEntry& e) {
        out_.open_object();
        column("blocks", e.blocks, &PathBlock::start);
        column("ends", e.blocks, &PathBlock::end);
        column("lengths", e.blocks, &PathBlock::instructions);
        out_.key("instructions").number(e.instructions());
        members(e.statistics, *totals_);
        out_.close_object();
    }
    void column(std::string_view key, const std::vector<PathBlock>& blocks,
                std::uint32_t PathBlock::*member) {
        out_.key(key).open_array();
        for (const auto& b : blocks) out_.number(b.*member);
        out_.close_array();
    }

    void write(const EdgeEntry& e) {
        out_.open_object();
        out_.key("from").number(e.from);
        out_.key("to").number(e.to);
        out_.key("kind").text(name(e.kind));
        members(e.statistics, *totals_);
        out_.close_object();
    }

    void write(const CallEntry& e) {
        out_.open_object();
        out_.key("from").number(e.from);
        out_.key("to").number(e.to);
        members(e.statistics, *totals_);
        out_.close_object();
    }

    void write(const MethodEntry& e) {
        out_.open_object();
        out_.key("function").number(e.function);
        out_.key("calls").number(e.calls);
        out_.key("tail_calls").number(e.tail_calls);
        out_.key("back_edges").number(e.back_edges);
        members(e.statistics, *totals_);
        out_.key("instructions").open_object();
        members(e.instructions, *instruction_totals_);
        out_.close_object();
        out_.close_object();
    }

    void write(const ValueEntry& e) {
        out_.open_object();
        out_.key("location").number(e.location);
        out_.key("operand").text(e.operand);
        out_.key("operand_index").number(e.operand_index);
        out_.key("kind").text(name(e.kind));
        out_.key("bits").number(e.bits);
        if (e.context) out_.key("context").number(*e.context);
        out_.key("executions").number(e.all_executions());
        out_.key("unknown").number(unknown_of(e));
        out_.key("stats").open_object();
        if (e.unread) out_.key("read").number(e.executions.total);
        out_.key("exhaustive").boolean(e.executions.exhaustive);
        out_.key("samples").number(e.executions.samples);
        out_.key("total_squares").hex(e.executions.total_squares);
        out_.key("p_inverse").number(e.probability_inverse);
        out_.close_object();
        out_.key("invariance")
            .rounded(e.top.empty()
                         ? 0
                         : profile::estimate_share(e.top.front().statistics, e.executions).share);
        out_.key("top").open_array();
        for (const auto& v : e.top) {
            out_.open_object();
            out_.key("value").hex(v.value);
            members(
                v.statistics,
                profile::estimate_value_share(v.statistics, e.executions, e.probability_inverse),
                e.estimated(v.statistics.count));
            out_.close_object();
        }
        out_.close_array();
        if (e.stride) {
            out_.key("stride").open_object();
            out_.key("step").signed_number(e.stride->step);
            out_.key("share").real(e.stride->share);
            if (e.stride->steps) {
                out_.key("count").number(e.stride->count);
                out_.key("steps").number(e.stride->steps);
            }
            out_.close_object();
        }
        out_.close_object();
    }

    void write(const LatencyEntry& e) {
        const auto number = [&](std::uint64_t n) { out_.number(n); };
        out_.open_object();
        out_.key("location").number(e.location);
        out_.key("operand").text(e.operand);
        out_.key("operand_index").number(e.operand_index);
        out_.key("loads").number(e.loads);
        out_.key("timed").number(e.timed);
        out_.key("disturbed").number(e.disturbed);
        members(e.statistics, *totals_);
        if (e.timed) {
            out_.key("mean_ns").rounded(e.mean_ns());
            out_.key("p50_ns").rounded(profile::latency_quantile(e.histogram, 0.5));
            out_.key("p99_ns").rounded(profile::latency_quantile(e.histogram, 0.99));
        }
        out_.key("sum_ps").signed_number(e.picoseconds);
        out_.key("sum_square_ns").number(e.square_nanoseconds);
        out_.key("histogram").open_array();
        for (std::size_t bin = 0; bin < e.histogram.size(); ++bin) {
            if (e.histogram[bin] == 0) continue;
            out_.open_object();
            out_.key("bin").number(bin);
            out_.key("from_ns").rounded(profile::latency_bin_begin(bin));
            out_.key("count").number(e.histogram[bin]);
            out_.close_object();
        }
        out_.close_array();
        out_.key("timed_levels");
        by_level(e.by_time, number);
        out_.key("modelled").number(e.modelled);
        out_.key("levels");
        by_level(e.by_model, number);
        out_.key("page_walks").number(e.page_walks);
        out_.key("pattern").text(name(e.pattern));
        if (e.pattern == AddressPattern::stride) out_.key("step").signed_number(e.step);
        if (e.origin) out_.key("origin").number(*e.origin);
        out_.close_object();
    }

    static std::uint64_t unknown_of(const ValueEntry& e) {
        std::uint64_t left = e.all_executions();
        for (const auto& v : e.top) left -= e.estimated(v.statistics.count);
        return left;
    }

    JsonOutput out_;
    const Totals* totals_ = nullptr;  // of the hotlist being written
    const Totals* instruction_totals_ = nullptr;
};

}  // namespace

std::string to_json(const Profile& profile) {
    return ProfileWriter().write(profile);
}

void write_profile(const Profile& profile, const std::string& path) {
    write_file(path, to_json(profile));
}

}  // namespace shadowprof::report
