// One step of recurrent cells after the matrix product: the gates, forward and backward. recurrent.py has formulas.
//
// A row that is not real keeps its state and has no gradient to anything else.

#include <algorithm>
#include <cstdint>

#include "gates.hpp"
#include "threads.hpp"

namespace {

using namespace regard;

template <class Body> void each_row(int64_t threads, int64_t rows, int64_t work, const uint8_t* real, Body body) {
#pragma omp parallel for num_threads(threads_for(rows * work, threads)) schedule(static)
    for (int64_t row = 0; row < rows; ++row) body(row, !real || real[row]);
}

// kept: reset, update, candidate, and the candidate's share of the hidden product; may be null.
template <class T>
int gru(int64_t threads, int64_t rows, int64_t size, const uint8_t* real, const T* input, const T* hidden,
        const T* before, T* state, T* kept) {
    each_row(threads, rows, 16 * size, real, [=](int64_t row, bool is_real) {
        const T *x = input + row * 3 * size, *h = hidden + row * 3 * size, *old = before + row * size;
        T *to = state + row * size, *keep = kept ? kept + row * 4 * size : nullptr;
        if (!is_real) return (void)std::copy(old, old + size, to);
        walk<T>(size, [=](Part<T> part) {
            const Vector<T> reset = sigmoid<T>(part.take(x) + part.take(h));
            const Vector<T> update = sigmoid<T>(part.take(x + size) + part.take(h + size));
            const Vector<T> share = part.take(h + 2 * size);
            const Vector<T> candidate = tangent<T>(part.take(x + 2 * size) + reset * share);
            part.put(to, candidate + update * (part.take(old) - candidate));
            if (!keep) return;
            part.put(keep, reset);
            part.put(keep + size, update);
            part.put(keep + 2 * size, candidate);
            part.put(keep + 3 * size, share);
        });
    });
    return 0;
}

// `carry` comes in as the gradient from the next step and goes out as the direct one to the step before.
template <class T>
int gru_back(int64_t threads, int64_t rows, int64_t size, const uint8_t* real, const T* kept, const T* before,
             const T* upstream, T* by_input, T* by_hidden, T* carry) {
    each_row(threads, rows, 8 * size, real, [=](int64_t row, bool is_real) {
        const T *keep = kept + row * 4 * size, *old = before + row * size, *up = upstream + row * size;
        T *x = by_input + row * 3 * size, *h = by_hidden + row * 3 * size, *on = carry + row * size;
        if (!is_real) {
            std::fill(x, x + 3 * size, T(0));
            std::fill(h, h + 3 * size, T(0));
            for (int64_t j = 0; j < size; ++j) on[j] += up[j];
            return;
        }
        walk<T>(size, [=](Part<T> part) {
            const Vector<T> grad = part.take(up) + part.take(on);
            const Vector<T> reset = part.take(keep), update = part.take(keep + size);
            const Vector<T> candidate = part.take(keep + 2 * size), share = part.take(keep + 3 * size);
            const Vector<T> by_candidate = grad * (T(1) - update) * (T(1) - candidate * candidate);
            const Vector<T> by_update = grad * (part.take(old) - candidate) * update * (T(1) - update);
            const Vector<T> by_reset = by_candidate * share * reset * (T(1) - reset);
            part.put(x, by_reset);
            part.put(h, by_reset);
            part.put(x + size, by_update);
            part.put(h + size, by_update);
            part.put(x + 2 * size, by_candidate);
            part.put(h + 2 * size, by_candidate * reset);
            part.put(on, grad * update);
        });
    });
    return 0;
}

// kept: input, forget, candidate and output gates, and the tangent of the cell; may be null.
template <class T>
int lstm(int64_t threads, int64_t rows, int64_t size, const uint8_t* real, const T* input, const T* hidden,
         const T* before, const T* cell_before, T* state, T* cell, T* kept) {
    each_row(threads, rows, 20 * size, real, [=](int64_t row, bool is_real) {
        const T *x = input + row * 4 * size, *h = hidden + row * 4 * size;
        const T *old = before + row * size, *old_cell = cell_before + row * size;
        T *to = state + row * size, *to_cell = cell + row * size, *keep = kept ? kept + row * 5 * size : nullptr;
        if (!is_real) {
            std::copy(old, old + size, to);
            std::copy(old_cell, old_cell + size, to_cell);
            return;
        }
        walk<T>(size, [=](Part<T> part) {
            const Vector<T> in = sigmoid<T>(part.take(x) + part.take(h));
            const Vector<T> forget = sigmoid<T>(part.take(x + size) + part.take(h + size));
            const Vector<T> candidate = tangent<T>(part.take(x + 2 * size) + part.take(h + 2 * size));
            const Vector<T> out = sigmoid<T>(part.take(x + 3 * size) + part.take(h + 3 * size));
            const Vector<T> now = forget * part.take(old_cell) + in * candidate, seen = tangent<T>(now);
            part.put(to_cell, now);
            part.put(to, out * seen);
            if (!keep) return;
            part.put(keep, in);
            part.put(keep + size, forget);
            part.put(keep + 2 * size, candidate);
            part.put(keep + 3 * size, out);
            part.put(keep + 4 * size, seen);
        });
    });
    return 0;
}

// `carry` goes out as 0 where the row is real: all of the state's gradient goes through the gates.
template <class T>
int lstm_back(int64_t threads, int64_t rows, int64_t size, const uint8_t* real, const T* kept, const T* cell_before,
              const T* upstream, T* by_gates, T* carry, T* cell_carry) {
    each_row(threads, rows, 8 * size, real, [=](int64_t row, bool is_real) {
        const T *keep = kept + row * 5 * size, *old_cell = cell_before + row * size, *up = upstream + row * size;
        T *gates = by_gates + row * 4 * size, *on = carry + row * size, *cell = cell_carry + row * size;
        if (!is_real) {
            std::fill(gates, gates + 4 * size, T(0));
            for (int64_t j = 0; j < size; ++j) on[j] += up[j];
            return;
        }
        walk<T>(size, [=](Part<T> part) {
            const Vector<T> grad = part.take(up) + part.take(on);
            const Vector<T> in = part.take(keep), forget = part.take(keep + size);
            const Vector<T> candidate = part.take(keep + 2 * size), out = part.take(keep + 3 * size);
            const Vector<T> seen = part.take(keep + 4 * size);
            const Vector<T> by_cell = part.take(cell) + grad * out * (T(1) - seen * seen);
            part.put(gates, by_cell * candidate * in * (T(1) - in));
            part.put(gates + size, by_cell * part.take(old_cell) * forget * (T(1) - forget));
            part.put(gates + 2 * size, by_cell * in * (T(1) - candidate * candidate));
            part.put(gates + 3 * size, grad * seen * out * (T(1) - out));
            part.put(cell, by_cell * forget);
            part.put(on, fill<T>(0));
        });
    });
    return 0;
}

}  // namespace

