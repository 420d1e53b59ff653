// Expected monotonic alignment and its gradient, in one pass over the table each; alignment.py has the formulas.

#include <cstdint>
#include <vector>

#include "threads.hpp"

namespace {

struct Sizes {
    int64_t threads, tables, queries, keys;
    int64_t table() const { return queries * keys; }
    int workers() const { return regard::threads_for(tables * table(), threads); }
};

// How likely the query is to get as far as each key.
template <class T> void compute_arrivals(int64_t keys, const T* go_on, const T* before, T* arrived) {
    T so_far = 0;
    for (int64_t key = 0; key < keys; ++key) {
        so_far = before[key] + (key ? go_on[key - 1] * so_far : T(0));
        arrived[key] = so_far;
    }
}

template <class T> int forward(Sizes sizes, const T* stop, const T* go_on, const T* previous, T* weights) {
#pragma omp parallel for num_threads(sizes.workers())
    for (int64_t table = 0; table < sizes.tables; ++table) {
        const T* before = previous + table * sizes.keys;
        for (int64_t row = table * sizes.table(); row < (table + 1) * sizes.table(); row += sizes.keys) {
            compute_arrivals<T>(sizes.keys, go_on + row, before, weights + row);
            for (int64_t key = 0; key < sizes.keys; ++key) weights[row + key] *= stop[row + key];
            before = weights + row;
        }
    }
    return 0;
}

template <class T> struct Gradients { T *stop, *go_on, *previous; };

template <class T>
int backward(Sizes sizes, const T* stop, const T* go_on, const T* previous, const T* weights, const T* grad,
             Gradients<T> by) {
    const int64_t keys = sizes.keys;
#pragma omp parallel for num_threads(sizes.workers())
    for (int64_t table = 0; table < sizes.tables; ++table) {
        std::vector<T> arrived(keys);
        T* later = by.previous + table * keys;  // the gradient that a row gets from the one after it
        for (int64_t key = 0; key < keys; ++key) later[key] = 0;
        for (int64_t query = sizes.queries - 1; query >= 0; --query) {
            const int64_t row = table * sizes.table() + query * keys;
            compute_arrivals<T>(keys, go_on + row, query ? weights + row - keys : previous + table * keys, arrived.data());
            T beyond = 0;  // the gradient by having arrived at the next key
            for (int64_t key = keys - 1; key >= 0; --key) {
                const T own = grad[row + key] + later[key];
                by.stop[row + key] = own * arrived[key];
                by.go_on[row + key] = beyond * arrived[key];
                beyond = own * stop[row + key] + go_on[row + key] * beyond;
                later[key] = beyond;
            }
        }
    }
    return 0;
}

}  // namespace

// sizes: threads, tables, queries, keys.
#define REGARD_ALIGNMENT(T)                                                                                          \
    extern "C" int regard_alignment_forward_##T(const int64_t* sizes, const T* stop, const T* go_on,                 \
                                                const T* previous, T* weights) {                                     \
        return forward<T>({sizes[0], sizes[1], sizes[2], sizes[3]}, stop, go_on, previous, weights);                 \
    }                                                                                                                \
    extern "C" int regard_alignment_backward_##T(const int64_t* sizes, const T* stop, const T* go_on,                \
                                                 const T* previous, const T* weights, const T* grad, T* by_stop,     \
                                                 T* by_go_on, T* by_previous) {                                      \
        return backward<T>({sizes[0], sizes[1], sizes[2], sizes[3]}, stop, go_on, previous, weights, grad,           \
                           {by_stop, by_go_on, by_previous});                                                        \
    }

REGARD_ALIGNMENT(float)
REGARD_ALIGNMENT(double)
