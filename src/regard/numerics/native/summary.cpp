// What one pass over rows of weights tells, the weights being exp(scale * score - total) and never written out.
// summary.py has the definition.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "best.hpp"
#include "logarithm.hpp"
#include "threads.hpp"
#include "vectors.hpp"

namespace {

using namespace regard;

// A float sum of so many rows loses less than a digit; longer ones go on in double.
constexpr int64_t rows_in_float = 64;

template <class T> inline Vector<T> at_end(const T* from, int64_t count) {
    T lanes[Lanes<T>::count];
    for (int64_t lane = 0; lane < Lanes<T>::count; ++lane)
        lanes[lane] = lane < count ? from[lane] : -std::numeric_limits<T>::infinity();
    return load<T>(lanes);
}

// The mass that the keys of one group got from the rows of one thread.
template <class T> class Mass {
  public:
    Mass(int64_t size, int64_t padded, T* few, double* many) : size(size), padded(padded), few(few), many(many) {
        std::fill(few, few + padded, T(0));
        std::fill(many, many + size, 0.0);
    }
    void add(int64_t at, Vector<T> weights) { store<T>(few + at, load<T>(few + at) + weights); }
    void row_done() {
        if (++rows == rows_in_float) spill();
    }
    void give(double* received) {
        spill();
#pragma omp critical(regard_summary)
        for (int64_t key = 0; key < size; ++key) received[key] += many[key];
        std::fill(many, many + size, 0.0);
    }

  private:
    const int64_t size, padded;
    T* const few;
    double* const many;
    int64_t rows = 0;
    void spill() {
        for (int64_t key = 0; key < size; ++key) many[key] += few[key];
        std::fill(few, few + padded, T(0));
        rows = 0;
    }
};

template <class T> struct Row {
    const T* scores;
    int64_t size;
    T scale, total;

    T entropy(Mass<T>& mass, Best<T>& best) const {
        constexpr int width = Lanes<T>::count;
        const T limit = Lanes<T>::exponent_limit;
        Vector<T> sum = fill<T>(0);
        for (int64_t at = 0; at < size; at += width) {
            const bool whole = at + width <= size;
            const Vector<T> raw = whole ? load<T>(scores + at) : at_end<T>(scores + at, size - at);
            const Vector<T> logarithm = raw * scale - total, cut = at_least<T>(-limit, at_most<T>(limit, logarithm));
            const Vector<T> grown = Exponential<T>(cut).value();
            const Vector<T> weight = logarithm < -limit ? fill<T>(0) : grown;
            sum -= weight * cut;
            mass.add(at, weight);
            if (!any<T>(logarithm > best.least())) continue;
            for (int64_t key = at; key < std::min(at + width, size); ++key) {
                const T own = scores[key] * scale - total;
                if (own > best.least()) best.offer(own, key);
            }
        }
        return regard::sum<T>(sum);
    }
};

// Where fewer keys than asked for have any weight, the first of the others: no key stands twice.
template <class T> void fill_up(Best<T>& best) {
    int64_t next = 0;
    for (int64_t n = 0; n < best.count; ++n) {
        if (best.scores[n] > -std::numeric_limits<T>::infinity()) continue;
        while (std::find(best.places, best.places + n, next) != best.places + n) ++next;
        best.places[n] = next++;
    }
}

template <class T>
int summarize(const int64_t* layout, T scale, const T* scores, const T* totals, T* entropies, double* received,
              T* best_weights, int64_t* best_keys) {
    const int64_t threads = layout[0], groups = layout[1], rows = layout[2], size = layout[3], count = layout[4];
    constexpr int width = Lanes<T>::count;
    const int64_t padded = (size + width - 1) / width * width;
    const int used = threads_for(groups * rows * size * 4, threads);
    const Buffer<T> few(used * padded);
    const Buffer<double> many(used * size);
#pragma omp parallel num_threads(used) if (used > 1)
    {
        Mass<T> mass(size, padded, few + thread_number() * padded, many + thread_number() * size);
        int64_t group = -1;
#pragma omp for schedule(static) nowait
        for (int64_t row = 0; row < groups * rows; ++row) {
            if (group >= 0 && row / rows != group) mass.give(received + group * size);
            group = row / rows;
            Best<T> best(count, best_weights + row * count, best_keys + row * count);
            entropies[row] = Row<T>{scores + row * size, size, scale, totals[row]}.entropy(mass, best);
            fill_up(best);
            for (int64_t n = 0; n < count; ++n) best.scores[n] = std::exp(best.scores[n]);
            mass.row_done();
        }
        if (group >= 0) mass.give(received + group * size);
    }
    return 0;
}

}  // namespace

#define REGARD_SUMMARY(T)                                                                                            \
    extern "C" int regard_summary_##T(const int64_t* layout, T scale, const T* scores, const T* totals,              \
                                      T* entropies, double* received, T* best_weights, int64_t* best_keys) {         \
        return summarize<T>(layout, scale, scores, totals, entropies, received, best_weights, best_keys);            \
    }

REGARD_SUMMARY(float)
REGARD_SUMMARY(double)
