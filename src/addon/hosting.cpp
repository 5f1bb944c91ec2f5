#include "addon/hosting.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "addon/address_names.h"
#include "addon/tuning.h"
#include "base/address.h"
#include "model/entry_fields.h"
#include "model/utf8.h"

namespace shadowprof::addon {

namespace {

constexpr std::size_t longest_key = 200;
constexpr std::size_t most_lines_said = 20;
constexpr std::size_t most_watches = 64;

struct Key {
    std::uint32_t place = 0, caller = 0, key = 0;
    bool operator==(const Key&) const = default;
};
struct KeyHash {
    std::size_t operator()(const Key& k) const {
        return combine_hashes(combine_hashes(k.place, k.caller), k.key);
    }
};

// What the module has counted, folded into statistics sample by sample.
class Tallies {
  public:
    using Format = void (*)(std::uint64_t key, char* into, std::size_t size);
    explicit Tallies(Format format) : format_(format) {}

    void turn_to(std::uint32_t sample) { open_ = &samples_[sample]; }
    bool has_open() const { return open_ != nullptr; }

    void count(std::uint32_t place, std::uint32_t caller, std::uint64_t key, std::uint64_t times) {
        if (times == 0) return;
        open_->total += times;
        const auto entry = entry_of({place, caller, number_of(key)});
        if (entry == none)
            open_->unknown += times;
        else
            open_->entries[entry].count += times;
    }
    void value(std::uint32_t place, std::uint32_t caller, std::uint64_t key, std::uint64_t value) {
        const auto entry = entry_of({place, caller, number_of(key)});
        if (entry != none) open_->entries[entry].values.add(value);
    }

    void end_sample(std::uint32_t number, std::uint64_t weight) {
        const auto found = samples_.find(number);
        if (found == samples_.end()) return;
        auto& sample = found->second;
        totals_.add_sample(sample.total * weight);
        totals_.unknown += sample.unknown * weight;
        for (const auto& [index, pending] : sample.entries) {
            auto& entry = entries_[index];
            if (pending.count != 0)
                entry.statistics.add_sample(pending.count * weight, sample.total * weight);
            auto values = pending.values;
            values.count *= weight;
            values.sum = Measured::saturated_product(values.sum, weight);
            entry.values.merge(values);
        }
        if (open_ == &sample) open_ = nullptr;
        samples_.erase(found);
    }

    std::string found(const std::vector<std::string>& said, std::atomic<std::uint64_t>& steps) {
        while (!samples_.empty()) end_sample(samples_.begin()->first, 1);
        MessageWriter out;
        out.put(totals_.samples).put(totals_.total).put(totals_.total_squares).put(totals_.unknown);
        out.put(static_cast<std::uint32_t>(entries_.size()));
        for (const auto& e : entries_) {
            out.put(e.key.place).put(e.key.caller).put_text(texts_[e.key.key]);
            out.put(e.statistics.samples).put(e.statistics.count);
            out.put(e.statistics.squares).put(e.statistics.products);
            out.put(e.values.count).put(e.values.sum).put(e.values.least).put(e.values.most);
            ++steps;
        }
        out.put(static_cast<std::uint32_t>(said.size()));
        for (const auto& line : said) out.put_text(line);
        return out.bytes();
    }

  private:
    static constexpr auto none = ~std::uint32_t{0};
    struct Entry {
        Key key;
        model::Statistics statistics;
        Measured values;
    };
    struct Pending {
        std::uint64_t count = 0;
        Measured values;
    };
    struct Sample {
        std::unordered_map<std::uint32_t, Pending> entries;
        std::uint64_t total = 0, unknown = 0;
    };

