// What the forward and the backward of the additive score share. additive.py has the interface.
//
//   s_ij = sum_h w_h tanh(q_ih + k_jh)
//
// tanh of a sum is a ratio of two numbers that are linear in a factor of the key alone:
//
//   plain:   tanh = (E F - 1) / (E F + 1)      with E = exp(2 q), F = exp(2 k)
//   small:   tanh = (t + u) / (1 + t u)        with t = tanh(q),  u = tanh(k)
//
// so exp and tanh run on (queries + keys) * hidden numbers, not on queries * keys * hidden. `small` keeps the relative
// exactness that `plain` loses by E F - 1 if all inputs are near zero; its denominator stays away from zero while
// |q|, |k| <= 1/2. Ratios are added in fours, so that there is one division for four of them, and a product of four
// denominators must not overflow: if E F may pass `product_limit`, it is `clamped` there, which is past the point
// where tanh rounds to 1. If E or F itself would leave the range of the type, exp is taken of the sum: `direct`.

#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

#include "vectors.hpp"

namespace regard::additive {

// Sizes and strides, in numbers, as additive.py packs them. Leading axes are two, outer and inner.
struct Problem {
    int64_t outer, inner, queries, keys, hidden;
    int64_t query_outer, query_inner, query_row;
    int64_t key_outer, key_inner, key_row;
    int64_t weight_outer, weight_inner, one_weight;
    int64_t threads;
    int64_t batch() const { return outer * inner; }
};

// Rows of one of the inputs.
template <class T> struct Rows {
    const T* data;
    int64_t outer, inner, row, inner_count;
    const T* at(int64_t batch, int64_t index) const {
        return data + batch / inner_count * outer + batch % inner_count * inner + index * row;
    }
};
template <class T> Rows<T> query_rows(const T* query, const Problem& p) {
    return {query, p.query_outer, p.query_inner, p.query_row, p.inner};
}
template <class T> Rows<T> key_rows(const T* key, const Problem& p) {
    return {key, p.key_outer, p.key_inner, p.key_row, p.inner};
}
template <class T> Rows<T> weight_rows(const T* weight, const Problem& p) {
    return {weight, p.weight_outer, p.weight_inner, 0, p.inner};
}

// Run the work, and return whether there was too little memory for it, as the interface has it: 0 or 1.
template <class Work> int report_memory(Work work) {
    try {
        work();
        return 0;
    } catch (const std::bad_alloc&) {
        return 1;
    }
}

enum class Form { small, plain, clamped, direct };

template <class T> struct Limits;
template <> struct Limits<float> {
    static constexpr float product = 0x1p30f, exponent = 20.7f;  // exp(exponent) < product, product^4 is finite
    static constexpr float pair_product = 0x1p62f, pair_exponent = 42.9f;
    static constexpr int small_terms = 12;
};
template <> struct Limits<double> {
    static constexpr double product = 0x1p250, exponent = 173.2;
    static constexpr double pair_product = 0x1p500, pair_exponent = 346.5;
    static constexpr int small_terms = 20;
};

// `reach` is the largest |2 q| or |2 k| of a block.
template <class T> Form choose_form(bool small, T query_reach, T key_reach) {
    if (small) return Form::small;
    if (query_reach + key_reach <= Limits<T>::exponent) return Form::plain;
    const T limit = Lanes<T>::exponent_limit;
    return query_reach <= limit && key_reach <= limit ? Form::clamped : Form::direct;
}
template <class T> bool is_small(T reach) { return reach <= T(1); }

constexpr int64_t round_up(int64_t number, int64_t multiple) { return (number + multiple - 1) / multiple * multiple; }
constexpr int64_t ceil_divide(int64_t number, int64_t size) { return (number + size - 1) / size; }

template <class T> T largest(const T* row, int64_t hidden) {
    constexpr int width = Lanes<T>::count;
    Vector<T> most = fill<T>(0);
    int64_t h = 0;
    for (; h + width <= hidden; h += width) {
        const Vector<T> value = load<T>(row + h);
        most = greater(greater(value, -value), most);  // passes over a NaN, which spoils its own pairs only
    }
    T total = 0;
    for (int lane = 0; lane < width; ++lane) total = std::max(total, most[lane]);
    for (; h < hidden; ++h) total = std::max(total, row[h] < 0 ? -row[h] : row[h]);
    return total;
}
template <class T> T reach(const Rows<T>& rows, int64_t batch, int64_t first, int64_t last, int64_t hidden) {
    T most = 0;
    for (int64_t row = first; row < last; ++row) most = std::max(most, largest<T>(rows.at(batch, row), hidden));
    return 2 * most;
}

// The weights are divided by this; a weight that is not finite is left to make what it makes.
template <class T> T power_of_two_above(T size) {
    if (!(size > 0) || !std::isfinite(size)) return T(1);
    return std::ldexp(T(1), std::min(std::ilogb(size) + 1, std::numeric_limits<T>::max_exponent - 1));
}

// The numbers of a row, zeros after its end.
template <class T> Vector<T> load_tail(const T* row, int64_t count) {
    T lanes[Lanes<T>::count] = {};
    std::memcpy(lanes, row, size_t(count) * sizeof(T));
    return load<T>(lanes);
}

// exp(2 x), or tanh(x) of a small x. What lies beyond the range is cut off: no block in reach of it uses the factor.
template <class T> inline Vector<T> factor(Vector<T> x, bool small) {
    const Vector<T> twice = x + x;
    if (small) {
        const Vector<T> more = twice * series<T, Limits<T>::small_terms>(twice);
        return more / (more + T(2));
    }
    const T limit = Lanes<T>::exponent_limit;
    return Exponential<T>(at_least<T>(-limit, at_most<T>(limit, twice))).value();
}

// exp(2 x) - 1, relatively exact near zero, with |x| cut off at half the limit. An error in the exponent grows with |x|
// but tanh forgets it faster, so that one multiplication by 2 / log 2 is exact enough here, unlike in a factor.
template <class T> inline Vector<T> exp_minus_one(Vector<T> x, T limit) {
    using L = Lanes<T>;
    constexpr T rounding = L::rounding + L::bias, slope = T(2.88539008177792681472);
    const Vector<T> cut = at_least<T>(-limit / 2, at_most<T>(limit / 2, x));
    const Vector<T> shifted = cut * slope + rounding;
    const Vector<T> rest = cut * slope - (shifted - rounding);
    const Vector<T> scale = power_of_two<T>(shifted);
    return scale * (rest * growth(rest, 0.69314718055994530942)) + (scale - T(1));
}

// The factors of a row, each vector of lanes `stride` numbers after the last. Past the end they are 0: E F = 0.
template <class T> void factors(const T* row, int64_t hidden, int64_t padded, bool small, T* to, int64_t stride) {
    constexpr int width = Lanes<T>::count;
    int64_t h = 0;
    for (; h + width <= hidden; h += width, to += stride) store<T>(to, factor<T>(load<T>(row + h), small));
    for (; h < padded; h += width, to += stride) {
        const int64_t count = std::max<int64_t>(0, hidden - h);
        const Vector<T> tail = factor<T>(load_tail<T>(row + h, count), small);
        for (int lane = 0; lane < width; ++lane) to[lane] = lane < count ? tail[lane] : T(0);
    }
}

}  // namespace regard::additive
