#include "addon/worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <fstream>
#include <new>
#include <utility>

#include "addon/hosting.h"
#include "addon/tuning.h"
#include "base/error.h"
#include "base/page.h"
#include "model/utf8.h"

namespace shadowprof::addon {

namespace {

std::string signal_name(int signal) {
    const char* const name = sigabbrev_np(signal);
    return name ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

std::uint64_t own_address_space() {
    std::uint64_t pages = 0;
    std::ifstream{"/proc/self/statm"} >> pages;
    return pages * page_size;
}

// A name that stands in lines of text and in options.
bool is_name(const std::string& name) {
    return !name.empty() && name.size() <= 32 && std::all_of(name.begin(), name.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
    });
}

}  // namespace

std::uint64_t Measured::saturated_product(std::uint64_t value, std::uint64_t times) {
    std::uint64_t product = 0;
    return __builtin_mul_overflow(value, times, &product) ? most_of_a_sum
                                                          : std::min(product, most_of_a_sum);
}

void Measured::merge(const Measured& other) {
    if (other.count == 0) return;
    least = count == 0 ? other.least : std::min(least, other.least);
    most = std::max(most, other.most);
    count += other.count;
    sum = std::min(sum + other.sum, most_of_a_sum);
}

// Whether a module that is waited for still gets on.
class Worker::Patience {
  public:
    explicit Patience(const Worker& worker) : worker_(worker) { begin(); }

    // What is said of one that does not.
    std::optional<std::string> has_run_out() {
        if (worker_.progress_->steps != steps_) {
            begin();
            return {};
        }
        if (computed() - computed_ >= tuning::longest_step)
            return fmt::format("computed for {} s without any progress",
                               tuning::longest_step.count());
        if (std::chrono::steady_clock::now() - began_ >= tuning::longest_wait)
            return fmt::format("made no progress for {} s", tuning::longest_wait.count());
        return {};
    }

  private:
    void begin() {
        steps_ = worker_.progress_->steps;
        computed_ = computed();
        began_ = std::chrono::steady_clock::now();
    }
    std::chrono::nanoseconds computed() const {
        clockid_t clock{};
        timespec time{};
        if (clock_getcpuclockid(worker_.pid_, &clock) != 0 || clock_gettime(clock, &time) != 0)
            return {};
        return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
    }

    const Worker& worker_;
    std::uint64_t steps_ = 0;
    std::chrono::nanoseconds computed_{0};
    std::chrono::steady_clock::time_point began_;
};

Worker::Worker(std::string file, std::string arguments)
    : file_(std::move(file)), arguments_(std::move(arguments)), owner_(::getpid()) {
    auto* const page = ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) throw UserError("there is no memory for a module");
    progress_ = new (page) Progress;
    begin_process();
    read_hello();
}

Worker::~Worker() {
    if (::getpid() == owner_ && pid_ > 0) {
        kill_all();
        ::waitpid(pid_, nullptr, 0);
    }
    if (socket_ >= 0) ::close(socket_);
    ::munmap(progress_, sizeof(Progress));
}

void Worker::begin_process() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        throw UserError(fmt::format("no module can be loaded: {}", std::strerror(errno)));
    pid_ = ::fork();
    if (pid_ == 0) run_module(ends[1]);
    ::close(ends[1]);
    socket_ = ends[0];
    if (pid_ < 0) throw UserError(fmt::format("no module can be loaded: {}", std::strerror(errno)));
    ::fcntl(socket_, F_SETFL, O_NONBLOCK);
}

// It has none of our files and hears none of the terminal's signals; and it ends with us.
void Worker::run_module(int socket) {
    constexpr int kept = 3;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != owner_) ::_exit(0);
    ::setsid();
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    const auto most = own_address_space() + tuning::most_memory;
    const rlimit memory{most, most};
    ::setrlimit(RLIMIT_AS, &memory);
    // Where memory is short all the same, it is not the program that has to go.
    if (const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC); score >= 0) {
        static_cast<void>(::write(score, "1000", 4));
        ::close(score);
    }
    for (int number = 1; number < SIGRTMIN; ++number) ::signal(number, SIG_DFL);
    sigset_t signals;
    sigemptyset(&signals);
    ::sigprocmask(SIG_SETMASK, &signals, nullptr);
    const int nothing = ::open("/dev/null", O_RDWR);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, stream);
    if (socket != kept) ::dup2(socket, kept);
    ::close_range(kept + 1, ~0u, 0);
    ::fcntl(kept, F_SETFD, FD_CLOEXEC);
    ::prctl(PR_SET_NAME, "shadowprof-mod");
    host_module(file_, arguments_, kept, progress_->steps);
}

