// Sums of long rows, as exact as those of short ones.

#pragma once

#include "vectors.hpp"

namespace regard {

// Vectors that are added up plainly before their sum is added exactly: few enough that rounding stays within a unit or
// two in the last place, and enough that exactness costs little. Sums of different blocks do not wait for each other.
constexpr int64_t block_vectors = 16;

// What rounding takes from each addition is kept beside the sum (Knuth's two-sum).
template <class T> class Total {
  public:
    inline void add(Vector<T> value) {
        const Vector<T> sum = high_ + value, shift = sum - high_;
        low_ += (high_ - (sum - shift)) + (value - shift);
        high_ = sum;
    }
    inline T value() const { return sum<T>(high_) + sum<T>(low_); }

  private:
    Vector<T> high_ = {}, low_ = {};
};

// Calls `each(from, to)` for the blocks of `count` numbers, a multiple of the lanes.
template <class T, class Each> inline void for_each_block(int64_t count, Each each) {
    constexpr int64_t size = block_vectors * Lanes<T>::count;
    int64_t from = 0;
    for (; from + size <= count; from += size) each(from, from + size);
    if (from < count) each(from, count);
}

}  // namespace regard
