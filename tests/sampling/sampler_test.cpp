// The sampler with a clock, a thread list and prices of the test's own. Nothing is traced, and no
// time passes but in the test's clock.
#include "sampling/schedule/sampler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <numeric>

using namespace shadowprof;
using namespace shadowprof::sampling;

namespace {

// What happens in a test, and when.
struct World {
    Clock::time_point time = Clock::time_point{} + std::chrono::hours{1};
    const Clock::time_point begin = time;

    void pass(Seconds seconds) { time = after(time, seconds); }
    Seconds passed() const { return time - begin; }

    std::list<ptrace::Thread> threads;
    // The thread that runs in each millisecond of a period.
    std::vector<std::size_t> runs_in;
    bool all_run = false;  // instead
    // The next thread that stops is behind a call, and to let it go on takes so long.
    std::optional<Seconds> behind_call;
    std::vector<ptrace::Thread*> asked;

    struct Sample {
        const char* kind;
        pid_t tid;
        Seconds at, waited;
    };
    std::vector<Sample> samples;
    std::vector<pid_t> joined;  // by these threads
    int let_go = 0;
    bool is_forgotten = false;
};

// One processor, on which threads take turns.
class Threads : public ThreadList {
  public:
    explicit Threads(World& world) : world_(world) {}

    std::vector<ptrace::Thread*> all() override {
        std::vector<ptrace::Thread*> all;
        for (auto& thread : world_.threads) all.push_back(&thread);
        return all;
    }
    ptrace::Thread* find(pid_t tid) override {
        for (auto& thread : world_.threads)
            if (thread.tid() == tid) return &thread;
        return nullptr;
    }
    bool is_running(const ptrace::Thread& thread) override {
        if (world_.all_run) return true;
        const auto milliseconds = static_cast<std::size_t>(world_.passed() / Seconds{0.001});
        const auto turn = world_.runs_in[milliseconds % world_.runs_in.size()];
        return static_cast<pid_t>(turn) == thread.tid();
    }
    // So nobody is displaced.
    std::optional<proc::ThreadStat> stat(pid_t) override { return {}; }
    bool ask_to_stop(ptrace::Thread& thread) override {
        world_.asked.push_back(&thread);
        return true;
    }
    std::optional<ptrace::Registers> place_to_begin(ptrace::Thread&, bool) override {
        if (world_.behind_call) return {};
        return ptrace::Registers{};
    }
    Seconds let_go(ptrace::Thread&) override {
        const auto took = std::exchange(world_.behind_call, std::nullopt).value_or(Seconds{0});
        world_.pass(took);
        return took;
    }
    bool finishes_broken_call(const ptrace::Event&) override { return false; }
    bool let_go_untraced(const ptrace::Event&) override {
        ++world_.let_go;
        return true;
    }
    void program_is_new() override {}
    void leave_no_trace() override {}

  private:
    World& world_;
};

// A stop costs what it takes, and one without a sample 40 µs.
struct TestPrices : Prices {
    void stopped(Clock::time_point, Seconds) override {}
    PriceOfStop of_stop(Seconds held, std::optional<Seconds>) override { return {held, {}}; }
    Seconds of_passing_stop() override { return Seconds{40e-6}; }
    Seconds of_replica(Seconds) override { return {}; }
    double taken_beside() const override { return 0; }
};

// What a test wants of a kind of sample.
struct Wish {
    std::function<Seconds()> price = [] { return Seconds{0.001}; };
    std::function<Seconds()> risk = [] { return Seconds{0}; };
    std::function<std::optional<inject::Obstacle>()> obstacle = [] {
        return std::optional<inject::Obstacle>{};
    };
    bool is_biased = false, is_cheap = false;
};

const std::atomic<double> precision{1};

class TestKind : public SampleKind {
  public:
    TestKind(World& world, const char* name, Wish wish, const Options& options)
        : SampleKind(Pacer{options, precision, Random{options.seed + 3},
                           std::make_unique<TestPrices>(), [&world] { return world.time; }}),
          world_(world),
          name_(name),
          wish_(std::move(wish)),
          all_threads_(options.all_threads),
          last_(world.time) {}

