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
#include <cstring>
#include <exception>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <unistd.h>
#include <utility>
#include <vector>

namespace torchmark {
// Keeps the compiler from removing what only serves to make this value: torchmark::keep(a + b);
template <class T>
inline __attribute__((always_inline)) void keep(const T &value) {
    __asm__ __volatile__("" : : "g"(&value) : "memory");
}

// How torchmark::give writes a value to the descriptor that TORCHMARK_RESULTS names: a line with its size in bytes, its
// type, its dimensions and its name, and then the bytes. All of it depends on the type, so that it costs nothing where
// it is not used.
namespace results {

inline void write_all(const char *bytes, unsigned long size) {
    const char *descriptor = std::getenv("TORCHMARK_RESULTS");
    while (descriptor != nullptr && size > 0) {
        const long written = ::write(std::atoi(descriptor), bytes, size);
        if (written <= 0) return;
        bytes += written;
        size -= static_cast<unsigned long>(written);
    }
}

inline void write_one(const char *name, const char *type, const std::string &sizes, const void *bytes, unsigned long n) {
    const std::string line = std::to_string(n) + "|" + type + "|" + sizes + "|" + name + "\n";
    write_all(line.data(), line.size());
    write_all(static_cast<const char *>(bytes), n);
}

// Of several functions that would do, the one with the highest rank is taken.
template <int n> struct rank : rank<n - 1> {};
template <> struct rank<0> {};

template <class T> void give(const char *name, const T &, rank<0>) { write_one(name, "Other", "", nullptr, 0); }
inline void give(const char *name, std::nullptr_t, rank<1>) { write_one(name, "None", "", nullptr, 0); }

template <class T>
auto give(const char *name, const T &value, rank<1>) -> decltype(value.begin() == value.end(), void());
template <class... Parts> void give(const char *name, const std::tuple<Parts...> &value, rank<2>);
template <class T> auto give(const char *name, const T &value, rank<3>) -> decltype(value.isTuple(), void());

template <class T>
typename std::enable_if<std::is_arithmetic<T>::value>::type give(const char *name, const T &value, rank<4>) {
    if (std::is_same<T, bool>::value) {
        const bool plain = static_cast<bool>(value);
        write_one(name, "Bool", "", &plain, sizeof plain);
    } else if (std::is_integral<T>::value) {
        const long long plain = static_cast<long long>(value);
        write_one(name, "Long", "", &plain, sizeof plain);
    } else {
        const double plain = static_cast<double>(value);
        write_one(name, "Double", "", &plain, sizeof plain);
    }
}

template <class T> auto give(const char *name, const T &value, rank<5>) -> decltype(value.scalar_type(), void()) {
    if (!value.defined()) return write_one(name, "None", "", nullptr, 0);
    if (value.is_sparse() || value.is_sparse_csr() || value.is_mkldnn()) return give(name, value.to_dense(), rank<5>());
    const auto plain = value.detach().contiguous();
    std::string sizes;
    for (const auto size : plain.sizes()) sizes += std::to_string(size) + ",";
    write_one(name, toString(plain.scalar_type()), sizes, plain.data_ptr(), plain.numel() * plain.element_size());
}

template <class T>
auto give(const char *name, const T &value, rank<1>) -> decltype(value.begin() == value.end(), void()) {
    for (const auto &one : value) give(name, one, rank<5>());
}

template <class Tuple, std::size_t... positions>
void give_parts(const char *name, const Tuple &value, std::index_sequence<positions...>) {
    const int done[] = {0, (give(name, std::get<positions>(value), rank<5>()), 0)...};
    static_cast<void>(done);
}

template <class... Parts> void give(const char *name, const std::tuple<Parts...> &value, rank<2>) {
    give_parts(name, value, std::index_sequence_for<Parts...>());
}

// What a TorchScript model gives.
template <class T> auto give(const char *name, const T &value, rank<3>) -> decltype(value.isTuple(), void()) {
    if (value.isTensor()) return give(name, value.toTensor(), rank<5>());
    if (value.isTuple()) return give(name, value.toTuple()->elements(), rank<5>());
    if (value.isList()) return give(name, value.toListRef(), rank<5>());
    if (value.isBool()) return give(name, value.toBool(), rank<5>());
    if (value.isInt()) return give(name, value.toInt(), rank<5>());
    if (value.isDouble()) return give(name, value.toDouble(), rank<5>());
    write_one(name, value.isNone() ? "None" : "Other", "", nullptr, 0);
}

template <class T> auto grad(const T &value, rank<1>) -> decltype(value.grad()) { return value.grad(); }
template <class T> std::nullptr_t grad(const T &, rank<0>) { return nullptr; }

template <class Range> auto grads_of(const Range &range) {
    std::vector<typename std::decay<decltype((*range.begin()).grad())>::type> all;
    for (const auto &one : range) all.push_back(one.grad());
    return all;
}

// A TorchScript module, one of C++, and what is none.
struct unknown {};
template <class T> auto grads(const T &model, rank<2>) -> decltype(grads_of(model.parameters())) {
    return grads_of(model.parameters());
}
template <class T> auto grads(const T &model, rank<1>) -> decltype(grads_of(model->parameters())) {
    return grads_of(model->parameters());
}
template <class T> unknown grads(const T &, rank<0>) { return {}; }

}  // namespace results

// The gradient of a tensor; of anything else there is none.
template <class T> auto grad(const T &value) -> decltype(results::grad(value, results::rank<1>())) {
    return results::grad(value, results::rank<1>());
}

// The gradients of all parameters of a module.
template <class T> auto grads(const T &model) -> decltype(results::grads(model, results::rank<2>())) {
    return results::grads(model, results::rank<2>());
}

// Hands a value over, to be compared with what another variant of the same benchmark computes.
template <class T> void give(const char *name, const T &value) { results::give(name, value, results::rank<5>()); }
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