    // Of its text: keys of one text are one.
    std::uint32_t number_of(std::uint64_t key) {
        if (numbers_.size() >= tuning::most_entries && !numbers_.contains(key)) return none;
        const auto [found, is_new] = numbers_.try_emplace(key);
        if (!is_new) return found->second;
        std::string text;
        if (format_) {
            std::array<char, longest_key + 1> room{};
            format_(key, room.data(), room.size());
            text = std::string(room.data(), ::strnlen(room.data(), longest_key));
        } else {
            text = std::to_string(key);
        }
        const auto [of_text, is_new_text] =
            of_texts_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
        if (is_new_text) texts_.push_back(text);
        return found->second = of_text->second;
    }
    std::uint32_t entry_of(const Key& key) {
        const auto known = index_.find(key);
        if (known != index_.end()) return known->second;
        if (key.key == none || entries_.size() >= tuning::most_entries) return none;
        entries_.push_back({key, {}, {}});
        return index_[key] = static_cast<std::uint32_t>(entries_.size() - 1);
    }

    Format format_;
    std::map<std::uint32_t, Sample> samples_;
    Sample* open_ = nullptr;
    std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
    std::unordered_map<std::string, std::uint32_t> of_texts_;
    std::vector<std::string> texts_;
    std::unordered_map<Key, std::uint32_t, KeyHash> index_;
    std::vector<Entry> entries_;
    model::Totals totals_;
};

// The module of this process: its functions know no state of ours.
struct Hosting {
    const shadowprof_module* module = nullptr;
    std::string arguments;
    int socket = -1;
    pid_t process = ::getpid();
    std::atomic<std::uint64_t>* steps = nullptr;
    bool is_open = false, is_opening = false;
    std::string refusal;
    std::vector<Watch> watches;
    std::unique_ptr<Tallies> tallies;
    std::vector<std::string> said;
    AddressNames addresses;
};
Hosting* hosting = nullptr;

bool is_word(const shadowprof_word& word) {
    switch (word.kind) {
        case SHADOWPROF_REGISTER:
            return word.number < 16;
        case SHADOWPROF_OPERAND:
            return word.number < SHADOWPROF_MOST_OPERANDS;
        case SHADOWPROF_ARGUMENT:
            return word.number < 6;
        default:
            return word.kind <= SHADOWPROF_MEMORY;
    }
}

int watch(std::uint8_t number, const char* pattern, const shadowprof_word* words,
          std::uint32_t count) {
    auto& refusal = hosting->refusal;
    if (!hosting->is_opening)
        refusal = "the module wants to watch something when it is too late";
    else if (number >= most_watches || hosting->watches.size() >= most_watches)
        refusal = fmt::format("watch {}: there are {}, from 0 on", number, most_watches);
    else if (count > SHADOWPROF_MOST_WORDS)
        refusal = fmt::format("watch {}: {} words, and {} are the most", number, count,
                              SHADOWPROF_MOST_WORDS);
    else if (!std::all_of(words, words + count, is_word))
        refusal = fmt::format("watch {}: a word that there is not", number);
    else {
        hosting->watches.push_back({number, pattern, {words, words + count}});
        return 0;
    }
    return -1;
}

void say(const char* line) {
    if (hosting->is_opening && hosting->refusal.empty()) hosting->refusal = line;
    auto& said = hosting->said;
    if (!hosting->is_opening && said.size() < most_lines_said &&
        std::find(said.begin(), said.end(), line) == said.end())
        said.emplace_back(line);
}

void count(std::uint32_t place, std::uint32_t caller, std::uint64_t key, std::uint64_t times) {
    if (hosting->tallies && hosting->tallies->has_open())
        hosting->tallies->count(place, caller, key, times);
}

void value(std::uint32_t place, std::uint32_t caller, std::uint64_t key, std::uint64_t measured) {
    if (hosting->tallies && hosting->tallies->has_open())
        hosting->tallies->value(place, caller, key, measured);
}

void measure(std::uint32_t place, std::uint32_t caller, std::uint64_t key, std::uint64_t measured) {
    count(place, caller, key, 1);
    value(place, caller, key, measured);
}

void name_address(std::uint64_t address, char* into, std::size_t size) {
    fmt::format_to_n(into, size - 1, "{}", hosting->addresses.name(address)).out[0] = '\0';
}

constexpr shadowprof_host host{.abi = SHADOWPROF_MODULE_ABI,
                               .size = sizeof(shadowprof_host),
                               .watch = watch,
                               .say = say,
                               .count = count,
                               .measure = measure,
                               .value = value,
                               .name_address = name_address};

void send(MessageKind kind, std::string_view bytes) {
    const MessageHead head{kind, static_cast<std::uint32_t>(bytes.size())};
    std::string whole(reinterpret_cast<const char*>(&head), sizeof head);
    whole += bytes;
    for (std::string_view rest = whole; !rest.empty();) {
        const auto written = ::write(hosting->socket, rest.data(), rest.size());
        if (written <= 0) ::_exit(0);  // shadowprof is gone
        rest.remove_prefix(static_cast<std::size_t>(written));
        ++*hosting->steps;
    }
}

void read_all(char* into, std::size_t size) {
    // A copy of this process that the module has made takes nothing away from it.
    if (::getpid() != hosting->process) ::_exit(0);
    while (size != 0) {
        const auto got = ::read(hosting->socket, into, size);
        if (got <= 0) ::_exit(0);
        into += got;
        size -= static_cast<std::size_t>(got);
    }
}

[[noreturn]] void refuse(const std::string& why) {
    send(MessageKind::refused, MessageWriter().put_text(why).bytes());
    ::_exit(0);
}

// Why it was not.
std::string open_module() {
    hosting->watches.clear();
    hosting->refusal.clear();
    hosting->said.clear();
    hosting->is_opening = true;
    const int failed = hosting->module->open(&host, hosting->arguments.c_str());
    hosting->is_opening = false;
    hosting->is_open = true;
    hosting->tallies = std::make_unique<Tallies>(hosting->module->format);
    ++*hosting->steps;
    if (failed == 0 && hosting->refusal.empty()) return {};
    return hosting->refusal.empty() ? "the module does not say why it cannot be opened"
                                    : hosting->refusal;
}

void need_open() {
    if (!hosting->is_open && !open_module().empty()) ::_exit(1);
}

const shadowprof_module* load(const std::string& file) {
    void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        std::string why = ::dlerror();
        if (const auto prefix = file + ": "; why.starts_with(prefix)) why.erase(0, prefix.size());
        refuse(why);
    }
    const auto* const module =
        static_cast<const shadowprof_module*>(::dlsym(library, "shadowprof_module"));
    if (!module) refuse("this is no module: it has no shadowprof_module");
    if (module->abi != SHADOWPROF_MODULE_ABI)
        refuse(
            fmt::format("the module is for version {} of the interface, and this shadowprof has "
                        "version {}",
                        module->abi, SHADOWPROF_MODULE_ABI));
    if (module->size < sizeof(shadowprof_module) || !module->name || !module->open || !module->take)
        refuse("the module lacks what it must have: name, open, take");
    return module;
}

void look(MessageReader& in) {
    auto i = in.get<shadowprof_instruction>();
    std::array<std::string, 6> texts;
    for (auto& text : texts) text = in.get_text();
    std::size_t n = 0;
    for (auto* const text :
         {&i.text, &i.mnemonic, &i.extension, &i.category, &i.function, &i.image})
        *text = texts[n++].c_str();
    hosting->addresses.has_image(i.image);
    if (hosting->module->look) hosting->module->look(&i);
}

void take(MessageReader& in, std::vector<shadowprof_event>& events) {
    constexpr std::size_t most_at_a_time = 512;
    hosting->tallies->turn_to(in.get<std::uint32_t>());
    while (!in.at_end()) {
        events.clear();
        while (events.size() < most_at_a_time && !in.at_end())
            events.push_back(in.get<shadowprof_event>());
        hosting->module->take(events.data(), events.size());
        ++*hosting->steps;
    }
}

void end_sample(MessageReader& in, std::vector<shadowprof_event>& events) {
    const auto sample = in.get<std::uint32_t>();
    const auto weight = in.get<std::uint64_t>();
    hosting->tallies->turn_to(sample);
    events.assign(1, {});
    events.front().kind = SHADOWPROF_SAMPLE_ENDS;
    hosting->module->take(events.data(), events.size());
    hosting->tallies->end_sample(sample, weight);
}

void yield() {
    need_open();
    if (hosting->module->finish) hosting->module->finish();
    ++*hosting->steps;
    const auto found = hosting->tallies->found(hosting->said, *hosting->steps);
    if (hosting->module->close) hosting->module->close();
    hosting->is_open = false;
    send(MessageKind::found, found);
}

}  // namespace

