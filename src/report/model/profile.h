// report: what people read of a Profile. Symbols and source lines are found here. It knows
// hotlists, blocks and instructions, and nothing of engines or of live processes.
//
// This file: the names of profiles and of their sections, as this room uses them.
#pragma once

#include "model/profile.h"
#include "model/statistics.h"
#include "profile/call/call_section.h"
#include "profile/caller/caller_section.h"
#include "profile/common/instruction_text.h"
#include "profile/context/context_section.h"
#include "profile/edge/edge_section.h"
#include "profile/latency/latency_section.h"
#include "profile/method/method_section.h"
#include "profile/path/path_section.h"
#include "profile/time/time_section.h"
#include "profile/timeline/timeline_section.h"
#include "profile/value/value_section.h"

namespace shadowprof::report {

using namespace model;

using profile::CallerSection, profile::CallSection, profile::ContextSection, profile::EdgeSection,
    profile::LatencySection, profile::MethodSection, profile::PathSection, profile::TimeSection,
    profile::ValueSection;
using CallEntry = CallSection::Entry;
using CallerEntry = CallerSection::Entry;
using ContextEntry = ContextSection::Entry;
using EdgeEntry = EdgeSection::Entry;
using LatencyEntry = LatencySection::Entry;
using MethodEntry = MethodSection::Entry;
using PathBlock = profile::PathBlock<LocationIndex>;
using PathEntry = PathSection::Entry;
using ValueEntry = ValueSection::Entry;

using machine::memory_levels;
using profile::AddressPattern, profile::EdgeKind, profile::LatencyScale, profile::Stride,
    profile::ValueKind, profile::ValueShare;
using profile::InstructionText, profile::RegisterFamily, profile::is_memory, profile::is_number,
    profile::mentions, profile::parse_instruction, profile::register_family, profile::registers_in,
    profile::vector_family;

}  // namespace shadowprof::report