    const char* name() const override { return name_; }
    bool prepare() override {
        waited_ = world_.time - last_;
        if (auto obstacle = wish_.obstacle()) give_up(*obstacle);
        return !obstacle();
    }
    void begin(ptrace::Thread& thread, const ptrace::Registers&) override {
        world_.samples.push_back({name_, thread.tid(), world_.passed(), waited_});
        const auto price = wish_.price();
        world_.pass(price);
        pacer().begins();
        pacer().finished(price);
        last_ = world_.time;
    }
    bool lets_others_join() const override { return all_threads_; }
    void join(ptrace::Thread& thread, const ptrace::Registers&) override {
        world_.joined.push_back(thread.tid());
        pacer().held_again(wish_.price());
    }
    void end(const std::string&) override {}
    Seconds risk_of_next() const override { return wish_.risk(); }
    const char* what_is_dear() const override { return "forking it, or tracing it at all,"; }
    bool is_biased() const override { return wish_.is_biased; }
    bool one_may_be_too_dear() const override { return !wish_.is_cheap; }

  private:
    World& world_;
    const char* name_;
    Wish wish_;
    bool all_threads_;
    Clock::time_point last_;
    Seconds waited_{0};
};

class Scene {
  public:
    explicit Scene(Wish replicas, std::optional<Wish> bursts = {}, Options options = {})
        : options_(std::move(options)) {
        options_.seed = 5;
        for (pid_t tid = 0; tid < 3; ++tid) world.threads.emplace_back(0, tid);
        world.runs_in = {0};
        Sampler::MakeKind make_stand_in;
        if (bursts)
            make_stand_in = [this, wish = *bursts] {
                return std::make_unique<TestKind>(world, "burst", wish, options_);
            };
        sampler = std::make_unique<Sampler>(
            Sampler::Collaborators{.options = options_,
                                   .threads = std::make_unique<Threads>(world),
                                   .random = Random{7},
                                   .without_preferred = without,
                                   .is_behind = [] { return false; },
                                   .forget = [this] { world.is_forgotten = true; },
                                   .stand_for_rest = [](Seconds) {},
                                   .now = [this] { return world.time; }},
            std::make_unique<TestKind>(world, "replica", std::move(replicas), options_),
            std::move(make_stand_in));
    }

    // As a session does it.
    void run_for(Seconds time) {
        const auto end = after(world.time, time);
        while (!sampler->is_complete()) {
            const auto next = sampler->next_tick();
            if (next > end) break;
            world.time = std::max(world.time, next);
            sampler->tick();
            for (auto* const thread : std::exchange(world.asked, {})) {
                world.pass(Seconds{20e-6});
                sampler->take({.kind = ptrace::EventKind::interrupted, .thread = thread});
            }
        }
        world.time = std::max(world.time, end);
    }
    std::size_t count(std::string_view kind, Seconds from = Seconds{0},
                      Seconds to = Seconds{1e9}) const {
        return static_cast<std::size_t>(
            std::ranges::count_if(world.samples, [&](const World::Sample& sample) {
                return kind == sample.kind && sample.at >= from && sample.at < to;
            }));
    }
    double slowdown() const { return sampler->cost().price / world.passed(); }

    World world;
    WithoutPreferredKind without;
    std::unique_ptr<Sampler> sampler;

  private:
    Options options_;
};

struct Waits {
    double mean = 0, deviation = 0;
};
// Without the first ones, before costs are known.
Waits waits_of(const World& world) {
    std::vector<double> waits;
    for (std::size_t n = 20; n < world.samples.size(); ++n)
        waits.push_back(world.samples[n].waited.count());
    Waits found;
    const auto count = static_cast<double>(waits.size());
    found.mean = std::accumulate(waits.begin(), waits.end(), 0.0) / count;
    for (const auto wait : waits) found.deviation += std::pow(wait - found.mean, 2) / count;
    found.deviation = std::sqrt(found.deviation);
    return found;
}

Wish priced(double seconds) {
    return {.price = [seconds] { return Seconds{seconds}; }};
}

}  // namespace

