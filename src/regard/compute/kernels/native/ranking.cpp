// The largest scores of each row, and the logarithm of the sum of all exponentials. ranking.py has the definition.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "top_k.hpp"
#include "gates.hpp"
#include "logarithm.hpp"
#include "threads.hpp"

namespace {

using namespace regard;

inline bool is_excluded(int64_t place, int64_t count, const int64_t* excluded) {
    for (int64_t i = 0; i < count; ++i)
        if (excluded[i] == place) return true;
    return false;
}

// A stretch of one row of scores, from place `first` of the row on. A bias that is not there is nowhere.
template <class T> struct ScoreChunk {
    const T *scores, *bias;
    int64_t size, first;
    T at(int64_t place) const { return bias ? scores[place] + bias[place] : scores[place]; }
    Vector<T> vector(int64_t place) const {
        const Vector<T> here = load<T>(scores + place);
        return bias ? here + load<T>(bias + place) : here;
    }
};

// Offers what is larger than the least of the best; the largest of all, and of what was there.
template <class T> T update_best(const ScoreChunk<T>& own, TopK<T>& best, int64_t count, const int64_t* excluded, T largest) {
    constexpr int width = Lanes<T>::count;
    Vector<T> top = fill<T>(largest);
    for (int64_t at = 0; at < own.size; at += width) {
        const bool whole = at + width <= own.size;
        if (whole) {
            const Vector<T> here = own.vector(at);
            top = greater(here, top);
            if (!any<T>(here > best.least())) continue;
        }
        for (int64_t place = at; place < (whole ? at + width : own.size); ++place) {
            const T score = own.at(place);
            largest = score > largest ? score : largest;
            if (score > best.least() && !is_excluded(own.first + place, count, excluded))
                best.insert(score, own.first + place);
        }
    }
    T lanes[width];
    store<T>(lanes, top);
    for (T lane : lanes) largest = lane > largest ? lane : largest;
    return largest;
}

// The sum of exponentials, each divided by that of the largest.
template <class T> T sum_exponentials(const ScoreChunk<T>& own, T largest) {
    constexpr int width = Lanes<T>::count;
    Vector<T> sums = fill<T>(0);
    T rest = 0;
    int64_t at = 0;
    for (; at + width <= own.size; at += width) sums += exponential<T>(own.vector(at) - largest);
    for (; at < own.size; ++at) rest += std::exp(own.at(at) - largest);
    return sum<T>(sums) + rest;
}

// More scores of each row: what was the best of the earlier ones, their largest and their total, is brought up to date.
template <class T>
int rank(int64_t threads, int64_t rows, int64_t size, int64_t first, int64_t count, int64_t excluded_count,
         const int64_t* excluded, const T* scores, const T* bias, T* best_scores, int64_t* best_places, T* largest,
         T* totals) {
    constexpr T nothing = -std::numeric_limits<T>::infinity();
#pragma omp parallel for num_threads(threads_for(rows * size * 2, threads)) schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
        const ScoreChunk<T> own{scores + row * size, bias, size, first};
        TopK<T> best{count, best_scores + row * count, best_places + row * count};
        const T before = largest[row], now = update_best(own, best, excluded_count, excluded, before);
        if (now == nothing) continue;
        totals[row] = totals[row] * std::exp(before - now) + sum_exponentials(own, now);
        largest[row] = now;
    }
    return 0;
}

}  // namespace

#define REGARD_RANK(T)                                                                                                \
    extern "C" int regard_rank_##T(int64_t threads, int64_t rows, int64_t size, int64_t first, int64_t count,         \
                                   int64_t excluded_count, const int64_t* excluded, const T* scores, const T* bias,   \
                                   T* best_scores, int64_t* best_places, T* largest, T* totals) {                     \
        return rank<T>(threads, rows, size, first, count, excluded_count, excluded, scores, bias, best_scores,        \
                       best_places, largest, totals);                                                                 \
    }

REGARD_RANK(float)
REGARD_RANK(double)
