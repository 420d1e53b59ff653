// Tables of noise by address, for noise.py.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "noise.hpp"
#include "threads.hpp"

// Fills (lead, rows, columns). With rate < 0 by uniform noise, else by 0 or `scale`: dropout's factor.
extern "C" int regard_noise(int64_t threads, int64_t seed, int64_t lead, int64_t rows, const int64_t* row,
                            int64_t columns, const int64_t* column, float rate, float scale, float* noise) {
    std::vector<uint32_t> place(column, column + columns);
    const int64_t all = lead * rows, block = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, columns));
#pragma omp parallel for num_threads(regard::threads_for(all * columns, threads)) schedule(dynamic, block)
    for (int64_t at = 0; at < all; ++at) {
        const regard::RowKeys key(uint64_t(seed), uint32_t(at / rows), uint32_t(row[at % rows]));
        float* to = noise + at * columns;
        for (int64_t j = 0; j < columns; ++j) {
            const float uniform = regard::midpoint(key.bits(place[j]));
            to[j] = rate < 0 ? uniform : uniform >= rate ? scale : 0.0f;
        }
    }
    return 0;
}
