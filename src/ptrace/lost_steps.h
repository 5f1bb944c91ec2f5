// Single steps that a virtual machine's hypervisor loses.
#pragma once

namespace shadowprof::ptrace {

// Whether a thread that steps over cpuid stops only behind the next instruction: some hypervisors
// execute cpuid and forget the trap that should follow. This is tried once, on a child of our own.
bool loses_step_over_cpuid();

}  // namespace shadowprof::ptrace
