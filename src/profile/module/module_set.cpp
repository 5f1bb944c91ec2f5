#include "profile/module/module_set.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "model/utf8.h"
#include "profile/rule/rule_parser.h"

namespace shadowprof::profile {

namespace {

RuleOperand operand_of(const shadowprof_word& word) {
    using enum RuleOperand::Kind;
    switch (word.kind) {
        case SHADOWPROF_REGISTER:
            return {register_, word.number};
        case SHADOWPROF_OPERAND:
            return {operand, word.number};
        case SHADOWPROF_RESULT:
            return {result};
        case SHADOWPROF_ARGUMENT:
            return {argument, word.number};
        case SHADOWPROF_RETURNED:
            return {return_};
        case SHADOWPROF_ADDRESS:
            return {address};
        default:
            return {memory};
    }
}

}  // namespace

void ModuleSet::load(const std::string& file, const std::string& arguments) {
    auto worker = std::make_unique<addon::Worker>(file, arguments);
    const auto refuse = [&](const std::string& why) {
        throw UserError(fmt::format("--module {}: {}", file, why), ExitStatus::bad_usage);
    };
    for (const auto& known : workers_)
        if (known->name() == worker->name())
            refuse(fmt::format("another module is called {}, too", worker->name()));
    for (const auto& watch : worker->watches()) {
        ModuleWatch watched;
        watched.module = static_cast<std::uint32_t>(workers_.size());
        watched.number = watch.number;
        for (const auto& word : watch.words) watched.words.push_back(operand_of(word));
        Rule rule;
        rule.name = worker->name();
        rule.text = watch.pattern;
        rule.handed = watched.words;
        try {
            rule.pattern = parse_pattern(watch.pattern);
        } catch (const RuleError& error) {
            refuse(fmt::format("in the pattern '{}': {}", model::printable(watch.pattern),
                               error.what()));
        }
        rules_.push_back(std::move(rule));
        watches_.push_back(std::move(watched));
    }
    workers_.push_back(std::move(worker));
    arguments_.push_back(arguments);
}

std::string ModuleSet::text_of(std::size_t module) const {
    const auto& about = workers_[module]->about();
    const auto& arguments = arguments_[module];
    if (arguments.empty()) return about;
    return fmt::format("{}{}[{}]", about, about.empty() ? "" : " ", model::printable(arguments));
}

void ModuleSet::target_is(pid_t pid) {
    for (auto& worker : workers_) worker->target_is(pid);
}

std::vector<std::string> ModuleSet::warnings() const {
    std::vector<std::string> warnings;
    for (const auto& worker : workers_)
        if (const auto why = worker->ended(); !why.empty())
            warnings.push_back(fmt::format(
                "module {} {}: the profile has nothing of it, and all else", worker->name(), why));
    return warnings;
}

}  // namespace shadowprof::profile
