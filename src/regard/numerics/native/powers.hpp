// The weights of the softmax family: [1 + a x]_+^(1/a) for x = u - t, where u is a score and t the row's threshold.

#pragma once

#include <cmath>
#include <limits>

#include "logarithm.hpp"

namespace regard {

// Each gives the weight and its slope by x, and Newton's step for t from the sums of both. A `dear` one takes so long
// that it pays to leave out first what cannot count.
template <class T> struct Sparsemax {
    static constexpr bool dear = false;
    T a = 1;
    Vector<T> weight(Vector<T> x, Vector<T>& slope) const {
        const Vector<T> base = x + T(1);
        slope = base > T(0) ? fill<T>(1) : fill<T>(0);
        return base > T(0) ? base : fill<T>(0);
    }
    T step(T weights, T slopes) const { return (weights - T(1)) / slopes; }
};
template <class T> struct Entmax15 {
    static constexpr bool dear = false;
    T a = T(0.5);
    Vector<T> weight(Vector<T> x, Vector<T>& slope) const {
        const Vector<T> base = x * T(0.5) + T(1);
        slope = base > T(0) ? base : fill<T>(0);
        return slope * slope;
    }
    T step(T weights, T slopes) const { return T(2) * (weights - std::sqrt(weights)) / slopes; }
};
template <class T> struct Entmax {
    static constexpr bool dear = true;
    T a;
    Vector<T> weight(Vector<T> x, Vector<T>& slope) const {
        const Vector<T> change = x * a;
        const Integers<T> inside = (change > T(-1)) & (x > -std::numeric_limits<T>::infinity());
        if (!any<T>(inside)) return slope = fill<T>(0);
        const Vector<T> base = inside ? change + T(1) : fill<T>(1), inverse = T(1) / base;
        // The second term is what rounding 1 + change lost: without it alpha near 1 has no digits left.
        const Vector<T> log_weight = (logarithm<T>(base) + (change - (base - T(1))) * inverse) / a;
        const Vector<T> weight = inside ? exponential<T>(log_weight) : fill<T>(0);
        slope = weight * inverse;
        return weight;
    }
    T step(T weights, T slopes) const { return -weights * std::expm1(-a * std::log(weights)) / (a * slopes); }
};

}  // namespace regard
