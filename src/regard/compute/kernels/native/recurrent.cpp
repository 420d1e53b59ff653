// One step of recurrent cells after the matrix product: the gates, forward and backward. recurrent.py has formulas.
//
// A row that is not real keeps its state and has no gradient to anything else.

#include <algorithm>
#include <cstdint>

#include "gates.hpp"
#include "threads.hpp"

namespace {

using namespace regard;

template <class Body> void for_each_row(int64_t threads, int64_t rows, int64_t work, const uint8_t* real, Body body) {
#pragma omp parallel for num_threads(threads_for(rows * work, threads)) schedule(static)
    for (int64_t row = 0; row < rows; ++row) body(row, !real || real[row]);
}

// The backward pass of a row that is not real: its gradient goes to the state before, and none to the gates.
template <class T, class... Gates> void skip_row(int64_t size, const T* up, T* on, int64_t width, Gates... gates) {
    (std::fill(gates, gates + width, T(0)), ...);
    for (int64_t j = 0; j < size; ++j) on[j] += up[j];
}

// kept: reset, update, candidate, and the candidate's share of the hidden product; may be null.
template <class T>
int gru_cell(int64_t threads, int64_t rows, int64_t size, const uint8_t* real, const T* input, const T* hidden,
        const T* before, T* state, T* kept) {
    for_each_row(threads, rows, 16 * size, real, [=](int64_t row, bool is_real) {
        const T *x = input + row * 3 * size, *h = hidden + row * 3 * size, *old = before + row * size;
        T *to = state + row * size, *keep = kept ? kept + row * 4 * size : nullptr;
        if (!is_real) return (void)std::copy(old, old + size, to);
        for_each_part<T>(size, [=](LaneRange<T> part) {
            const Vector<T> reset = sigmoid<T>(part.load_lanes(x) + part.load_lanes(h));
            const Vector<T> update = sigmoid<T>(part.load_lanes(x + size) + part.load_lanes(h + size));
            const Vector<T> share = part.load_lanes(h + 2 * size);
            const Vector<T> candidate = vector_tanh<T>(part.load_lanes(x + 2 * size) + reset * share);
            part.store_lanes(to, candidate + update * (part.load_lanes(old) - candidate));
            if (keep) part.store_rows(keep, size, reset, update, candidate, share);
        });
    });
    return 0;
}

// `carry` comes in as the gradient from the next step and goes out as the direct one to the step before.
template <class T>
int gru_cell_backward(int64_t threads, int64_t rows, int64_t size, const uint8_t* real, const T* kept, const T* before,
             const T* upstream, T* by_input, T* by_hidden, T* carry) {
    for_each_row(threads, rows, 8 * size, real, [=](int64_t row, bool is_real) {
        const T *keep = kept + row * 4 * size, *old = before + row * size, *up = upstream + row * size;
        T *x = by_input + row * 3 * size, *h = by_hidden + row * 3 * size, *on = carry + row * size;
        if (!is_real) return skip_row(size, up, on, 3 * size, x, h);
        for_each_part<T>(size, [=](LaneRange<T> part) {
            const Vector<T> grad = part.load_lanes(up) + part.load_lanes(on);
            const Vector<T> reset = part.load_lanes(keep), update = part.load_lanes(keep + size);
            const Vector<T> candidate = part.load_lanes(keep + 2 * size), share = part.load_lanes(keep + 3 * size);
            const Vector<T> by_candidate = grad * (T(1) - update) * (T(1) - candidate * candidate);
            const Vector<T> by_update = grad * (part.load_lanes(old) - candidate) * update * (T(1) - update);
            const Vector<T> by_reset = by_candidate * share * reset * (T(1) - reset);
            const Vector<T> by_share = by_candidate * reset;
            part.store_rows(x, size, by_reset, by_update, by_candidate);
            part.store_rows(h, size, by_reset, by_update, by_share);
            part.store_lanes(on, grad * update);
        });
    });
    return 0;
}

// kept: input, forget, candidate and output gates, and the tangent of the cell; may be null.
template <class T>
int lstm_cell(int64_t threads, int64_t rows, int64_t size, const uint8_t* real, const T* input, const T* hidden,
         const T* before, const T* cell_before, T* state, T* cell, T* kept) {
    for_each_row(threads, rows, 20 * size, real, [=](int64_t row, bool is_real) {
        const T *x = input + row * 4 * size, *h = hidden + row * 4 * size;
        const T *old = before + row * size, *old_cell = cell_before + row * size;
        T *to = state + row * size, *to_cell = cell + row * size, *keep = kept ? kept + row * 5 * size : nullptr;
        if (!is_real) {
            std::copy(old, old + size, to);
            std::copy(old_cell, old_cell + size, to_cell);
            return;
        }
        for_each_part<T>(size, [=](LaneRange<T> part) {
            const Vector<T> in = sigmoid<T>(part.load_lanes(x) + part.load_lanes(h));
            const Vector<T> forget = sigmoid<T>(part.load_lanes(x + size) + part.load_lanes(h + size));
            const Vector<T> candidate = vector_tanh<T>(part.load_lanes(x + 2 * size) + part.load_lanes(h + 2 * size));
            const Vector<T> out = sigmoid<T>(part.load_lanes(x + 3 * size) + part.load_lanes(h + 3 * size));
            const Vector<T> now = forget * part.load_lanes(old_cell) + in * candidate, seen = vector_tanh<T>(now);
            part.store_lanes(to_cell, now);
            part.store_lanes(to, out * seen);
            if (keep) part.store_rows(keep, size, in, forget, candidate, out, seen);
        });
    });
    return 0;
}

// `carry` goes out as 0 if the row is real: all of the state's gradient goes through the gates.
template <class T>
int lstm_cell_backward(int64_t threads, int64_t rows, int64_t size, const uint8_t* real, const T* kept, const T* cell_before,
              const T* upstream, T* by_gates, T* carry, T* cell_carry) {
    for_each_row(threads, rows, 8 * size, real, [=](int64_t row, bool is_real) {
        const T *keep = kept + row * 5 * size, *old_cell = cell_before + row * size, *up = upstream + row * size;
        T *gates = by_gates + row * 4 * size, *on = carry + row * size, *cell = cell_carry + row * size;
        if (!is_real) return skip_row(size, up, on, 4 * size, gates);
        for_each_part<T>(size, [=](LaneRange<T> part) {
            const Vector<T> grad = part.load_lanes(up) + part.load_lanes(on);
            const Vector<T> in = part.load_lanes(keep), forget = part.load_lanes(keep + size);
            const Vector<T> candidate = part.load_lanes(keep + 2 * size), out = part.load_lanes(keep + 3 * size);
            const Vector<T> seen = part.load_lanes(keep + 4 * size);
            const Vector<T> by_cell = part.load_lanes(cell) + grad * out * (T(1) - seen * seen);
            part.store_lanes(gates, by_cell * candidate * in * (T(1) - in));
            part.store_lanes(gates + size, by_cell * part.load_lanes(old_cell) * forget * (T(1) - forget));
            part.store_lanes(gates + 2 * size, by_cell * in * (T(1) - candidate * candidate));
            part.store_lanes(gates + 3 * size, grad * seen * out * (T(1) - out));
            part.store_lanes(cell, by_cell * forget);
            part.store_lanes(on, fill<T>(0));
        });
    });
    return 0;
}

}  // namespace