void Worker::read_hello() {
    const auto refuse = [&](const std::string& why) {
        throw UserError(fmt::format("--module {}: {}", file_, why), ExitStatus::bad_usage);
    };
    MessageKind kind{};
    const auto bytes = receive(kind);
    if (!bytes) refuse("the module " + ended_);
    try {
        MessageReader in{*bytes};
        if (kind == MessageKind::refused) refuse(model::printable(in.get_text()));
        if (kind != MessageKind::hello) throw BadMessage();
        name_ = in.get_text();
        about_ = model::printable(in.get_text());
        const auto count = in.get<std::uint32_t>();
        for (std::uint32_t n = 0; n < count; ++n) {
            auto& watch = watches_.emplace_back();
            watch.number = in.get<std::uint8_t>();
            watch.pattern = in.get_text();
            watch.words.resize(
                std::min<std::size_t>(in.get<std::uint32_t>(), SHADOWPROF_MOST_WORDS));
            for (auto& word : watch.words) word = in.get<shadowprof_word>();
        }
    } catch (const BadMessage&) {
        refuse("the module does not keep to the interface");
    }
    if (!is_name(name_)) refuse("the module has no name of letters, digits, '-' and '_'");
    if (watches_.empty()) refuse("the module watches nothing");
}

bool Worker::is_alive() const {
    // A copy of shadowprof that takes a snapshot is not the one that the module listens to.
    return pid_ > 0 && ::getpid() == owner_;
}

std::string Worker::ended() const {
    const std::lock_guard lock{mutex_};
    return ended_;
}

void Worker::end(const std::string& why) {
    if (!is_alive()) return;
    kill_all();
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
    ended_ = why;
}

// With the processes that it has started, unless they have left its group.
void Worker::kill_all() const {
    ::kill(pid_, SIGKILL);
    ::kill(-pid_, SIGKILL);
}

// Its end of the connection is closed. It may live on, if it did that itself.
void Worker::has_ended_itself() {
    siginfo_t ended{};
    const auto deadline = std::chrono::steady_clock::now() + tuning::longest_end;
    while (::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           ended.si_pid == 0) {
        if (std::chrono::steady_clock::now() >= deadline)
            return end("closed its connection, and was ended");
        ::poll(nullptr, 0, 1);
    }
    ::kill(-pid_, SIGKILL);  // what it has started
    int status = 0;
    if (::waitpid(pid_, &status, 0) != pid_) status = 0;
    pid_ = -1;
    ended_ = WIFSIGNALED(status) ? fmt::format("crashed ({})", signal_name(WTERMSIG(status)))
                                 : fmt::format("ended itself (exit {})", WEXITSTATUS(status));
}

// All of it, or the module has ended.
bool Worker::transfer(bool writes, char* data, std::size_t size) {
    Patience patience{*this};
    while (size != 0) {
        const auto done =
            writes ? ::send(socket_, data, size, MSG_NOSIGNAL) : ::recv(socket_, data, size, 0);
        if (done > 0) {
            data += done;
            size -= static_cast<std::size_t>(done);
            continue;
        }
        if (done == 0 || (errno != EAGAIN && errno != EINTR)) {
            has_ended_itself();
            return false;
        }
        pollfd ready{socket_, static_cast<short>(writes ? POLLOUT : POLLIN), 0};
        ::poll(&ready, 1, static_cast<int>(tuning::between_looks.count()));
        if (ready.revents != 0) continue;
        if (const auto why = patience.has_run_out()) {
            end(*why + ", and was ended");
            return false;
        }
    }
    return true;
}

void Worker::send(MessageKind kind, std::string_view bytes) {
    const std::lock_guard lock{mutex_};
    if (!is_alive()) return;
    MessageHead head{kind, static_cast<std::uint32_t>(bytes.size())};
    std::string whole(reinterpret_cast<const char*>(&head), sizeof head);
    whole += bytes;
    transfer(true, whole.data(), whole.size());
}

std::optional<std::string> Worker::receive(MessageKind& kind) {
    const std::lock_guard lock{mutex_};
    MessageHead head;
    if (!is_alive() || !transfer(false, reinterpret_cast<char*>(&head), sizeof head)) return {};
    if (head.bytes > longest_message) {
        end("does not keep to the interface, and was ended");
        return {};
    }
    kind = head.kind;
    std::string bytes(head.bytes, '\0');
    if (!transfer(false, bytes.data(), bytes.size())) return {};
    return bytes;
}

void Worker::target_is(pid_t pid) {
    send(MessageKind::target, MessageWriter().put(pid).bytes());
}

void Worker::look(const shadowprof_instruction& i) {
    MessageWriter out;
    out.put(i);
    for (const char* text : {i.text, i.mnemonic, i.extension, i.category, i.function, i.image})
        out.put_text(text);
    send(MessageKind::look, out.bytes());
}

void Worker::take(std::uint32_t sample, std::span<const shadowprof_event> events) {
    MessageWriter out;
    out.put(sample);
    std::string bytes = out.bytes();
    bytes.append(reinterpret_cast<const char*>(events.data()), events.size_bytes());
    send(MessageKind::take, bytes);
}

void Worker::end_sample(std::uint32_t sample, std::uint64_t weight) {
    send(MessageKind::end_sample, MessageWriter().put(sample).put(weight).bytes());
}

std::optional<Found> Worker::yield() {
    send(MessageKind::yield, {});
    MessageKind kind{};
    const auto bytes = receive(kind);
    if (!bytes) return {};
    try {
        if (kind != MessageKind::found) throw BadMessage();
        return read_found(*bytes);
    } catch (const BadMessage&) {
        const std::lock_guard lock{mutex_};
        end("does not keep to the interface, and was ended");
        return {};
    }
}

}  // namespace shadowprof::addon
