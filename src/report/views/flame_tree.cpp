#include "report/views/flame_tree.h"

#include <algorithm>

#include "profile/common/instruction_text.h"
#include "profile/time/time_words.h"
#include "report/text/format.h"
#include "report/views/contexts.h"
#include "report/views/time_parts.h"

namespace shadowprof::report {

namespace {

using FrameIndex = std::uint32_t;

class Builder {
  public:
    explicit Builder(const Profile& profile) : p_(profile), frame_of_(profile.locations.size()) {
        nodes_.emplace_back();  // the root, which is not a frame
    }

    FrameIndex frame(LocationIndex i) {
        auto& known = frame_of_[i];
        if (known == 0) known = frame(function_label(p_, p_.at(i)), p_.at(i).module) + 1;
        return known - 1;
    }
    FrameIndex frame(std::string function, ModuleIndex module) {
        const auto [entry, is_new] = index_of_.try_emplace(FlameFrame{std::move(function), module},
                                                           static_cast<FrameIndex>(frames_.size()));
        if (is_new) frames_.push_back(entry->first);
        return entry->second;
    }

    // Functions outermost first, from main on; above them `root` if that is not empty.
    std::vector<FrameIndex> stack_of(std::vector<LocationIndex> functions, std::string_view root) {
        const auto main = std::ranges::find_if(functions, [&](LocationIndex function) {
            return p_.at(function).function == "main" &&
                   !profile::is_interpreted(p_, p_.at(function));
        });
        if (main != functions.end()) functions.erase(functions.begin(), main);
        std::vector<FrameIndex> stack;
        if (!root.empty() && !functions.empty())
            stack.push_back(frame(std::string(root), p_.at(functions.back()).module));
        for (const auto function : functions) stack.push_back(frame(function));
        return stack;
    }

    // Outermost first.
    void add(const std::vector<FrameIndex>& stack, std::uint64_t weight) {
        std::size_t at = 0;
        nodes_[0].weight += weight;
        for (const auto f : stack) {
            auto [child, is_new] = nodes_[at].callees.try_emplace(f, nodes_.size());
            at = child->second;
            if (is_new) nodes_.emplace_back();
            nodes_[at].weight += weight;
        }
    }

    FlameTree finish(const FlameLimits& limits) {
        FlameTree tree;
        tree.total = nodes_[0].weight;
        const auto least = std::max<std::uint64_t>(
            1, static_cast<std::uint64_t>(static_cast<double>(tree.total) * limits.least_share));
        struct Open {
            std::size_t node;
            std::uint32_t depth;
            FrameIndex frame;
        };
        std::vector<Open> open;
        const auto push_callees = [&](std::size_t node, std::uint32_t depth) {
            std::vector<std::pair<FrameIndex, std::size_t>> callees(nodes_[node].callees.begin(),
                                                                    nodes_[node].callees.end());
            // They are taken from the end: the heaviest first, ties in the order of frames.
            std::sort(callees.begin(), callees.end(), [&](const auto& a, const auto& b) {
                const auto x = nodes_[a.second].weight, y = nodes_[b.second].weight;
                return x != y ? x < y : a.first > b.first;
            });
            for (const auto& [callee_frame, callee] : callees) {
                const auto weight = nodes_[callee].weight;
                if (weight < least || depth >= limits.greatest_depth)
                    tree.left_out += weight;
                else
                    open.push_back({callee, depth, callee_frame});
            }
        };
        push_callees(0, 0);
        while (!open.empty()) {
            const auto [node, depth, frame] = open.back();
            open.pop_back();
            tree.nodes.push_back({depth, frame, nodes_[node].weight});
            push_callees(node, depth + 1);
        }
        tree.frames = std::move(frames_);
        return tree;
    }