void host_module(const std::string& file, const std::string& arguments, int socket,
                 std::atomic<std::uint64_t>& steps) {
    Hosting here;
    hosting = &here;
    here.socket = socket;
    here.steps = &steps;
    here.arguments = arguments;
    here.module = load(file);
    if (const auto why = open_module(); !why.empty()) refuse(why);
    MessageWriter hello;
    hello.put_text(here.module->name).put_text(here.module->about ? here.module->about : "");
    hello.put(static_cast<std::uint32_t>(here.watches.size()));
    for (const auto& watch : here.watches) {
        hello.put(watch.number).put_text(watch.pattern);
        hello.put(static_cast<std::uint32_t>(watch.words.size()));
        for (const auto& word : watch.words) hello.put(word);
    }
    send(MessageKind::hello, hello.bytes());

    std::vector<shadowprof_event> events;
    while (true) {
        MessageHead head;
        read_all(reinterpret_cast<char*>(&head), sizeof head);
        std::string bytes(head.bytes, '\0');
        read_all(bytes.data(), bytes.size());
        MessageReader in{bytes};
        if (head.kind == MessageKind::target) {
            here.addresses.target_is(in.get<pid_t>());
            continue;
        }
        need_open();
        switch (head.kind) {
            case MessageKind::look:
                look(in);
                break;
            case MessageKind::take:
                take(in, events);
                break;
            case MessageKind::end_sample:
                end_sample(in, events);
                break;
            case MessageKind::yield:
                yield();
                break;
            default:
                ::_exit(1);
        }
        ++steps;
    }
}

