// The weights of the softmax family: v = [b + a u]_+^(1/a), where u <= 0 is a score less the row's largest, a = alpha - 1,
// and b = e^(-a m) is the row's unknown: e^-m is its largest weight. simplex.hpp makes the weights sum to one.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "logarithm.hpp"

namespace regard {

// Sparsemax and entmax-1.5 look for b itself: it has all digits however small it is, which a threshold close to 1 has
// not. Newton on F(b) = (||v||_{1/a} - 1) / a, which is convex, never passes the root but by rounding.
template <class T> struct Sparsemax {
    T least(int64_t keys) const { return T(1) / T(keys); }
    Vector<T> weight(Vector<T> u, T b, Vector<T>& slope) const {
        const Vector<T> base = u + b;
        slope = base > T(0) ? fill<T>(1) : fill<T>(0);
        return base > T(0) ? base : fill<T>(0);
    }
    T step(T weights, T slopes) const { return (weights - T(1)) / slopes; }
};
template <class T> struct Entmax15 {
    T least(int64_t keys) const { return T(1) / std::sqrt(T(keys)); }
    Vector<T> weight(Vector<T> u, T b, Vector<T>& slope) const {
        const Vector<T> base = u * T(0.5) + b;
        slope = base > T(0) ? base : fill<T>(0);
        return slope * slope;
    }
    T step(T weights, T slopes) const { return (weights - std::sqrt(weights)) / slopes; }
};

// Any alpha. The unknown is m, between 0 and the logarithm of the number of keys: b would underflow for a large alpha,
// and lose its digits close to 1 for a small one.
template <class T> struct Entmax {
    T a;

    struct Place {
        T m, pull;  // pull = a / b, below infinity: what is equal to the largest score stays in the support
    };
    Place place(T m) const {
        const T limit = Lanes<T>::exponent_limit - T(8);
        return {m, a * std::exp(std::min(a * m, limit))};
    }
    Vector<T> weight(Vector<T> u, const Place& at, Vector<T>& slope) const {
        const Vector<T> change = u * at.pull;
        const Integers<T> inside = (change > T(-1)) & (u > -std::numeric_limits<T>::infinity());
        if (!any<T>(inside)) return slope = fill<T>(0);
        const Vector<T> base = inside ? change + T(1) : fill<T>(1), inverse = T(1) / base;
        // The second term is what rounding 1 + change lost: without it alpha near 1 has no digits left.
        const Vector<T> log_weight = (logarithm<T>(base) + (change - (base - T(1))) * inverse) / a - at.m;
        const Vector<T> weight = inside ? exponential<T>(log_weight) : fill<T>(0);
        slope = weight * inverse;
        return weight;
    }
};

}  // namespace regard
