// Dropout in one pass: the noise is drawn where it is used and never stored. dropout.py has the formulas.

#include <algorithm>
#include <cstdint>

#include "noise.hpp"
#include "threads.hpp"

namespace {

using namespace regard;

constexpr int64_t columns = 4096;  // numbers in a row of the noise

// What becomes of `count` numbers that lie in one row of noise.
template <class T, class Body> void for_each_row(int64_t threads, int64_t seed, int64_t count, Body body) {
    const int64_t all = (count + columns - 1) / columns;
#pragma omp parallel for num_threads(threads_for(count, threads)) schedule(static)
    for (int64_t row = 0; row < all; ++row) {
        const RowKeys keys(uint64_t(seed), 0, uint32_t(row));
        const int64_t start = row * columns, size = std::min(columns, count - start);
        body(keys, start, size);
    }
}

template <class T>
int dropout(int64_t threads, int64_t seed, int64_t count, float rate, double scale, const T* from, const T* base,
            T* to) {
    const uint32_t limit = compute_limit(rate);
    const T factor = T(scale);
    for_each_row<T>(threads, seed, count, [=](RowKeys keys, int64_t start, int64_t size) {
        const T* in = from + start;
        T* out = to + start;
        if (base) {
            const T* under = base + start;
            for (int64_t j = 0; j < size; ++j) {
                const T value = in[j] * factor, sum = under[j] + value;
                out[j] = (keys.bits(uint32_t(j)) >> 9) >= limit ? sum : under[j];
            }
        } else {
            for (int64_t j = 0; j < size; ++j) {
                const T value = in[j] * factor;
                out[j] = (keys.bits(uint32_t(j)) >> 9) >= limit ? value : T(0);
            }
        }
    });
    return 0;
}

template <class T>
int relu_dropout(int64_t threads, int64_t seed, int64_t count, float rate, double scale, const T* from, T* to) {
    const uint32_t limit = compute_limit(rate);
    const T factor = T(scale);
    for_each_row<T>(threads, seed, count, [=](RowKeys keys, int64_t start, int64_t size) {
        const T* in = from + start;
        T* out = to + start;
        for (int64_t j = 0; j < size; ++j) {
            const T positive = in[j] < T(0) ? T(0) : in[j], value = positive * factor;  // a NaN stays
            out[j] = (keys.bits(uint32_t(j)) >> 9) >= limit ? value : T(0);
        }
    });
    return 0;
}

}  // namespace

#define REGARD_DROPOUT(T)                                                                                             \
    extern "C" int regard_dropout_##T(int64_t threads, int64_t seed, int64_t count, float rate, double scale,         \
                                      const T* from, const T* base, T* to) {                                          \
        return dropout<T>(threads, seed, count, rate, scale, from, base, to);                                         \
    }                                                                                                                 \
    extern "C" int regard_relu_dropout_##T(int64_t threads, int64_t seed, int64_t count, float rate, double scale,       \
                                        const T* from, T* to) {                                                       \
        return relu_dropout<T>(threads, seed, count, rate, scale, from, to);                                             \
    }

REGARD_DROPOUT(float)
REGARD_DROPOUT(double)
