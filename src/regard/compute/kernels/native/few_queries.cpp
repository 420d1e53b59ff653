// Softmax attention of a handful of queries, which reads nothing but the pairs that are allowed. few_queries.py defines it.

#include <cmath>
#include <cstdint>
#include <limits>

#include "logarithm.hpp"
#include "threads.hpp"
#include "vectors.hpp"

namespace {

using namespace regard;

template <class T> inline int64_t round_up_to_lanes(int64_t size) {
    return (size + Lanes<T>::count - 1) / Lanes<T>::count * Lanes<T>::count;
}

template <class T> struct Rows {  // rows of some matrix, one `stride` apart
    T* data;
    int64_t stride;
    T* row(int64_t index) const { return data + index * stride; }
};

// Steps between neighbors along batch, head and row; numbers of a row are neighbors in memory.
struct Strides {
    int64_t batch, head, row;
    int64_t to(int64_t b, int64_t h) const { return b * batch + h * head; }
};

struct Sizes {
    int64_t batch, heads, queries, keys, width, value;
};

template <class T> inline T dot(const T* left, const T* right, int64_t width) {
    constexpr int lanes = Lanes<T>::count;
    Vector<T> sums = fill<T>(0);
    int64_t at = 0;
    for (; at + lanes <= width; at += lanes) sums += load<T>(left + at) * load<T>(right + at);
    T rest = 0;
    for (; at < width; ++at) rest += left[at] * right[at];
    return sum<T>(sums) + rest;
}

// The keys that a query may see. All of them, if there is no table.
inline int64_t list_allowed_keys(const bool* allowed, int64_t keys, int64_t* seen) {
    int64_t count = 0;
    for (int64_t key = 0; key < keys; ++key) {
        seen[count] = key;
        count += allowed ? allowed[key] : 1;
    }
    return count;
}

// Scores become weights that are still to be divided by their sum, which is returned: NaN if a score is not finite.
template <class T> T exponentiate_scores(T* scores, int64_t count) {
    constexpr int lanes = Lanes<T>::count;
    T largest = scores[0], broken = 0;
    for (int64_t i = 0; i < count; ++i) {
        largest = scores[i] > largest ? scores[i] : largest;
        broken += scores[i] - scores[i];
    }
    Vector<T> sums = fill<T>(0);
    for (int64_t i = count; i < round_up_to_lanes<T>(count); ++i) scores[i] = -std::numeric_limits<T>::infinity();
    for (int64_t i = 0; i < count; i += lanes) {
        const Vector<T> weights = exponential<T>(load<T>(scores + i) - largest);
        store<T>(scores + i, weights);
        sums += weights;
    }
    return sum<T>(sums) + broken;
}

// C vectors of the sum of the values, each times its weight.
template <class T, int C>
inline void average(int64_t count, const int64_t* seen, const T* weights, T factor, Rows<const T> values, T* output) {
    constexpr int lanes = Lanes<T>::count;
    Vector<T> sums[C] = {};
    for (int64_t i = 0; i < count; ++i) {
        const T* value = values.row(seen[i]);
        for (int c = 0; c < C; ++c) sums[c] += load<T>(value + c * lanes) * weights[i];
    }
    for (int c = 0; c < C; ++c) store<T>(output + c * lanes, sums[c] * factor);
}

template <class T>
void average_rows(int64_t width, int64_t count, const int64_t* seen, const T* weights, T factor, Rows<const T> values,
              T* output) {
    constexpr int lanes = Lanes<T>::count;
    int64_t at = 0;
    const auto from = [&] { return Rows<const T>{values.data + at, values.stride}; };
    for (; at + 4 * lanes <= width; at += 4 * lanes) average<T, 4>(count, seen, weights, factor, from(), output + at);
    if (at + 2 * lanes <= width) average<T, 2>(count, seen, weights, factor, from(), output + at), at += 2 * lanes;
    if (at + lanes <= width) average<T, 1>(count, seen, weights, factor, from(), output + at), at += lanes;
    for (; at < width; ++at) {
        T total = 0;
        for (int64_t i = 0; i < count; ++i) total += weights[i] * values.row(seen[i])[at];
        output[at] = total * factor;
    }
}

template <class T>
int attend_few_queries(int64_t threads, const Sizes& n, const Strides* steps, T scale, const T* query, const T* key, const T* value,
        const bool* allowed, T* output) {
    const int64_t pairs = n.batch * n.heads, work = pairs * n.queries * n.keys * (n.width + n.value) / 4;
#pragma omp parallel num_threads(threads_for(work, threads))
    {
        Buffer<T> scores(round_up_to_lanes<T>(n.keys));
        Buffer<int64_t> seen(n.keys + 1);
#pragma omp for schedule(static)
        for (int64_t pair = 0; pair < pairs; ++pair) {
            const int64_t b = pair / n.heads, h = pair % n.heads;
            const Rows<const T> queries{query + steps[0].to(b, h), steps[0].row};
            const Rows<const T> keys{key + steps[1].to(b, h), steps[1].row};
            const Rows<const T> values{value + steps[2].to(b, h), steps[2].row};
            for (int64_t i = 0; i < n.queries; ++i) {
                const bool* row = allowed ? allowed + steps[3].to(b, h) + i * steps[3].row : nullptr;
                const int64_t count = list_allowed_keys(row, n.keys, seen);
                for (int64_t j = 0; j < count; ++j)
                    scores[j] = scale * dot(queries.row(i), keys.row(seen[j]), n.width);
                const T total = count ? exponentiate_scores<T>(scores, count) : T(1);
                T* place = output + steps[4].to(b, h) + i * steps[4].row;
                average_rows<T>(n.value, count, seen, scores, 1 / total, values, place);
            }
        }
    }
    return 0;
}

}  // namespace

#define REGARD_FEW_QUERIES(T)                                                                                                 \
    extern "C" int regard_few_queries_##T(int64_t threads, const int64_t* sizes, const int64_t* steps, double scale,          \
                                  const T* query, const T* key, const T* value, const bool* allowed, T* output) {     \
        return attend_few_queries<T>(threads, *reinterpret_cast<const Sizes*>(sizes), reinterpret_cast<const Strides*>(steps),         \
                      T(scale), query, key, value, allowed, output);                                                  \
    }

REGARD_FEW_QUERIES(float)
REGARD_FEW_QUERIES(double)