#define REGARD_RECURRENT(T)                                                                                           \
    extern "C" int regard_gru_##T(int64_t threads, int64_t rows, int64_t size, const uint8_t* real, const T* input,   \
                                  const T* hidden, const T* before, T* state, T* kept) {                              \
        return gru<T>(threads, rows, size, real, input, hidden, before, state, kept);                                 \
    }                                                                                                                 \
    extern "C" int regard_gru_back_##T(int64_t threads, int64_t rows, int64_t size, const uint8_t* real,              \
                                       const T* kept, const T* before, const T* upstream, T* by_input, T* by_hidden,  \
                                       T* carry) {                                                                    \
        return gru_back<T>(threads, rows, size, real, kept, before, upstream, by_input, by_hidden, carry);            \
    }                                                                                                                 \
    extern "C" int regard_lstm_##T(int64_t threads, int64_t rows, int64_t size, const uint8_t* real, const T* input,  \
                                   const T* hidden, const T* before, const T* cell_before, T* state, T* cell,         \
                                   T* kept) {                                                                         \
        return lstm<T>(threads, rows, size, real, input, hidden, before, cell_before, state, cell, kept);             \
    }                                                                                                                 \
    extern "C" int regard_lstm_back_##T(int64_t threads, int64_t rows, int64_t size, const uint8_t* real,             \
                                        const T* kept, const T* cell_before, const T* upstream, T* by_gates,          \
                                        T* carry, T* cell_carry) {                                                    \
        return lstm_back<T>(threads, rows, size, real, kept, cell_before, upstream, by_gates, carry, cell_carry);     \
    }

REGARD_RECURRENT(float)
REGARD_RECURRENT(double)
