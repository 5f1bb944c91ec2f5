// LLVM's sample profile as text (clang's manual, "Sample Profile Text Format"): for each function
// the samples of its lines and the targets of its calls, nested where functions were expanded in
// place.
//
//     main:5000:1               total, and how often it was entered
//      2: 1000
//      2.1: 900 parse:900       line offset, discriminator, samples, calls
//      5: square:3000           expanded in place
//       1: 1000
//
// A line was executed as often as the most frequent of its instructions.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>

#include "base/error.h"
#include "model/utf8.h"
#include "report/exports/binary_names.h"
#include "report/exports/branches.h"
#include "report/exports/exports.h"
#include "report/exports/source_scopes.h"

namespace shadowprof::report {

namespace {

struct LineSamples {
    std::uint64_t count = 0;
    std::map<std::string, std::uint64_t> calls;
};

struct FunctionSamples {
    std::uint64_t entered = 0;
    std::map<SourceOffset, LineSamples> lines;
    std::map<std::pair<SourceOffset, std::string>, std::unique_ptr<FunctionSamples>> inlined;

    std::uint64_t total() const {
        std::uint64_t sum = 0;
        for (const auto& [offset, line] : lines) sum += line.count;
        for (const auto& [place, function] : inlined) sum += function->total();
        return sum;
    }
};

std::string offset_text(const SourceOffset& o) {
    return o.discriminator == 0 ? std::to_string(o.line)
                                : fmt::format("{}.{}", o.line, o.discriminator);
}

// Without suffixes that compilers add to the names of clones, and without what has a meaning in
// this format, which no compiler writes.
std::string source_name(const std::string& symbol) {
    return model::printable_word(symbol.substr(0, symbol.find('.')), " :!#[]", '_');
}

class SampleWriter {
  public:
    SampleWriter(const ModuleBranches& branches, const SymbolOptions& options)
        : branches_(branches),
          names_(branches.module(), options),
          scopes_(branches.module(), options) {}

    std::string write() {
        for (const auto& r : disjoint(branches_.ranges()))
            scopes_.each(r.begin, r.last, [&](const std::vector<ScopeFrame>& frames) {
                auto& line = line_at(frames);
                line.count = std::max(line.count, r.count);
            });
        for (const auto& b : branches_.all()) add_entry(b);
        std::vector<std::pair<const std::string*, const FunctionSamples*>> order;
        for (const auto& [name, samples] : functions_) order.emplace_back(&name, &samples);
        std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
            return a.second->total() > b.second->total();
        });
        for (const auto& [name, samples] : order) {
            fmt::format_to(std::back_inserter(out_), "{}:{}:{}\n", *name, samples->total(),
                           samples->entered);
            body(*samples, 1);
        }
        return std::move(out_);
    }

  private:
    LineSamples& line_at(const std::vector<ScopeFrame>& frames) {
        auto* function = &functions_[source_name(frames.front().function)];
        for (std::size_t i = 1; i < frames.size(); ++i) {
            auto& inlined =
                function->inlined[{frames[i - 1].offset, source_name(frames[i].function)}];
            if (!inlined) inlined = std::make_unique<FunctionSamples>();
            function = inlined.get();
        }
        return function->lines[frames.back().offset];
    }

    // A branch to the beginning of a function enters it. It is a call if the instruction is a call.
    void add_entry(const ModuleBranch& b) {
        const auto* callee = b.to_inside ? names_.at(b.to) : nullptr;
        if (!callee || callee->begin != b.to || b.kind == EdgeKind::return_) return;
        const auto* caller = b.from_inside ? names_.at(b.from) : nullptr;
        if (caller == callee && b.kind != EdgeKind::call) return;
        if (const auto known = functions_.find(source_name(callee->symbol));
            known != functions_.end())
            known->second.entered += b.count;
        if (b.kind != EdgeKind::call || !caller) return;
        scopes_.each(b.from, b.from, [&](const std::vector<ScopeFrame>& frames) {
            line_at(frames).calls[source_name(callee->symbol)] += b.count;
        });
    }

    void body(const FunctionSamples& f, std::size_t depth) {
        const std::string indent(depth, ' ');
        auto to = std::back_inserter(out_);
        for (const auto& [offset, line] : f.lines) {
            fmt::format_to(to, "{}{}: {}", indent, offset_text(offset), line.count);
            for (const auto& [callee, count] : line.calls)
                fmt::format_to(to, " {}:{}", callee, count);
            out_ += "\n";
        }
        for (const auto& [place, inlined] : f.inlined) {
            fmt::format_to(to, "{}{}: {}:{}\n", indent, offset_text(place.first), place.second,
                           inlined->total());
            body(*inlined, depth + 1);
        }
    }

    const ModuleBranches& branches_;
    BinaryNames names_;
    SourceScopes scopes_;
    std::map<std::string, FunctionSamples> functions_;
    std::string out_;
};

}  // namespace

Exported export_llvm(const Profile& p, const ExportOptions& options) {
    const ModuleBranches branches(p, options.module);
    Exported out{SampleWriter(branches, options.symbols).write(), branches.notes()};
    if (out.text.empty())
        throw UserError(fmt::format("nothing to export: no code of {} has source lines",
                                    printable(branches.module().path)));
    return out;
}

}  // namespace shadowprof::report
