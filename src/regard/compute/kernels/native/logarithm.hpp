// What rows of weights need besides vectors.hpp: masks, an exponential of any x, and the logarithm.

#pragma once

#include "vectors.hpp"

namespace regard {

template <class T> using Integers = typename Lanes<T>::integers;

// A bit for each lane that a comparison found true.
template <class T> inline unsigned lane_bits(Integers<T> mask) {
    unsigned bits = 0;
    for (int lane = 0; lane < Lanes<T>::count; ++lane) bits |= unsigned(mask[lane] != 0) << lane;
    return bits;
}
#if defined(__AVX512DQ__)
template <> inline unsigned lane_bits<float>(Integers<float> mask) { return _mm512_movepi32_mask((__m512i)mask); }
template <> inline unsigned lane_bits<double>(Integers<double> mask) { return _mm512_movepi64_mask((__m512i)mask); }
#elif defined(__AVX__) && !defined(__AVX512F__)
template <> inline unsigned lane_bits<float>(Integers<float> mask) { return _mm256_movemask_ps((__m256)mask); }
template <> inline unsigned lane_bits<double>(Integers<double> mask) { return _mm256_movemask_pd((__m256d)mask); }
#endif
template <class T> inline bool any(Integers<T> mask) { return lane_bits<T>(mask) != 0; }

// e^x, 0 if it would not be a normal number, and capped if it would be infinite.
template <class T> inline Vector<T> exponential(Vector<T> x) {
    const T limit = Lanes<T>::exponent_limit;
    const Vector<T> power = Exponential<T>(at_most<T>(limit, at_least<T>(-limit, x))).value();
    return x > -limit ? power : fill<T>(0);
}

template <class T> struct LogarithmTerms;
template <> struct LogarithmTerms<float> { static constexpr int count = 5; };
template <> struct LogarithmTerms<double> { static constexpr int count = 11; };

// log x for normal x > 0: x = m 2^k with m in [sqrt(1/2), sqrt(2)), then k log 2 + 2 artanh((m - 1) / (m + 1)).
template <class T> inline Vector<T> logarithm(Vector<T> x) {
    using L = Lanes<T>;
    constexpr int terms = LogarithmTerms<T>::count;
    const Integers<T> exponent = ((Integers<T>)x - (Integers<T>)fill<T>(T(0.70710678118654752))) >> L::mantissa;
    const Vector<T> mantissa = (Vector<T>)((Integers<T>)x - (exponent << L::mantissa));
    const Vector<T> ratio = (mantissa - T(1)) / (mantissa + T(1)), square = ratio * ratio;
    Vector<T> series = fill<T>(T(1) / T(2 * terms - 1));
#pragma GCC unroll 24
    for (int term = terms - 1; term > 0; --term) series = series * square + T(1) / T(2 * term - 1);
    const Vector<T> power = __builtin_convertvector(exponent, Vector<T>);
    return power * L::log2_high + (power * L::log2_low + T(2) * ratio * series);
}

}  // namespace regard
