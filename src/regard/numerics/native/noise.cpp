// Noise by address, bit for bit what noise.py computes in torch; the constants and their source are named there.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "threads.hpp"

namespace {

inline uint32_t mix(uint32_t word) {
    word = (word ^ (word >> 16)) * 0x7feb352du;
    word = (word ^ (word >> 15)) * 0x846ca68bu;
    return word ^ (word >> 16);
}

struct RowKeys {
    uint32_t first, second;
    RowKeys(uint64_t seed, uint32_t lead, uint32_t row) {
        const uint32_t low = uint32_t(seed), high = uint32_t(seed >> 32);
        first = mix(mix(mix(low) ^ lead) ^ row);
        second = mix(mix(mix(high ^ mix(low + 0x9e3779b9u)) + lead) + row);
    }
};

// One of the 2^23 midpoints of (0, 1): the sum and the product are exact.
inline float midpoint(uint32_t bits) { return (float(int32_t(bits >> 9)) + 0.5f) * 0x1p-23f; }

}  // namespace

// Fills (lead, rows, columns). With rate < 0 by uniform noise, else by 0 or `scale`: dropout's factor.
extern "C" int regard_noise(int64_t threads, int64_t seed, int64_t lead, int64_t rows, const int64_t* row,
                            int64_t columns, const int64_t* column, float rate, float scale, float* noise) {
    std::vector<uint32_t> place(column, column + columns);
    const int64_t all = lead * rows, block = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, columns));
#pragma omp parallel for num_threads(regard::threads_for(all * columns, threads)) schedule(dynamic, block)
    for (int64_t at = 0; at < all; ++at) {
        const RowKeys key(uint64_t(seed), uint32_t(at / rows), uint32_t(row[at % rows]));
        float* to = noise + at * columns;
        for (int64_t j = 0; j < columns; ++j) {
            const float uniform = midpoint(mix(mix(place[j] ^ key.first) + key.second));
            to[j] = rate < 0 ? uniform : uniform >= rate ? scale : 0.0f;
        }
    }
    return 0;
}