TEST_CASE("samples, and what is left at the end, stand for all that the program has computed") {
    struct Computing : TestPrices {
        Seconds program_computed() const override { return computed; }
        Seconds computed{3};  // before
    };
    auto prices = std::make_unique<Computing>();
    auto& program = *prices;
    const std::atomic<double> precision{1};
    Pacer pacer{Options{}, precision, Random{1}, std::move(prices)};
    Seconds all{0};
    for (const double passes : {0.1, 0.5, 0.02, 0.3, 0.3, 0.9, 0.01}) {
        program.computed += Seconds{passes};
        pacer.waited();
        all += pacer.begins();
    }
    program.computed += Seconds{0.7};
    CHECK((all + pacer.rest()).count() == doctest::Approx(2.83));
    CHECK(pacer.rest() < Seconds{2.5});
}

TEST_CASE("the mean wait is what the budget allows, and waits are random") {
    for (const double overhead : {0.01, 0.05}) {
        Options options;
        options.overhead = Overhead{overhead};
        Scene scene{priced(0.001), {}, options};
        scene.run_for(Seconds{400});
        const auto waits = waits_of(scene.world);
        CHECK(waits.mean == doctest::Approx(0.001 / overhead).epsilon(0.05));
        // An exponential distribution's deviation is its mean.
        CHECK(waits.deviation == doctest::Approx(waits.mean).epsilon(0.1));
    }
}

TEST_CASE("rare samples come at more even intervals, and no more often") {
    Scene scene{priced(0.01)};
    scene.run_for(Seconds{4000});
    const auto waits = waits_of(scene.world);
    CHECK(waits.mean == doctest::Approx(1).epsilon(0.05));
    CHECK(waits.deviation < 0.5 * waits.mean);
}

TEST_CASE("samples are no more frequent than a given period, however cheap") {
    Options options;
    options.period = Seconds{0.2};
    Scene scene{priced(1e-5), {}, options};
    scene.run_for(Seconds{400});
    CHECK(waits_of(scene.world).mean == doctest::Approx(0.2).epsilon(0.1));
}

TEST_CASE("costs keep to the budget, whatever samples come to") {
    // Most are cheap, one of twenty costs a hundred times as much, and all become dearer.
    Random random{11};
    Scene* scene = nullptr;
    Wish wish;
    wish.price = [&] {
        const auto grown = 1 + scene->world.passed().count() / 200;
        return Seconds{(random.chance(0.05) ? 0.02 : 0.0002) * grown};
    };
    Scene made{wish};
    scene = &made;
    made.run_for(Seconds{600});
    CHECK(made.slowdown() < 0.0102);
    CHECK(made.slowdown() > 0.008);
}

TEST_CASE("after a sample that was very dear the next ones wait until it is earned") {
    bool is_first = true;
    Wish wish;
    wish.price = [&] { return std::exchange(is_first, false) ? Seconds{1} : Seconds{0.0001}; };
    Scene scene{wish};
    scene.run_for(Seconds{90});
    CHECK(scene.world.samples.size() < 6);
    scene.run_for(Seconds{410});
    CHECK(scene.slowdown() < 0.0102);
    CHECK(scene.world.samples.size() > 50);
}

TEST_CASE("what a program's own stops cost comes off the budget, but for a tenth of it") {
    Scene scene{priced(0.001)};
    for (int second = 0; second < 200; ++second) {
        scene.run_for(Seconds{1});
        // A thousand signals: 4 % of the time.
        for (int n = 0; n < 1000; ++n)
            scene.sampler->take(
                {.kind = ptrace::EventKind::signal, .thread = &scene.world.threads.front()});
    }
    CHECK(scene.count("replica", Seconds{100}) == doctest::Approx(100).epsilon(0.3));
}

