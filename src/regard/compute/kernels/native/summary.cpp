// What one pass over rows of weights tells, the weights being exp(scale * score - total) and never written out. Totals
// are found here if they are not given. summary.py has the definition.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "top_k.hpp"
#include "logarithm.hpp"
#include "threads.hpp"
#include "vectors.hpp"

namespace {

using namespace regard;

// A float sum of so many rows loses less than a digit; longer ones go on in double.
constexpr int64_t rows_in_float = 64;

template <class T> inline Vector<T> load_row_end(const T* from, int64_t count) {
    T lanes[Lanes<T>::count];
    for (int64_t lane = 0; lane < Lanes<T>::count; ++lane)
        lanes[lane] = lane < count ? from[lane] : -std::numeric_limits<T>::infinity();
    return load<T>(lanes);
}

// The mass that the keys of one group got from the rows of one thread.
template <class T> class Mass {
  public:
    Mass(int64_t size, int64_t padded, T* float_sums, double* double_sums) : size(size), padded(padded), float_sums(float_sums), double_sums(double_sums) {
        std::fill(float_sums, float_sums + padded, T(0));
        std::fill(double_sums, double_sums + size, 0.0);
    }
    void add(const T* weights, int64_t count, T factor) {
        for (int64_t at = 0; at < count; at += Lanes<T>::count)
            store<T>(float_sums + at, load<T>(float_sums + at) + load<T>(weights + at) * factor);
        if (++rows == rows_in_float) spill();
    }
    void add_to(double* received) {
        spill();
#pragma omp critical(regard_summary)
        for (int64_t key = 0; key < size; ++key) received[key] += double_sums[key];
        std::fill(double_sums, double_sums + size, 0.0);
    }

  private:
    const int64_t size, padded;
    T* const float_sums;
    double* const double_sums;
    int64_t rows = 0;
    void spill() {
        for (int64_t key = 0; key < size; ++key) double_sums[key] += float_sums[key];
        std::fill(float_sums, float_sums + padded, T(0));
        rows = 0;
    }
};

// The largest score of a row, and a bound that at least as many scores as are wanted exceed.
template <class T> struct Peaks {
    T largest, bound;
};

// Weights before they are divided: their sum, and that of their products with their logarithms.
template <class T> struct Sums {
    T weights, products;
};

template <class T> struct Row {
    const T* scores;
    int64_t size;
    T scale;

    Vector<T> scaled(int64_t at) const {
        const bool whole = at + Lanes<T>::count <= size;
        return (whole ? load<T>(scores + at) : load_row_end<T>(scores + at, size - at)) * scale;
    }
    // The largest of each lane are different scores: the last wanted of them is a bound, and most scores are below it.
    Peaks<T> peaks(int64_t wanted) const {
        constexpr int width = Lanes<T>::count;
        const T none = -std::numeric_limits<T>::infinity();
        Vector<T> most = fill<T>(none);
        for (int64_t at = 0; at < size; at += width) most = greater(most, scaled(at));
        T lanes[width];
        store<T>(lanes, most);
        T bound = std::numeric_limits<T>::infinity();
        for (T lane : lanes)
            if (__builtin_popcount(lane_bits<T>(most > lane)) < wanted) bound = std::min(bound, lane);
        return {*std::max_element(lanes, lanes + width), wanted > width ? none : std::nextafter(bound, none)};
    }
    Sums<T> weigh(T shift, T bound, T* weights, TopK<T>& best) const {
        const T limit = Lanes<T>::exponent_limit;
        Vector<T> sum = fill<T>(0), products = fill<T>(0);
        for (int64_t at = 0; at < size; at += Lanes<T>::count) {
            const Vector<T> score = scaled(at), logarithm = score - shift;
            const Vector<T> cut = at_least<T>(-limit, at_most<T>(limit, logarithm));
            const Vector<T> weight = logarithm < -limit ? fill<T>(0) : Exponential<T>(cut).value();
            store<T>(weights + at, weight);
            sum += weight;
            products += weight * cut;
            for (unsigned found = lane_bits<T>(score > bound); found; found &= found - 1) {
                const int64_t key = at + __builtin_ctz(found);
                const T own = scores[key] * scale;
                if (own > best.least()) best.insert(own, key);
                bound = std::max(bound, best.least());
            }
        }
        return {regard::sum<T>(sum), regard::sum<T>(products)};
    }
};

// From scores to weights. If fewer keys than asked for have any, the first of the others fill up: no key stands twice.
template <class T> void write_best(TopK<T>& best, T total) {
    int64_t next = 0;
    for (int64_t n = 0; n < best.count; ++n) {
        const bool seen = best.scores[n] > -std::numeric_limits<T>::infinity();
        best.scores[n] = seen ? std::exp(best.scores[n] - total) : T(0);
        if (seen) continue;
        while (std::find(best.places, best.places + n, next) != best.places + n) ++next;
        best.places[n] = next++;
    }
}

// One row. A total that is given is taken; one that is not is the largest score and the logarithm of a sum that is safe.
template <class T> T compute_entropy(const Row<T>& row, bool given, T& total, T* weights, Mass<T>& mass, TopK<T>& best) {
    const Peaks<T> peaks = row.peaks(best.count);
    const T shift = given ? total : peaks.largest;
    if (!given) total = shift;
    if (peaks.largest == -std::numeric_limits<T>::infinity()) return T(0);
    const Sums<T> sums = row.weigh(shift, peaks.bound, weights, best);
    const T factor = given ? T(1) : T(1) / sums.weights, rest = given ? T(0) : std::log(sums.weights);
    mass.add(weights, row.size, factor);
    total = shift + rest;
    return rest - sums.products * factor;
}

template <class T>
int summarize(const int64_t* layout, T scale, const T* scores, T* totals, T* entropies, double* received,
              T* best_weights, int64_t* best_keys) {
    const int64_t threads = layout[0], groups = layout[1], rows = layout[2], size = layout[3], count = layout[4];
    const int64_t seen = layout[5];  // by the first row of a group; each next one sees one more
    const bool given = layout[6] != 0;
    constexpr int width = Lanes<T>::count;
    const int64_t padded = (size + width - 1) / width * width;
    const int used = threads_for(groups * rows * size * 4, threads);
    const Buffer<T> float_sums(used * padded), weights(used * padded);
    const Buffer<double> double_sums(used * size);
#pragma omp parallel num_threads(used) if (used > 1)
    {
        T* const own = weights + thread_number() * padded;
        Mass<T> mass(size, padded, float_sums + thread_number() * padded, double_sums + thread_number() * size);
        int64_t group = -1;
#pragma omp for schedule(static) nowait
        for (int64_t row = 0; row < groups * rows; ++row) {
            if (group >= 0 && row / rows != group) mass.add_to(received + group * size);
            group = row / rows;
            TopK<T> best{count, best_weights + row * count, best_keys + row * count};
            best.clear();
            const int64_t own_size = std::max<int64_t>(0, std::min(size, seen + row % rows));
            const Row<T> one{scores + row * size, own_size, scale};
            entropies[row] = compute_entropy(one, given, totals[row], own, mass, best);
            write_best(best, totals[row]);
        }
        if (group >= 0) mass.add_to(received + group * size);
    }
    return 0;
}

}  // namespace

#define REGARD_SUMMARY(T)                                                                                            \
    extern "C" int regard_summary_##T(const int64_t* layout, T scale, const T* scores, T* totals, T* entropies,      \
                                      double* received, T* best_weights, int64_t* best_keys) {                       \
        return summarize<T>(layout, scale, scores, totals, entropies, received, best_weights, best_keys);            \
    }

REGARD_SUMMARY(float)
REGARD_SUMMARY(double)
