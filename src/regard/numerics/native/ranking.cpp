// The largest scores of each row, and the logarithm of the sum of all exponentials. ranking.py has the definition.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "best.hpp"
#include "gates.hpp"
#include "logarithm.hpp"
#include "threads.hpp"

namespace {

using namespace regard;

inline bool among(int64_t place, int64_t count, const int64_t* excluded) {
    for (int64_t i = 0; i < count; ++i)
        if (excluded[i] == place) return true;
    return false;
}

template <class T>
int rank(int64_t threads, int64_t rows, int64_t size, int64_t count, int64_t excluded_count, const int64_t* excluded,
         const T* scores, T* best_scores, int64_t* best_places, T* totals) {
    constexpr int width = Lanes<T>::count;
#pragma omp parallel for num_threads(threads_for(rows * size * 2, threads)) schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
        const T* own = scores + row * size;
        Best<T> best(count, best_scores + row * count, best_places + row * count);
        T largest = -std::numeric_limits<T>::infinity();
        Vector<T> top = fill<T>(largest);
        for (int64_t at = 0; at < size; at += width) {
            const Part<T> part{at, std::min<int64_t>(width, size - at)};
            const Vector<T> here = part.whole() ? load<T>(own + at) : part.take(own);
            if (part.whole()) {
                top = greater(here, top);
                if (!any<T>(here > best.least())) continue;
            }
            for (int64_t place = at; place < at + part.count; ++place) {
                largest = own[place] > largest ? own[place] : largest;
                if (own[place] > best.least() && !among(place, excluded_count, excluded)) best.offer(own[place], place);
            }
        }
        T lanes[width];
        store<T>(lanes, top);
        for (T lane : lanes) largest = lane > largest ? lane : largest;
        Vector<T> sums = fill<T>(0);
        T rest = 0;
        for (int64_t at = 0; at < size; at += width) {
            if (at + width <= size) {
                sums += exponential<T>(load<T>(own + at) - largest);
            } else {
                for (int64_t place = at; place < size; ++place) rest += std::exp(own[place] - largest);
            }
        }
        totals[row] = largest + std::log(sum<T>(sums) + rest);
    }
    return 0;
}

}  // namespace

#define REGARD_RANK(T)                                                                                                \
    extern "C" int regard_rank_##T(int64_t threads, int64_t rows, int64_t size, int64_t count, int64_t excluded_count,\
                                   const int64_t* excluded, const T* scores, T* best_scores, int64_t* best_places,    \
                                   T* totals) {                                                                       \
        return rank<T>(threads, rows, size, count, excluded_count, excluded, scores, best_scores, best_places,        \
                       totals);                                                                                       \
    }

REGARD_RANK(float)
REGARD_RANK(double)
