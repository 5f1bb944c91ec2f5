// Single steps that a virtual machine's hypervisor loses.
#pragma once

namespace shadowprof::ptrace {

// Whether a thread that steps over cpuid is only stopped behind the instruction after it. Some
// hypervisors carry cpuid out and forget the trap that should follow. Tried once, on a child of our
// own.
bool loses_step_over_cpuid();

}  // namespace shadowprof::ptrace