  private:
    struct Node {
        std::uint64_t weight = 0;
        std::map<FrameIndex, std::size_t> callees;
    };
    const Profile& p_;
    std::vector<FrameIndex> frame_of_;  // plus one; 0: not known yet
    std::map<FlameFrame, FrameIndex> index_of_;
    std::vector<FlameFrame> frames_;
    std::vector<Node> nodes_;
};

// The frames of each block of a path, outermost first.
std::vector<std::vector<FrameIndex>> frames_of_blocks(const Profile& p, const PathEntry& path,
                                                      Builder& builder) {
    std::vector<std::vector<FrameIndex>> all;
    std::vector<FrameIndex> stack;
    bool returned = false;
    for (const auto& block : path.blocks) {
        const auto here = builder.frame(block.start);
        if (stack.empty() && returned) {
            // This is the function that called everything seen so far.
            for (auto& earlier : all) earlier.insert(earlier.begin(), here);
            stack.push_back(here);
        } else if (stack.empty()) {
            stack.push_back(here);
        }
        // A tail call or a jump between functions takes the place of its caller.
        stack.back() = here;
        all.push_back(stack);
        const auto exit = parse_instruction(p.at(block.end).text);
        returned = exit.mnemonic == "ret";
        if (is_call(exit))
            stack.push_back(here);  // replaced by the callee
        else if (returned)
            stack.pop_back();
    }
    return all;
}

// Functions that nearly all calls of another come from. Paths end with backward branches, so most
// of them have not seen how their outermost function was called.
class UsualCallers {
  public:
    UsualCallers(const Profile& p, Builder& builder) {
        if (!p.find<CallSection>()) return;
        std::map<FrameIndex, std::map<FrameIndex, std::uint64_t>> callers;
        for (const auto& e : p.find<CallSection>()->entries) {
            const auto from = builder.frame(e.from), to = builder.frame(e.to);
            if (from != to) callers[to][from] += e.statistics.count;
        }
        for (const auto& [callee, counts] : callers) {
            std::uint64_t all = 0, most = 0;
            for (const auto& [caller, n] : counts) {
                all += n;
                if (n <= most) continue;
                most = n;
                caller_of_[callee] = caller;
            }
            constexpr double usual = 0.99;
            if (static_cast<double>(most) < usual * static_cast<double>(all))
                caller_of_.erase(callee);
        }
    }

    // Outermost first; the function itself is not one of them.
    std::vector<FrameIndex> above(FrameIndex function) const {
        std::vector<FrameIndex> chain{function};
        for (auto caller = caller_of_.find(function);
             caller != caller_of_.end() && std::ranges::find(chain, caller->second) == chain.end();
             caller = caller_of_.find(caller->second))
            chain.push_back(caller->second);
        std::ranges::reverse(chain);
        chain.pop_back();
        return chain;
    }

  private:
    std::map<FrameIndex, FrameIndex> caller_of_;
};

}  // namespace

FlameTree flame_of_time(const Profile& profile, const FlameLimits& limits) {
    Builder builder(profile);
    for (const auto& part : time_parts(profile)) {
        std::vector<LocationIndex> functions;
        if (part.entry) functions.assign(part.entry->frames.rbegin(), part.entry->frames.rend());
        auto stack = builder.stack_of(std::move(functions), {});
        if (stack.empty()) stack.push_back(builder.frame(std::string(unknown_frame), 0));
        builder.add(stack, part.nanoseconds);
    }
    return builder.finish(limits);
}

FlameTree flame_of_contexts(const Profile& profile, const FlameLimits& limits) {
    Builder builder(profile);
    for (const auto& part : context_parts(profile)) {
        std::vector<FrameIndex> stack;
        ModuleIndex module = 0;
        if (part.context) {
            stack = builder.stack_of(part.context->frames, root_frame(*part.context));
            module = profile.at(part.context->frames.back()).module;
        }
        if (part.is_of_others) stack.push_back(builder.frame(std::string(others_frame), module));
        builder.add(stack, part.instructions);
    }
    return builder.finish(limits);
}

FlameTree flame_of_paths(const Profile& profile, const FlameLimits& limits) {
    Builder builder(profile);
    if (!profile.find<PathSection>()) return builder.finish(limits);
    const UsualCallers callers(profile, builder);
    for (const auto& path : profile.find<PathSection>()->entries) {
        const auto frames = frames_of_blocks(profile, path, builder);
        for (std::size_t i = 0; i < frames.size(); ++i) {
            auto stack = callers.above(frames[i].front());
            stack.insert(stack.end(), frames[i].begin(), frames[i].end());
            builder.add(stack, path.statistics.count * path.blocks[i].instructions);
        }
    }
    return builder.finish(limits);
}

}  // namespace shadowprof::report
