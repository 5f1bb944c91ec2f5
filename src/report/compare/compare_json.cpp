#include "report/compare/compare_json.h"

#include <optional>

#include "model/json_output.h"

namespace shadowprof::report {

namespace {

class CompareWriter {
  public:
    std::string write(const Comparison& c) {
        out_.open_object();
        out_.line("schema").text(compare_schema_name);
        out_.line("version").number(compare_schema_version);
        out_.line("sampled");
        write(c.sampled);
        out_.line("perfect");
        write(c.perfect);
        list("notes", c.notes);

        out_.line("coverage");
        if (open(c.coverage)) exactly(*c.coverage.measure);
        out_.close_object();
        out_.line("path_accuracy");
        if (open(c.paths)) {
            const auto& m = *c.paths.measure;
            figure(m.accuracy);
            out_.key("paths").number(m.paths);
            out_.key("hottest").number(m.hottest);
            out_.key("found").number(m.found);
        }
        out_.close_object();
        out_.line("edge_accuracy");
        if (open(c.edges)) figure(*c.edges.measure);
        out_.close_object();
        out_.line("diff_top");
        if (open(c.values)) {
            figure(c.values.measure->difference);
            out_.key("operands").number(c.values.measure->operands);
        }
        out_.close_object();
        overlap("call_overlap", c.calls);
        overlap("method_overlap", c.methods);
        // Few profiles have them.
        if (c.streams.measure) overlap("stream_overlap", c.streams);

        list("lists", c.lists);
        list("functions", c.functions);
        out_.break_line();
        out_.close_object();
        return out_.take() + "\n";
    }

  private:
    template <class Item>
    void list(std::string_view key, const std::vector<Item>& items) {
        out_.line(key).open_array();
        for (const auto& item : items) {
            out_.break_line();
            write(item);
        }
        out_.break_line();
        out_.close_array();
    }

    // Returns whether there is a measure to write. If not, writes the reason.
    template <class M>
    bool open(const Measured<M>& measured) {
        out_.open_object();
        if (measured.measure) return true;
        out_.key("value").null();
        out_.key("why_not").text(measured.why_not);
        return false;
    }
    void figure(const Figure& figure) {
        out_.key("value").real(figure.value);
        out_.key("bounds").open_array();
        out_.real(figure.low);
        out_.real(figure.high);
        out_.close_array();
    }
    void exactly(double value) { figure({value, value, value}); }
    void overlap(std::string_view key, const Measured<TopOverlap>& measured) {
        out_.line(key);
        if (open(measured)) {
            const auto& m = *measured.measure;
            figure(m.accuracy);
            out_.key("overlap").real(m.overlap);
            out_.key("best").real(m.best);
            out_.key("members").number(m.members);
        }
        out_.close_object();
    }

    void write(const std::string& text) { out_.text(text); }
    void write(const ComparedProfile& p) {
        out_.open_object();
        out_.key("file").text(p.name);
        out_.key("command").text(p.command);
        out_.key("mode").text(p.mode);
        out_.key("samples").number(p.samples);
        out_.key("instructions").number(p.instructions);
        out_.key("exhaustive").boolean(p.exhaustive);
        out_.close_object();
    }
    void write(const ComparedList& l) {
        out_.open_object();
        out_.key("list").text(l.name);
        out_.key("sampled");
        write(l.sampled);
        out_.key("perfect");
        write(l.perfect);
        out_.key("in_both").number(l.in_both);
        out_.close_object();
    }
    void write(const ListExtent& e) {
        out_.open_object();
        out_.key("entries").number(e.entries);
        out_.key("dropped").number(e.dropped);
        out_.key("unlisted").real(e.unlisted);
        out_.close_object();
    }
    void write(const ComparedFunction& f) {
        out_.open_object();
        if (!f.name.empty()) out_.key("function").text(f.name);
        out_.key("module").text(f.module);
        if (f.offset) out_.key("offset").hex(*f.offset);
        share("sampled_share", f.sampled_share);
        share("perfect_share", f.perfect_share);
        share("path_accuracy", f.path_accuracy);
        share("edge_accuracy", f.edge_accuracy);
        share("diff_top", f.diff_top);
        share("call_overlap", f.call_overlap);
        out_.close_object();
    }
    void share(std::string_view key, const std::optional<double>& share) {
        out_.key(key);
        share ? out_.real(*share) : out_.null();
    }

    JsonOutput out_;
};

}  // namespace

std::string to_json(const Comparison& comparison) {
    return CompareWriter().write(comparison);
}

}  // namespace shadowprof::report
