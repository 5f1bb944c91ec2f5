// Output: accepted as if it had been written, and kept so that the sample can read it back.
#pragma once

#include "emu/syscalls/rules/rule.h"

namespace shadowprof::emu::rules {

MaybeAnswer write_accepted(Request&);
MaybeAnswer pwrite_accepted(Request&);
MaybeAnswer writev_accepted(Request&);
MaybeAnswer pwritev_accepted(Request&);
MaybeAnswer pwritev2_accepted(Request&);
MaybeAnswer sendto_accepted(Request&);
MaybeAnswer sendmsg_accepted(Request&);
MaybeAnswer sendmmsg_accepted(Request&);
MaybeAnswer accept_for_file(Request&);
MaybeAnswer accept_change_of_file(Request&);
MaybeAnswer resize_accepted(Request&);
MaybeAnswer allocate_accepted(Request&);
MaybeAnswer accept_for_descriptor(Request&);
ReplicaAction send_file(Request&);

inline constexpr const char* accepted_text =
    "answered: all bytes written, unless to a file that is known to be mapped, which ends";
inline constexpr BurstRule accepts_write{accepted_text, write_accepted};
inline constexpr BurstRule accepts_pwrite{accepted_text, pwrite_accepted};
inline constexpr BurstRule accepts_writev{accepted_text, writev_accepted};
inline constexpr BurstRule accepts_pwritev{accepted_text, pwritev_accepted};
inline constexpr BurstRule accepts_pwritev2{
    "answered: all bytes written, if without flags; otherwise ends", pwritev2_accepted};

inline constexpr BurstRule accepts_send{"answered: all bytes sent", sendto_accepted};
inline constexpr BurstRule accepts_sendmsg{"answered: all bytes sent", sendmsg_accepted};
inline constexpr BurstRule accepts_sendmmsg{"answered: all bytes of all messages sent",
                                            sendmmsg_accepted};
inline constexpr ReplicaRule sends_file{
    "answered, all bytes sent, if from a file to a socket or pipe; otherwise ends", send_file};

inline constexpr const char* unless_no_file =
    "answered: success, unless known to be no file; otherwise ends";
inline constexpr BurstRule file_call_succeeds{unless_no_file, accept_for_file};
inline constexpr BurstRule file_change_succeeds{unless_no_file, accept_change_of_file};
inline constexpr const char* size_changes =
    "answered: success, unless known to be no file, or to be mapped; otherwise ends";
inline constexpr BurstRule accepts_resize{size_changes, resize_accepted};
inline constexpr BurstRule accepts_allocation{size_changes, allocate_accepted};
inline constexpr BurstRule descriptor_call_succeeds{"answered: success", accept_for_descriptor};

}  // namespace shadowprof::emu::rules