TEST_CASE("threads are let go of where signals come too often to be traced, and only there") {
    // 40 µs each: one in a thousandth of the time, and 4 % of it.
    for (const int signals_a_second : {20, 1000}) {
        Scene scene{priced(0.001)};
        for (int n = 0; n < 20 * signals_a_second; ++n) {
            scene.run_for(Seconds{1.0 / signals_a_second});
            scene.sampler->take(
                {.kind = ptrace::EventKind::signal, .thread = &scene.world.threads.front()});
        }
        scene.sampler->wind_up("exit");
        if (signals_a_second == 20) {
            CHECK(scene.world.let_go == 0);
            CHECK(scene.sampler->warnings().empty());
        } else {
            CHECK(scene.world.let_go > 19'800);
            CHECK(scene.sampler->warnings().size() == 1);
        }
    }
}

TEST_CASE("threads are chosen in proportion to their CPU time") {
    Scene scene{priced(0.0005)};
    scene.world.runs_in = {0, 1, 0, 0, 1, 0, 2, 0, 1, 0};
    scene.run_for(Seconds{300});
    std::map<pid_t, double> samples;
    for (const auto& sample : scene.world.samples) ++samples[sample.tid];
    const auto all = static_cast<double>(scene.world.samples.size());
    CHECK(samples[0] / all == doctest::Approx(0.6).epsilon(0.05));
    CHECK(samples[1] / all == doctest::Approx(0.3).epsilon(0.1));
    CHECK(samples[2] / all == doctest::Approx(0.1).epsilon(0.15));
}

TEST_CASE("all threads that run take part in each sample, and the budget is for all of them") {
    Options options;
    options.all_threads = true;
    Scene scene{priced(0.001), {}, options};
    scene.world.all_run = true;
    scene.run_for(Seconds{400});
    const auto& samples = scene.world.samples;
    CHECK(samples.size() > 100);
    CHECK(scene.world.joined.size() == 2 * samples.size());
    for (std::size_t n = 0; n < samples.size(); ++n)
        CHECK(samples[n].tid + scene.world.joined[2 * n] + scene.world.joined[2 * n + 1] == 3);
    CHECK(scene.slowdown() == doctest::Approx(0.01).epsilon(0.15));

    scene.world.all_run = false;
    scene.world.samples.clear();
    scene.world.joined.clear();
    scene.run_for(Seconds{100});
    CHECK(scene.world.samples.size() > 25);
    CHECK(scene.world.joined.empty());
}

TEST_CASE("no sample is taken of a program whose threads all sleep") {
    Scene scene{priced(0.001)};
    scene.world.runs_in = {99};
    scene.run_for(Seconds{10});
    CHECK(scene.world.samples.empty());
}

TEST_CASE("as many samples are taken as were asked for") {
    Options options;
    options.most_samples = 10;
    Scene scene{priced(0.001), {}, options};
    scene.run_for(Seconds{100});
    CHECK(scene.world.samples.size() == 10);
    CHECK(scene.sampler->is_complete());
}

TEST_CASE("replicas that the budget cannot pay often enough give way to bursts, for good") {
    Scene scene{priced(0.008), priced(0.0005)};
    scene.run_for(Seconds{600});
    CHECK(scene.count("replica") == 3);
    CHECK(scene.count("burst") > 1000);
    CHECK(scene.slowdown() < 0.0102);
    scene.sampler->wind_up("exit");
    REQUIRE(scene.sampler->warnings().size() == 1);
    CHECK(scene.sampler->warnings()[0] ==
          "no replicas of this program (forking it, or tracing it at all, costs too much): it was "
          "sampled in mode burst");
}

TEST_CASE("one replica that leaves a great debt is enough to give up") {
    Scene scene{priced(0.2), priced(0.0005)};
    scene.run_for(Seconds{600});
    CHECK(scene.count("replica") == 1);
    // What it has overdrawn is paid back by bursts, which are few until then.
    CHECK(scene.count("burst", Seconds{0}, Seconds{10}) < 60);
    CHECK(scene.slowdown() < 0.0102);
}

TEST_CASE("where samples are cheap a single dear one is waited for, and no reason to give up") {
    Wish mostly_cheap;
    mostly_cheap.price = [n = 0]() mutable { return Seconds{++n == 50 ? 0.1 : 0.0005}; };
    mostly_cheap.is_cheap = true;
    Scene scene{mostly_cheap, priced(0.0005)};
    scene.run_for(Seconds{100});
    CHECK(scene.count("burst") == 0);
    CHECK(scene.count("replica") > 1000);
    CHECK(scene.slowdown() < 0.0102);
}

TEST_CASE("what is done only once makes no sample dearer") {
    Scene scene{priced(0.0005)};
    scene.world.behind_call = Seconds{0.02};
    scene.run_for(Seconds{10});
    CHECK(scene.count("replica") > 100);
    CHECK(scene.sampler->cost().price >= Seconds{0.02});
}

TEST_CASE("who sets the period has replicas, whatever they cost") {
    Options options;
    options.period = Seconds{0.1};
    Scene scene{priced(0.05), priced(0.0005), options};
    scene.run_for(Seconds{100});
    CHECK(scene.count("burst") == 0);
    CHECK(scene.count("replica") > 10);
}

TEST_CASE("while replicas are impossible bursts stand in, and replicas come back") {
    Scene* scene = nullptr;
    Wish wish = priced(0.0005);
    wish.obstacle = [&]() -> std::optional<inject::Obstacle> {
        const auto at = scene->world.passed();
        if (at < Seconds{20} || at > Seconds{100}) return {};
        return inject::Obstacle{"all processors are busy", true};
    };
    Scene made{wish, priced(0.0005)};
    scene = &made;
    made.run_for(Seconds{300});
    CHECK(made.count("replica", Seconds{0}, Seconds{20}) > 200);
    CHECK(made.count("burst", Seconds{0}, Seconds{20}) == 0);
    CHECK(made.count("replica", Seconds{20}, Seconds{100}) == 0);
    CHECK(made.count("burst", Seconds{20}, Seconds{100}) > 800);
    // They are tried after 5, 10, 20, 40 and 60 s: at last at 156 s or so.
    CHECK(made.count("replica", Seconds{160}) > 1000);
    CHECK(made.count("burst", Seconds{160}) == 0);
    CHECK(made.slowdown() < 0.0102);
    made.sampler->wind_up("exit");
    CHECK(made.without.has_ended);
    CHECK(made.without.time > Seconds{80});
    CHECK(made.without.time < Seconds{140});
    REQUIRE(made.sampler->warnings().size() == 1);
    CHECK(made.sampler->warnings()[0].ends_with(
        "s (all processors are busy): then it was sampled in mode burst"));
}

TEST_CASE("a replica that may come to much is tried when it is earned, with bursts meanwhile") {
    // 50 ms, at 1 %: some 5 s.
    Wish wish = priced(0.0002);
    wish.risk = [] { return Seconds{0.05}; };
    Scene scene{wish, priced(0.0002)};
    scene.run_for(Seconds{60});
    CHECK(scene.count("replica", Seconds{0}, Seconds{3.9}) == 0);
    CHECK(scene.count("burst", Seconds{0}, Seconds{3.9}) > 50);
    CHECK(scene.count("replica") > 0);
    CHECK(scene.slowdown() < 0.0102);
}

TEST_CASE("what replicas that are biased have shown is forgotten, and does not count") {
    Options options;
    options.most_samples = 50;
    std::size_t prepared = 0;
    Wish wish = priced(0.001);
    wish.is_biased = true;
    wish.obstacle = [&]() -> std::optional<inject::Obstacle> {
        if (++prepared <= 10) return {};
        return inject::Obstacle{"calls follow each other too closely", false};
    };
    Scene scene{wish, priced(0.001), options};
    scene.run_for(Seconds{100});
    CHECK(scene.world.is_forgotten);
    CHECK(scene.count("replica") == 10);
    CHECK(scene.count("burst") == 50);
    CHECK(scene.sampler->is_complete());
}
