// Whether a process can be made to fork replicas without harm.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace shadowprof::inject {

// One clause that says why the process must never be made to fork; empty if nothing is against it.
// `launched`: we are the parent of the process.
std::string why_never_to_fork(pid_t pid, pid_t tid, bool launched);

inline constexpr const char* because_it_adopts =
    "it adopts orphans (PR_SET_CHILD_SUBREAPER), so replicas would become its children";
inline constexpr const char* program_wrote_into_it = "the program wrote into shadowprof's memory";
inline constexpr const char* because_it_dispatches_its_calls =
    "it answers system calls itself (PR_SET_SYSCALL_USER_DISPATCH)";
inline constexpr const char* because_of_tiles =
    "it uses AMX's tiles, which the kernel does not copy when a process forks";

inline constexpr const char* because_it_confined_itself =
    "it has a seccomp filter that it had not when profiling began";

// What forbids a fork at some later moment.
struct Obstacle {
    std::string why;
    bool may_pass = false;  // it may go away by itself
};
// What is against a fork now: too little memory or room for processes, or a process of which /proc
// says nothing any more.
std::optional<Obstacle> obstacle_now(pid_t pid);

// Whether processes that a thread creates are in its own pid namespace. After unshare(CLONE_NEWPID)
// the next one would be the init of a new namespace, which ends with it. The question is asked
// while the thread waits, so the file that answers it stays open.
class ChildrensNamespace {
  public:
    explicit ChildrensNamespace(pid_t pid);
    ~ChildrensNamespace();
    ChildrensNamespace(const ChildrensNamespace&) = delete;
    ChildrensNamespace& operator=(const ChildrensNamespace&) = delete;

    bool is_its_own(pid_t tid);

    static constexpr const char* is_another =
        "its children are in another pid namespace than it, or may be: /proc does not say";

  private:
    std::string of_children() const;
    void look_at(pid_t tid);

    pid_t pid_;
    std::string own_;  // empty: nobody may ask
    pid_t tid_ = 0;
    int link_ = -1;
};

// The restrictions of a thread that must not have changed since the area was put in.
struct Confinement {
    int seccomp_mode = 0;
    int seccomp_filters = 0;
    bool shadow_stack = false;

    bool operator==(const Confinement&) const = default;
};
// One clause that says why a thread must not make system calls of ours; empty if it may.
std::string why_never_to_call(pid_t pid, pid_t tid, bool launched);
std::optional<Confinement> confinement_of(pid_t pid, pid_t tid);
// From the text of its file "status"; nothing if that is empty.
std::optional<Confinement> confinement_in(std::string_view status);

// Whether the process's pid namespace is ours: pids are the same for it and us.
bool shares_pid_namespace(pid_t pid);
// The pid, in our namespace, of the process that has pid `number` in the namespace of `neighbour`.
std::optional<pid_t> pid_in_our_namespace(pid_t number, pid_t neighbour);

}  // namespace shadowprof::inject
