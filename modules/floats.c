/* Module floats: which kinds of floating-point numbers instructions compute.
 *
 * Looks at results of SSE and AVX arithmetic and conversions: of scalar ones at the number, of
 * packed ones at those in the lowest 64 bits. Ordinary numbers are counted with the argument `all`;
 * how many there were is said in any case. */
#include <inttypes.h>
#include <stdio.h>

#include "shadowprof/module.h"
#include "table.h"

enum class { zero, denormal, ordinary, power_of_two, infinity, nan_ };
static const char* const names[] = {"zero",         "denormal", "ordinary",
                                    "power of two", "infinity", "NaN"};

struct place {
    uint64_t key;         /* its number, plus 1 */
    unsigned bits, count; /* of a number, and how many there are; 0: not looked at */
};

static const struct shadowprof_host* host;
static struct table places = {sizeof(struct place), 0, 0, NULL};
static int counts_all;
static uint64_t numbers, ordinary_ones;

static int open_module(const struct shadowprof_host* with, const char* arguments) {
    static const struct shadowprof_word result = {SHADOWPROF_RESULT, 0};
    host = with;
    counts_all = strcmp(arguments, "all") == 0;
    if (!counts_all && arguments[0] != '\0') {
        host->say("the only argument of floats is all");
        return -1;
    }
    return host->watch(0, "class \"*floating point\" && ! extension x87 || class conversion",
                       &result, 1);
}

/* Logic on numbers (xorps) makes masks and zeroes of them, and shuffles make nothing. */
static int computes(const char* mnemonic) {
    static const char* const others[] = {"xor",  "and",   "or",     "shuf",    "unpck",
                                         "perm", "blend", "insert", "extract", "broadcast"};
    size_t n;
    if (mnemonic[0] == 'v') ++mnemonic;
    for (n = 0; n < sizeof others / sizeof *others; ++n)
        if (strncmp(mnemonic, others[n], strlen(others[n])) == 0) return 0;
    return strncmp(mnemonic, "cmp", 3) != 0; /* yields masks, too */
}

static void look(const struct shadowprof_instruction* i) {
    const struct shadowprof_operand* const result = &i->operands[0];
    struct place* const place = table_add(&places, (uint64_t)i->place + 1);
    if (i->operand_count == 0 || result->kind != SHADOWPROF_OPERAND_VECTOR || !result->writes ||
        !result->is_floating || !computes(i->mnemonic))
        return;
    if (result->element_bits != 32 && result->element_bits != 64) return;
    place->bits = result->element_bits;
    place->count = result->is_scalar ? 1 : 64 / place->bits;
}

static enum class class_of(uint64_t word, unsigned bits) {
    const unsigned mantissa_bits = bits == 32 ? 23 : 52, exponent_bits = bits == 32 ? 8 : 11;
    const uint64_t mantissa = word & (((uint64_t)1 << mantissa_bits) - 1);
    const uint64_t largest = ((uint64_t)1 << exponent_bits) - 1;
    const uint64_t exponent = word >> mantissa_bits& largest;
    if (exponent == 0) return mantissa ? denormal : zero;
    if (exponent == largest) return mantissa ? nan_ : infinity;
    return mantissa ? ordinary : power_of_two;
}

static void take(const struct shadowprof_event* events, size_t count) {
    size_t n;
    for (n = 0; n < count; ++n) {
        const struct shadowprof_event* const e = &events[n];
        const struct place* const place =
            e->kind == SHADOWPROF_EXECUTED ? table_find(&places, (uint64_t)e->place + 1) : NULL;
        unsigned at;
        if (!place || !(e->known & 1)) continue;
        for (at = 0; at < place->count; ++at) {
            const enum class class = class_of(e->words[0] >> at * place->bits, place->bits);
            ++numbers;
            ordinary_ones += class == ordinary;
            if (counts_all || class != ordinary) host->count(e->place, 0, class, 1);
        }
    }
}

static void format(uint64_t class, char* into, size_t room) {
    snprintf(into, room, "%s", names[class]);
}

static void finish(void) {
    char line[160];
    snprintf(line, sizeof line,
             "of %" PRIu64 " numbers that were looked at, %" PRIu64 " were ordinary%s", numbers,
             ordinary_ones, counts_all ? "" : ", and are not listed");
    host->say(line);
}

static void close_module(void) {
    table_clear(&places);
    numbers = ordinary_ones = 0;
}

SHADOWPROF_EXPORT const struct shadowprof_module shadowprof_module = {
    .abi = SHADOWPROF_MODULE_ABI,
    .size = sizeof(struct shadowprof_module),
    .name = "floats",
    .about = "results of floating-point instructions by kind",
    .open = open_module,
    .look = look,
    .take = take,
    .format = format,
    .finish = finish,
    .close = close_module,
};
