// What stands before all snippets of a file. A snippet becomes a function with a plain C interface that runs its setup
// once and then asks, again and again, how often to run its statement:
//
//     void torchmark_<key>(next, clock, problem, size)
//
// `next` is given the seconds that the last block took and writes the number of runs of the next one. If it writes
// nothing, or a negative number, that was the end. After an exception, `problem` has its description.

#include <c10/util/Exception.h>
#include <cxxabi.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <typeinfo>

namespace torchmark {
// Keeps the compiler from removing what only serves to make this value: torchmark::keep(a + b);
template <class T>
inline __attribute__((always_inline)) void keep(const T &value) {
    __asm__ __volatile__("" : : "g"(&value) : "memory");
}
}  // namespace torchmark

namespace torchmark_glue {

typedef void (*next_function)(double, long long *);
typedef double (*clock_function)();

// Every loop notes in a section of its own where the code of its statement begins and where it ends.
struct mark {
    int snippet, is_end;
    const void *place;
};
extern "C" {
extern const mark __start_torchmark_marks[] __attribute__((weak, visibility("hidden")));
extern const mark __stop_torchmark_marks[] __attribute__((weak, visibility("hidden")));
}

// Whether the compiler has left nothing of a statement: each of its beginnings is an end, too.
static inline int is_empty(int snippet) {
    int beginnings = 0;
    for (const mark *one = __start_torchmark_marks; one != __stop_torchmark_marks; ++one) {
        if (one->snippet != snippet || one->is_end) continue;
        bool ends = false;
        for (const mark *two = __start_torchmark_marks; two != __stop_torchmark_marks; ++two) {
            ends = ends || (two->snippet == snippet && two->is_end && two->place == one->place);
        }
        if (!ends) return 0;
        ++beginnings;
    }
    return beginnings > 0;
}

// Describes the exception that is being handled.
static inline void describe(char *problem, unsigned long size) noexcept {
    try {
        throw;
    } catch (const c10::Error &error) {
        std::snprintf(problem, size, "c10::Error: %s", error.what_without_backtrace());
    } catch (const std::exception &error) {
        int status = 0;
        char *name = abi::__cxa_demangle(typeid(error).name(), nullptr, nullptr, &status);
        std::snprintf(problem, size, "%s: %s", status == 0 ? name : typeid(error).name(), error.what());
        std::free(name);
    } catch (...) {
        std::snprintf(problem, size, "an exception that is no std::exception");
    }
}

static const std::chrono::steady_clock::time_point loaded = std::chrono::steady_clock::now();

}  // namespace torchmark_glue

// Seconds, from the clock that Python's perf_counter reads. Counted from when the library was loaded: a double is exact
// enough for nanoseconds then.
extern "C" double torchmark_steady_clock() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - torchmark_glue::loaded).count();
}
