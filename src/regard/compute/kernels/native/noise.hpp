// Noise by address, bit for bit what noise.py computes in torch; the constants and their source are named there.

#pragma once

#include <cstdint>

namespace regard {

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
    inline uint32_t bits(uint32_t column) const { return mix(mix(column ^ first) + second); }
};

// One of the 2^23 midpoints of (0, 1): the sum and the product are exact.
inline float midpoint(uint32_t bits) { return (float(int32_t(bits >> 9)) + 0.5f) * 0x1p-23f; }

// A word is at least this, after a shift by 9, iff its midpoint is at least the rate: dropout without floats.
inline uint32_t compute_limit(float rate) {
    uint32_t low = 0, high = 1u << 23;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (midpoint(middle << 9) >= rate) high = middle;
        else low = middle + 1;
    }
    return low;
}

}  // namespace regard
