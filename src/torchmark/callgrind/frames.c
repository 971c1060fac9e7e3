/* Lets Callgrind see which Python function runs: each gets a compiled function of its own that its frames pass through.
 *
 * Python lets a process replace the function that evaluates a frame. Ours finds the frame's code object in a table and
 * calls the trampoline of its number, which does nothing but call Python's own evaluation: so the chain of callers that
 * Callgrind keeps has one function more, whose number tells the Python function. What this costs is in functions whose
 * names begin with `torchmark_`, and can be told apart to the instruction. */

#include <stddef.h>
#include <stdint.h>

typedef void *evaluate(void *thread, void *frame, int throwing);

static evaluate *original;
/* Where in a frame its code object is, in words. */
static int code_at;
static void *code_type;
static void (*keep)(void *object);

/* How many Python functions are told apart; all further ones share the last trampoline. */
enum { FUNCTIONS = 1024, SLOTS = 4 * FUNCTIONS, TYPE_AT = 1 };

/* A call in the last place of a function would be made a jump, and the function would not be seen. */
#define TRAMPOLINE(number)                                                                                      \
    void *torchmark_python_##number(void *thread, void *frame, int throwing) {                                  \
        void *result = original(thread, frame, throwing);                                                       \
        __asm__ volatile("");                                                                                   \
        return result;                                                                                          \
    }
#define FOUR(all, digits) all(digits##0) all(digits##1) all(digits##2) all(digits##3)
#define SIXTEEN(all, digits) FOUR(all, digits##0) FOUR(all, digits##1) FOUR(all, digits##2) FOUR(all, digits##3)
#define QUARTER(all, digits) SIXTEEN(all, digits##0) SIXTEEN(all, digits##1) SIXTEEN(all, digits##2) SIXTEEN(all, digits##3)
#define ALL(all) QUARTER(all, 0) QUARTER(all, 1) QUARTER(all, 2) QUARTER(all, 3) \
    QUARTER(all, 10) QUARTER(all, 11) QUARTER(all, 12) QUARTER(all, 13) \
    QUARTER(all, 20) QUARTER(all, 21) QUARTER(all, 22) QUARTER(all, 23) \
    QUARTER(all, 30) QUARTER(all, 31) QUARTER(all, 32) QUARTER(all, 33)
/* Numbers in names have base four: that is how the macros count. */
ALL(TRAMPOLINE)

#define NAME(number) torchmark_python_##number,
static evaluate *const trampolines[FUNCTIONS] = {ALL(NAME)};

static struct {
    void *code;
    int number;
} table[SLOTS];
/* In the order of their numbers. */
void *torchmark_codes[FUNCTIONS];
int torchmark_known;

static int number_of(void *code) {
    size_t slot = ((uintptr_t)code >> 4) * 0x9E3779B97F4A7C15u % SLOTS;
    while (table[slot].code != NULL && table[slot].code != code) slot = (slot + 1) % SLOTS;
    if (table[slot].code == NULL) {
        if (torchmark_known == FUNCTIONS - 1) return FUNCTIONS - 1;
        /* It is kept alive, so that no other is ever found under its address. */
        keep(code);
        table[slot].code = code;
        table[slot].number = torchmark_known;
        torchmark_codes[torchmark_known++] = code;
    }
    return table[slot].number;
}

void *torchmark_eval(void *thread, void *frame, int throwing) {
    /* Python 3.14 keeps marks in the lowest bits. */
    void *code = (void *)((uintptr_t)((void **)frame)[code_at] & ~(uintptr_t)7);
    int number = code != NULL && ((void **)code)[TYPE_AT] == code_type ? number_of(code) : FUNCTIONS - 1;
    void *result = trampolines[number](thread, frame, throwing);
    __asm__ volatile("");
    return result;
}

void torchmark_prepare(evaluate *evaluation, int where, void *type, void (*increment)(void *object)) {
    original = evaluation;
    keep = increment;
    code_at = where;
    code_type = type;
}
