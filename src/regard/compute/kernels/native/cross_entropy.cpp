// Cross-entropy over a vocabulary, row by row, in place: scores become their gradient. models/kernels/cross_entropy.py has the formulas.

#include <cmath>
#include <cstdint>
#include <limits>

#include "gates.hpp"
#include "logarithm.hpp"
#include "threads.hpp"

namespace {

using namespace regard;

template <class T> struct RowScan {
    T largest, total;  // the largest score, and the sum of all
    int64_t place;     // where the largest is
};

// Adds the bias, if there is one, on the way.
template <class T> RowScan<T> scan_row(T* scores, const T* bias, int64_t size) {
    Vector<T> top = fill<T>(-std::numeric_limits<T>::infinity()), sums = fill<T>(0);
    int64_t at = 0;
    for (; at + Lanes<T>::count <= size; at += Lanes<T>::count) {
        Vector<T> here = load<T>(scores + at);
        if (bias) store<T>(scores + at, here += load<T>(bias + at));
        top = greater(here, top);
        sums += here;
    }
    T lanes[Lanes<T>::count], largest = -std::numeric_limits<T>::infinity(), total = sum<T>(sums);
    store<T>(lanes, top);
    for (T lane : lanes) largest = lane > largest ? lane : largest;
    for (; at < size; ++at) {
        if (bias) scores[at] += bias[at];
        largest = scores[at] > largest ? scores[at] : largest;
        total += scores[at];
    }
    int64_t place = 0;
    while (place < size - 1 && scores[place] != largest) ++place;
    return {largest, total, place};
}

// Turns scores into e^(score - largest) and returns their sum.
template <class T> T exponentiate(T* scores, int64_t size, T largest) {
    Vector<T> sums = fill<T>(0);
    for_each_part<T>(size, [&](LaneRange<T> part) {
        const Vector<T> power = exponential<T>(part.load_lanes(scores) - largest);
        part.store_lanes(scores, power);
        if (part.whole()) sums += power;
    });
    T total = sum<T>(sums);
    for (int64_t at = size / Lanes<T>::count * Lanes<T>::count; at < size; ++at) total += scores[at];
    return total;
}

template <class T>
int cross_entropy(int64_t threads, int64_t rows, int64_t size, T smoothing, const int64_t* targets, const T* bias,
                  T* scores, T* losses, T* surprises, uint8_t* right) {
    const T even = smoothing / T(size);
#pragma omp parallel for num_threads(threads_for(rows * size * 4, threads)) schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
        T* own = scores + row * size;
        const int64_t target = targets[row];
        const RowScan<T> seen = scan_row<T>(own, bias, size);
        const T wanted = own[target];
        const T total = exponentiate<T>(own, size, seen.largest);
        const T log_total = seen.largest + std::log(total), scale = T(1) / total;
        surprises[row] = log_total - wanted;
        losses[row] = log_total - (T(1) - smoothing) * wanted - even * seen.total;
        right[row] = seen.place == target;
        for_each_part<T>(size, [=](LaneRange<T> part) { part.store_lanes(own, part.load_lanes(own) * scale - even); });
        own[target] -= T(1) - smoothing;
    }
    return 0;
}

}  // namespace

#define REGARD_CROSS_ENTROPY(T)                                                                                       \
    extern "C" int regard_cross_entropy_##T(int64_t threads, int64_t rows, int64_t size, double smoothing,            \
                                            const int64_t* targets, const T* bias, T* scores, T* losses,              \
                                            T* surprises, uint8_t* right) {                                           \
        return cross_entropy<T>(threads, rows, size, T(smoothing), targets, bias, scores, losses, surprises, right);  \
    }

REGARD_CROSS_ENTROPY(float)
REGARD_CROSS_ENTROPY(double)