#define REGARD_RECURRENT(T)                                                                                           \
    extern "C" int regard_gru_cell_##T(int64_t threads, int64_t rows, int64_t size, const uint8_t* real, const T* input,   \
                                  const T* hidden, const T* before, T* state, T* kept) {                              \
        return gru_cell<T>(threads, rows, size, real, input, hidden, before, state, kept);                                 \
    }                                                                                                                 \
    extern "C" int regard_gru_cell_backward_##T(int64_t threads, int64_t rows, int64_t size, const uint8_t* real,              \
                                       const T* kept, const T* before, const T* upstream, T* by_input, T* by_hidden,  \
                                       T* carry) {                                                                    \
        return gru_cell_backward<T>(threads, rows, size, real, kept, before, upstream, by_input, by_hidden, carry);            \
    }                                                                                                                 \
    extern "C" int regard_lstm_cell_##T(int64_t threads, int64_t rows, int64_t size, const uint8_t* real, const T* input,  \
                                   const T* hidden, const T* before, const T* cell_before, T* state, T* cell,         \
                                   T* kept) {                                                                         \
        return lstm_cell<T>(threads, rows, size, real, input, hidden, before, cell_before, state, cell, kept);             \
    }                                                                                                                 \
    extern "C" int regard_lstm_cell_backward_##T(int64_t threads, int64_t rows, int64_t size, const uint8_t* real,             \
                                        const T* kept, const T* cell_before, const T* upstream, T* by_gates,          \
                                        T* carry, T* cell_carry) {                                                    \
        return lstm_cell_backward<T>(threads, rows, size, real, kept, cell_before, upstream, by_gates, carry, cell_carry);     \
    }

REGARD_RECURRENT(float)
REGARD_RECURRENT(double)
