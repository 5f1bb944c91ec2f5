/* Customisation modules of shadowprof: what to look for in a running program, in C.
 *
 * A module is a shared object with one exported variable, `shadowprof_module`. shadowprof loads it
 * with --module FILE.so[:ARGS], into a process of its own: what a module does wrong ends that
 * process and nothing else. All functions of a module are called by one thread.
 *
 * 1. `open` is called before the program runs. It says by `watch` which instructions the module
 *    wants to hear about, by a pattern as rules have them (shadowprof-rules(5)), and which words
 *    are captured when they are executed.
 * 2. `look` is told of each instruction that fits, before its first execution is handed over.
 * 3. `take` gets what happened, of each thread in the order of execution.
 * 4. The module counts and measures: a place in code, a caller, a key. These become a hotlist of
 *    the profile, with shares and intervals as all others. `format` gives keys a text.
 *
 * docs/modules.md has an example that is complete.
 */
#ifndef SHADOWPROF_MODULE_H
#define SHADOWPROF_MODULE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of this interface. A module that was built for another one is refused. Within a version
 * structures only grow at their end. */
#define SHADOWPROF_MODULE_ABI 1

/* A word that an execution of an instruction has to do with. */
enum shadowprof_word_kind {
    SHADOWPROF_REGISTER = 0, /* general register `number` (rax 0, rcx 1, rdx 2, rbx 3, rsp 4, rbp 5,
                                rsi 6, rdi 7, r8 8 …), before the instruction */
    SHADOWPROF_OPERAND = 1,  /* operand `number`, from 0 on: before the instruction if it is memory
                                or a general register that is read, else after it */
    SHADOWPROF_RESULT = 2,   /* the first register that the instruction writes, after it */
    SHADOWPROF_ARGUMENT = 3, /* argument `number`, from 0 to 5, of a call or where a function is
                                entered: rdi, rsi, rdx, rcx, r8, r9 */
    SHADOWPROF_RETURNED = 4, /* of a call: what it returns in rax; of a return: the same; elsewhere:
                                what the function that is executing returns */
    SHADOWPROF_ADDRESS = 5,  /* of the explicit memory operand */
    SHADOWPROF_MEMORY = 6    /* what was there before, up to 8 bytes */
};

struct shadowprof_word {
    uint8_t kind;
    uint8_t number;
};

#define SHADOWPROF_MOST_WORDS 6

/* Classes of an instruction. */
enum shadowprof_class {
    SHADOWPROF_CALL = 1,
    SHADOWPROF_RETURN = 2,
    SHADOWPROF_BRANCH = 4, /* a jump, conditional or not */
    SHADOWPROF_CONDITIONAL = 8,
    SHADOWPROF_INDIRECT = 16, /* where a call or branch leads is computed */
    SHADOWPROF_BACKWARD = 32, /* a direct branch to where it is or further up */
    SHADOWPROF_SYSTEM_CALL = 64,
    SHADOWPROF_LOAD = 128, /* by its explicit memory operand, of `bytes` bytes */
    SHADOWPROF_STORE = 256,
    SHADOWPROF_ATOMIC = 512,
    SHADOWPROF_ENTRY = 1024 /* the first instruction of a function */
};

enum shadowprof_operand_kind {
    SHADOWPROF_OPERAND_OTHER = 0,
    SHADOWPROF_OPERAND_GENERAL = 1, /* a general register: `number` */
    SHADOWPROF_OPERAND_VECTOR = 2,  /* a vector register: `number` */
    SHADOWPROF_OPERAND_MEMORY = 3,
    SHADOWPROF_OPERAND_IMMEDIATE = 4 /* `value` */
};

struct shadowprof_operand {
    uint8_t kind;
    uint8_t number;
    uint8_t reads, writes; /* 0 or 1 */
    uint16_t bits;
    uint16_t element_bits; /* of one number in a vector */
    uint8_t is_floating;   /* elements are floating-point numbers */
    uint8_t is_scalar;     /* only the lowest element counts */
    uint8_t unused[6];
    uint64_t value;
};

#define SHADOWPROF_MOST_OPERANDS 10

