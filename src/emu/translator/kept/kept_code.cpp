#include "emu/translator/kept/kept_code.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "emu/translator/translator.h"
#include "emu/tuning.h"

namespace shadowprof::emu::translator {

KeptCode::KeptCode(GuestCode& code, Asking asking) : code_(code) {
    // What the loads of a run are, or where errno is, is nothing that a later run knows.
    const auto plan = code.plan();
    if (!plan.choice() && !plan.functions() && !plan.has(trace::Capture::error_before))
        kind_ = fmt::format("{:02x}-{}", plan.captures(), static_cast<unsigned>(asking));
    // A program may write over its code cache. What it could spoil are programs of its own user.
    struct stat process {};
    if (stat(fmt::format("/proc/{}", code.pid()).c_str(), &process) != 0)
        kind_.clear();
    else if (!kind_.empty() && process.st_uid != geteuid())
        kind_ += fmt::format("-{}", process.st_uid);
}

std::string KeptCode::file_of(const Module& module) const {
    return fmt::format("units-{}-{}", module.build_id, kind_);
}

KeptCode::Module* KeptCode::module_at(Address pc) {
    if (last_ && last_->range.contains(pc) && maps_ == code_.current_maps()) return last_;
    maps_ = code_.maps();
    const auto* const mapped = maps_->module_at(pc);
    if (!mapped || mapped->build_id.empty()) return nullptr;
    const auto known = std::ranges::find_if(modules_, [&](const auto& module) {
        return module->range == mapped->range && module->build_id == mapped->build_id;
    });
    if (known != modules_.end()) return last_ = known->get();
    auto module = std::make_unique<Module>();
    module->build_id = mapped->build_id;
    module->range = mapped->range;
    module->bias = mapped->bias;
    module->id = code_.module_at(pc);
    modules_.push_back(std::move(module));
    return last_ = modules_.back().get();
}

void KeptCode::read(Module& module, const KeptFacts& ground) {
    module.is_read = true;
    const auto* const mapping = maps_->mapping_at(module.range.begin);
    if (!mapping || !mapping->is_file() || mapping->deleted) return;
    const auto identity = identity_of(fmt::format("/proc/{}/root{}", code_.pid(), mapping->path));
    if (!identity) return;
    module.facts = ground;
    module.facts->file = *identity;
    module.facts->device = mapping->device;
    module.facts->inode = mapping->inode;
    module.units = KeptUnits::read(file_of(module), *module.facts);
}

std::optional<KeptCode::Found> KeptCode::find(Address pc, Version version,
                                              const KeptFacts& ground) {
    if (kind_.empty()) return {};
    auto* const module = module_at(pc);
    if (!module) return {};
    if (!module->is_read) read(*module, ground);
    if (!module->units) return {};
    const auto* const unit = module->units->find(pc.value - module->bias, version);
    if (!unit) return {};
    return Found{module, unit};
}

void KeptCode::keep(const Translator& translator) const {
    if (kind_.empty()) return;
    auto all = translator.news();
    for (const auto& module : modules_) {
        if (!module->facts) continue;
        const auto before = module->units ? module->units->all().size() : 0;
        const auto& news = all[module->id];
        if (news.executed.size() * tuning::least_part_of_news <= before &&
            news.guessed.size() * tuning::least_part_of_guesses <= before)
            continue;
        const auto is_executed = [&](std::uint64_t offset) {
            return translator.was_executed({module->id, offset, 0});
        };
        KeptUnitsWriter out;
        for (const bool executed : {true, false}) {
            translator.write(out, *module, executed ? news.executed : news.guessed, executed);
            if (module->units) out.add_rest_of(*module->units, executed, is_executed);
        }
        out.write(file_of(*module), *module->facts);
    }
}

}  // namespace shadowprof::emu::translator
