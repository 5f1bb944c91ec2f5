#include "profile/rule/rule_section.h"

#include <utility>

namespace shadowprof::profile {

void write_rules(model::JsonOutput& out, const std::vector<RuleFound>& rules) {
    out.key("rules").open_array();
    for (const auto& rule : rules) {
        out.break_line();
        out.open_object();
        out.key("name").text(rule.name);
        out.key("text").text(rule.text);
        model::write_totals(out, rule.totals);
        out.key("stands_for").number(rule.stands_for);
        out.close_object();
    }
    out.close_array();
}

void read_rules(model::JsonCursor& in, std::vector<RuleFound>& rules) {
    in.array([&] {
        auto& rule = rules.emplace_back();
        std::apply(
            [&](auto... totals) {
                in.object(model::required("name", [&] { rule.name = in.text(); }),
                          model::required("text", [&] { rule.text = in.text(); }), totals...,
                          model::required("stands_for", [&] { rule.stands_for = in.number(); }));
            },
            model::keys_of_totals(in, rule.totals));
        for (std::size_t n = 0; n + 1 < rules.size(); ++n)
            if (rules[n].name == rules.back().name) in.fail("two rules of one name");
        if (rule.stands_for < rule.totals.total)
            in.fail("a rule's events stand for less than they are");
    });
}

std::string schema_of_rules() {
    model::ObjectSchema rule;
    rule.extend("totals");
    rule.add("name", model::Json<std::string>::schema(), true);
    rule.add("text", model::Json<std::string>::schema(), true, "pattern and action");
    rule.add("stands_for", model::schema_ref("count"), true,
             "all events, estimated where not all were seen");
    return R"({"type": "array", "items": )" + rule.take() + "}";
}

void merge_rules(std::vector<RuleFound>& into, const std::vector<RuleFound>& other) {
    for (const auto& rule : other) {
        const auto same = std::find_if(into.begin(), into.end(), [&](const RuleFound& known) {
            return known.name == rule.name;
        });
        if (same == into.end()) {
            into.push_back(rule);
            continue;
        }
        model::add_up(same->totals, rule.totals);
        model::add_up(same->stands_for, rule.stands_for);
        same->text = std::min(same->text, rule.text);
    }
    std::sort(into.begin(), into.end(),
              [](const RuleFound& a, const RuleFound& b) { return a.name < b.name; });
}

}  // namespace shadowprof::profile
