#include "report/json_writer.h"

#include "report/json_output.h"
#include "report/output_file.h"

namespace shadowprof::report {

namespace {

class Writer {
  public:
    std::string write(const Profile& p) {
        out_.open_object();
        line("schema").text(schema_name);
        line("version").number(schema_version);
        line("tool").text(p.tool);
        line("host");
        write(p.host);
        list("targets", p.targets);
        line("run");
        write(p.run);
        line("cost");
        write(p.cost);
        line("coverage");
        write(p.coverage);
        list("modules", p.modules);
        list("locations", p.locations);
        hotlist("stacks", p.stacks);
        hotlist("paths", p.paths);
        hotlist("edges", p.edges);
        hotlist("calls", p.calls);
        hotlist("methods", p.methods);
        hotlist("values", p.values);
        out_.break_line();
        out_.close_object();
        return out_.take() + "\n";
    }

  private:
    JsonOutput& line(std::string_view key) {
        out_.break_line();
        return out_.key(key);
    }

    template <class Item>
    void list(std::string_view key, const std::vector<Item>& items) {
        line(key).open_array();
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
        if (c.slowdown) out_.key("slowdown").real(*c.slowdown);
        out_.close_object();
    }

    void write(const Coverage& c) {
        out_.open_object();
        out_.key("samples").number(c.samples);
        out_.key("instructions").number(c.instructions);
        out_.key("blocks").number(c.blocks);
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
        line(key).open_object();
        members(list->totals);
        if (list->dropped) out_.key("dropped").number(list->dropped);
        extra_totals(*list);
        totals_ = &list->totals;
        out_.key("entries").open_array();
        lines(list->entries);
        out_.close_array();
        out_.close_object();
    }
    template <class Entry>
    void extra_totals(const Hotlist<Entry>&) {}
    void extra_totals(const MethodHotlist& list) {
        out_.key("instructions").open_object();
        members(list.instructions);
        out_.close_object();
        instruction_totals_ = &list.instructions;
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
        out_.key("count").number(s.count);
        out_.key("share").rounded(estimate.share);
        out_.key("interval").open_array();
        out_.rounded(estimate.low);
        out_.rounded(estimate.high);
        out_.close_array();
        out_.key("stats").open_object();
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
        out_.key("executions").number(e.executions.total);
        out_.key("unknown").number(e.executions.unknown);
        out_.key("stats").open_object();
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
            members(v.statistics, profile::estimate_value_share(v.statistics, e.executions,
                                                                e.probability_inverse));
            out_.close_object();
        }
        out_.close_array();
        if (e.stride) {
            out_.key("stride").open_object();
            out_.key("step").signed_number(e.stride->step);
            out_.key("share").real(e.stride->share);
            out_.close_object();
        }
        out_.close_object();
    }

    JsonOutput out_;
    const Totals* totals_ = nullptr;  // of the hotlist being written
    const Totals* instruction_totals_ = nullptr;
};

}  // namespace

std::string to_json(const Profile& profile) {
    return Writer().write(profile);
}

void write_profile(const Profile& profile, const std::string& path) {
    write_file(path, to_json(profile));
}

}  // namespace shadowprof::report