Found read_found(std::string_view bytes) {
    MessageReader in{bytes};
    Found found;
    auto& totals = found.totals;
    totals.samples = in.get<std::uint64_t>();
    totals.total = in.get<std::uint64_t>();
    totals.total_squares = in.get<Wide>();
    totals.unknown = in.get<std::uint64_t>();
    Wide sum = totals.unknown;
    const auto entries = in.get<std::uint32_t>();
    for (std::uint32_t n = 0; n < entries; ++n) {
        auto& entry = found.entries.emplace_back();
        entry.place = in.get<std::uint32_t>();
        entry.caller = in.get<std::uint32_t>();
        entry.key = model::printable(in.get_text());
        auto& statistics = entry.statistics;
        statistics.samples = in.get<std::uint64_t>();
        statistics.count = in.get<std::uint64_t>();
        statistics.squares = in.get<Wide>();
        statistics.products = in.get<Wide>();
        auto& values = entry.values;
        values.count = in.get<std::uint64_t>();
        values.sum = in.get<std::uint64_t>();
        values.least = in.get<std::uint64_t>();
        values.most = in.get<std::uint64_t>();
        if (!model::is_possible(statistics, totals) || values.least > values.most)
            throw BadMessage();
        sum += statistics.count;
        if (entry.statistics.count == 0) found.entries.pop_back();
    }
    if (sum != totals.total) throw BadMessage();
    const auto lines = in.get<std::uint32_t>();
    for (std::uint32_t n = 0; n < lines; ++n) found.said.push_back(model::printable(in.get_text()));
    return found;
}

}  // namespace shadowprof::addon