/* An instruction that is watched. Texts are valid during the call. */
struct shadowprof_instruction {
    uint32_t size;  /* of this structure */
    uint32_t place; /* its number, as events have it */
    uint8_t watch;  /* by which pattern it was found */
    uint8_t length; /* in bytes */
    uint16_t classes;
    uint32_t bytes;           /* of its explicit memory operand, or 0 */
    uint64_t address;         /* in this run */
    uint64_t offset;          /* in its image, as addr2line has it */
    uint64_t target;          /* of a direct call or branch: its address; else 0 */
    const char* text;         /* "mov rax, qword ptr [rdi]" */
    const char* mnemonic;     /* "mov" */
    const char* extension;    /* "BASE", "SSE2", "AVX512", … as hotlist mix has it */
    const char* category;     /* "integer arithmetic", … as hotlist mix has it */
    const char* function;     /* "" if it is not known */
    uint64_t function_offset; /* from where the function begins */
    const char* image;        /* the path of the file */
    uint32_t operand_count;
    uint32_t unused;
    struct shadowprof_operand operands[SHADOWPROF_MOST_OPERANDS];
};

enum shadowprof_event_kind {
    /* A watched instruction was executed. */
    SHADOWPROF_EXECUTED = 0,
    /* Where SHADOWPROF_RETURNED was asked for: the call has returned. `ticket`, `place`, `caller`
     * and `words` are those of the event before, and now with what was returned. */
    SHADOWPROF_HAS_RETURNED = 1,
    /* … or its return will not be seen: it was skipped, or lies behind the end of what is seen. */
    SHADOWPROF_NEVER_RETURNS = 2,
    /* From here on all that `thread` does is seen, up to SHADOWPROF_THREAD_ENDS. In modes that
     * take samples there are gaps before and after, and `thread` is a new number each time. */
    SHADOWPROF_THREAD_BEGINS = 3,
    SHADOWPROF_THREAD_ENDS = 4,
    /* All of a sample has been seen. (In mode full there is one, which is everything.) */
    SHADOWPROF_SAMPLE_ENDS = 5
};

struct shadowprof_event {
    uint8_t kind;
    uint8_t watch;
    uint16_t known; /* bit n: words[n] is known */
    uint32_t thread;
    uint32_t place;        /* of the instruction */
    uint32_t caller;       /* where the function that it is in was called from; 0: not known */
    uint64_t ticket;       /* of events that are told twice */
    uint64_t instructions; /* that the thread has executed since SHADOWPROF_THREAD_BEGINS */
    uint64_t words[SHADOWPROF_MOST_WORDS]; /* in the order in which they were asked for */
};

/* What shadowprof does for a module. */
struct shadowprof_host {
    uint32_t abi;
    uint32_t size; /* of this structure */

    /* During `open`: executions of instructions that fit the pattern are handed over with these
     * words, as events with this number (0 to 63). Returns 0, or -1 if it cannot be; then opening
     * the module fails, for a reason that shadowprof knows. */
    int (*watch)(uint8_t watch, const char* pattern, const struct shadowprof_word* words,
                 uint32_t count);
    /* One more line of what profiles and reports say of the module; once is enough. */
    void (*say)(const char* line);
    /* So many events at this place, called from there (0: that does not matter), with this key. */
    void (*count)(uint32_t place, uint32_t caller, uint64_t key, uint64_t times);
    /* One event, and a value of it: profiles have the mean, the least and the greatest. */
    void (*measure)(uint32_t place, uint32_t caller, uint64_t key, uint64_t value);
    /* A value of an event that was counted before. */
    void (*value)(uint32_t place, uint32_t caller, uint64_t key, uint64_t value);
    /* "file+0x10", "[heap]+0x10" or "0x10": what the address is in, now. */
    void (*name_address)(uint64_t address, char* into, size_t size);
};

struct shadowprof_module {
    uint32_t abi;      /* SHADOWPROF_MODULE_ABI */
    uint32_t size;     /* of this structure */
    const char* name;  /* a short one, of letters, digits, '-' and '_' */
    const char* about; /* what it counts and what its values are, in a line */
    /* Returns 0, or -1 after having said why. */
    int (*open)(const struct shadowprof_host* host, const char* arguments);
    void (*look)(const struct shadowprof_instruction* instruction); /* or NULL */
    void (*take)(const struct shadowprof_event* events, size_t count);
    /* Writes a text with its final 0; NULL: keys are shown as numbers. Keys of one text are one. */
    void (*format)(uint64_t key, char* into, size_t size);
    void (*finish)(void); /* everything was handed over: the last chance to `say`; or NULL */
    void (*close)(void);  /* the module may be opened again after this; or NULL */
};

#ifdef __cplusplus
}
#endif

/* In the module:  SHADOWPROF_EXPORT const struct shadowprof_module shadowprof_module = {…}; */
#ifdef __cplusplus
#define SHADOWPROF_EXPORT extern "C" __attribute__((visibility("default")))
#else
#define SHADOWPROF_EXPORT __attribute__((visibility("default")))
#endif

#endif
