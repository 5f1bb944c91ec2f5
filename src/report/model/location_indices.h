// Every place in a Profile that refers to a location: for what renumbers them.
#pragma once

#include "report/model/profile.h"

namespace shadowprof::report {

// Calls `use` with every index of a location in the profile.
template <class Use>
void each_location_index(Profile& p, Use use) {
    if (p.stacks)
        for (auto& e : p.stacks->entries)
            for (auto& f : e.frames) use(f);
    if (p.paths)
        for (auto& e : p.paths->entries)
            for (auto& b : e.blocks) use(b.start), use(b.end);
    if (p.edges)
        for (auto& e : p.edges->entries) use(e.from), use(e.to);
    if (p.calls)
        for (auto& e : p.calls->entries) use(e.from), use(e.to);
    if (p.methods)
        for (auto& e : p.methods->entries) use(e.function);
    if (p.values)
        for (auto& e : p.values->entries) {
            use(e.location);
            if (e.context) use(*e.context);
        }
    if (p.latencies)
        for (auto& e : p.latencies->entries) {
            use(e.location);
            if (e.origin) use(*e.origin);
        }
}

}  // namespace shadowprof::report
