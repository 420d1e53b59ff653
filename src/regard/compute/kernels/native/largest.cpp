// The key of the largest product for each query, without a table of products. largest.py defines it.
//
// A vector holds one product of several queries with the same key: queries are laid out by coordinate, keys are read as
// they are, one number for all queries. The largest so far stays in its lane, and the first of equal ones wins.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "threads.hpp"
#include "vectors.hpp"

namespace {

using namespace regard;

constexpr int vectors = 2;  // of queries in a tile
#if defined(__AVX512F__)
constexpr int tile_keys = 12;  // keys in a tile: with its products, two queries and a key it fills the registers
#else
constexpr int tile_keys = 6;
#endif

struct Sizes {
    int64_t batch, heads, queries, keys, width, value;
};

// Steps between neighbors along batch, head and row; numbers of a row are neighbors in memory.
struct Strides {
    int64_t batch, head, row;
    int64_t to(int64_t b, int64_t h) const { return b * batch + h * head; }
};

template <class T> struct Largest {  // of each query of a tile, so far
    Vector<T> product[vectors], broken[vectors];
    typename Lanes<T>::integers key[vectors];
};

// Which keys the queries of a tile may see: a table with a row of queries for each key, and keys up to a position.
struct Sight {
    const bool* table;
    int64_t step, count;
    int64_t last;  // key that the first query may see; the next sees one more

    // All ones in the lanes of a vector of queries that may see the key.
    template <class T> inline typename Lanes<T>::integers find_allowed(int64_t key, int64_t from) const {
        typename Lanes<T>::integers found{};
        for (int lane = 0; lane < Lanes<T>::count; ++lane) {
            const bool seen = !table || (from + lane < count && table[key * step + from + lane]);
            found[lane] = seen && key <= last + from + lane ? -1 : 0;
        }
        return found;
    }
};

template <class T, class Mask> inline Vector<T> choose(Mask mask, Vector<T> yes, Vector<T> no) {
    return mask ? yes : no;
}

template <class T, int K>
inline void add_keys(const T* queries, const T* keys, int64_t step, int64_t width, int64_t first, const Sight& sight,
                     Largest<T>& best) {
    constexpr int lanes = Lanes<T>::count;
    using Integers = typename Lanes<T>::integers;
    Vector<T> products[K][vectors] = {};
    for (int64_t at = 0; at < width; ++at) {
        const Vector<T> left = load<T>(queries + at * vectors * lanes), right = load<T>(queries + (at * vectors + 1) * lanes);
#pragma GCC unroll 12
        for (int k = 0; k < K; ++k) {
            const T number = keys[k * step + at];
            products[k][0] += left * number;
            products[k][1] += right * number;
        }
    }
    const bool masked = sight.table || first + K - 1 > sight.last;
    for (int k = 0; k < K; ++k)
        for (int v = 0; v < vectors; ++v) {
            const Vector<T> product = products[k][v];
            const Integers number = Integers{} + typename Lanes<T>::integer(first + k);
            Integers better = product > best.product[v];
            Vector<T> difference = product - product;  // 0, or NaN
            if (masked) {
                const Integers seen = sight.find_allowed<T>(first + k, v * lanes);
                better &= seen;
                difference = choose<T>(seen, difference, fill<T>(0));
            }
            best.broken[v] += difference;
            best.product[v] = choose<T>(better, product, best.product[v]);
            best.key[v] = better ? number : best.key[v];
        }
}

// The largest of `count` queries of a tile; false if a product that counts is not finite.
template <class T>
bool find_tile(const Sizes& n, const T* queries, const T* keys, int64_t step, const Sight& sight, int64_t* found) {
    constexpr int lanes = Lanes<T>::count;
    Largest<T> best;
    for (int v = 0; v < vectors; ++v) {
        best.product[v] = fill<T>(-std::numeric_limits<T>::infinity());
        best.broken[v] = fill<T>(0);
        best.key[v] = typename Lanes<T>::integers{} - 1;
    }
    const int64_t stop = std::min(n.keys, sight.last + sight.count);
    int64_t key = 0;
    for (; key + tile_keys <= stop; key += tile_keys)
        add_keys<T, tile_keys>(queries, keys + key * step, step, n.width, key, sight, best);
    for (; key < stop; ++key) add_keys<T, 1>(queries, keys + key * step, step, n.width, key, sight, best);
    T broken = 0;
    for (int64_t i = 0; i < sight.count; ++i) {
        broken += best.broken[i / lanes][i % lanes];
        found[i] = best.key[i / lanes][i % lanes];
    }
    return broken == 0;
}

// Queries by coordinate, zeros where there are none.
template <class T> void lay_out(const T* rows, int64_t step, int64_t count, int64_t width, T* to) {
    constexpr int size = vectors * Lanes<T>::count;
    for (int i = 0; i < size; ++i)
        for (int64_t at = 0; at < width; ++at) to[at * size + i] = i < count ? rows[i * step + at] : T(0);
}

template <class T>
int find_largest(int64_t threads, const Sizes& n, const Strides* steps, const T* query, const T* key, const T* value,
                 const bool* allowed, int64_t last, T* output, int64_t* index) {
    constexpr int64_t size = vectors * Lanes<T>::count;
    const int64_t tiles = (n.queries + size - 1) / size, tasks = n.batch * n.heads * tiles;
    int64_t broken = 0;
#pragma omp parallel num_threads(threads_for(tasks * size * n.keys * n.width / 8, threads)) reduction(+ : broken)
    {
        Buffer<T> rows(size * n.width);
#pragma omp for schedule(static)
        for (int64_t task = 0; task < tasks; ++task) {
            const int64_t pair = task / tiles, first = task % tiles * size;
            const int64_t b = pair / n.heads, h = pair % n.heads, count = std::min(size, n.queries - first);
            lay_out<T>(query + steps[0].to(b, h) + first * steps[0].row, steps[0].row, count, n.width, rows);
            int64_t* found = index + pair * n.queries + first;
            const bool* table = allowed ? allowed + steps[3].to(b, h) + first : nullptr;
            const Sight sight{table, steps[3].row, count, last + first};
            broken += !find_tile<T>(n, rows, key + steps[1].to(b, h), steps[1].row, sight, found);
            T* place = output + (pair * n.queries + first) * n.value;
            for (int64_t i = 0; i < count; ++i, place += n.value) {
                if (found[i] < 0) std::memset(place, 0, n.value * sizeof(T));
                else std::memcpy(place, value + steps[2].to(b, h) + found[i] * steps[2].row, n.value * sizeof(T));
            }
        }
    }
    return broken != 0;
}

}  // namespace

#define REGARD_LARGEST(T)                                                                                             \
    extern "C" int regard_largest_##T(int64_t threads, const int64_t* sizes, const int64_t* steps, const T* query,    \
                                      const T* key, const T* value, const bool* allowed, int64_t last, T* output,     \
                                      int64_t* index) {                                                               \
        return find_largest<T>(threads, *reinterpret_cast<const Sizes*>(sizes),                                       \
                               reinterpret_cast<const Strides*>(steps), query, key, value, allowed, last, output,     \
                               index);                                                                                \
    }

REGARD_LARGEST(float)
REGARD_LARGEST(double)
