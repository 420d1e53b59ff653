// The gates of recurrent cells on vectors, and how vectors of any length are walked.

#pragma once

#include "vectors.hpp"

namespace regard {

template <class T> inline Vector<T> sigmoid(Vector<T> x) {
    const T limit = Lanes<T>::exponent_limit;
    return T(1) / (T(1) + Exponential<T>(at_most<T>(limit, at_least<T>(-limit, -x))).value());
}

// (e^2x - 1) / (e^2x + 1), which keeps its digits near 0.
template <class T> inline Vector<T> vector_tanh(Vector<T> x) {
    const T limit = Lanes<T>::exponent_limit;
    const Vector<T> less = Exponential<T>(at_most<T>(limit, at_least<T>(-limit, x + x))).minus_one();
    return less / (less + T(2));
}

// Some lanes of memory: all of them, or the `count` that are left at the end.
template <class T> struct LaneRange {
    int64_t at, count;
    bool whole() const { return count >= Lanes<T>::count; }
    Vector<T> load_lanes(const T* from) const {
        if (whole()) return load<T>(from + at);
        T lanes[Lanes<T>::count] = {};
        for (int64_t lane = 0; lane < count; ++lane) lanes[lane] = from[at + lane];
        return load<T>(lanes);
    }
    void store_lanes(T* to, Vector<T> value) const {
        if (whole()) return store<T>(to + at, value);
        T lanes[Lanes<T>::count];
        store<T>(lanes, value);
        for (int64_t lane = 0; lane < count; ++lane) to[at + lane] = lanes[lane];
    }
    // Values below each other, `size` numbers apart.
    template <class... Values> void store_rows(T* to, int64_t size, const Values&... values) const {
        int64_t row = 0;
        (store_lanes(to + size * row++, values), ...);
    }
};

template <class T, class Body> inline void for_each_part(int64_t size, Body body) {
    int64_t at = 0;
    for (; at + Lanes<T>::count <= size; at += Lanes<T>::count) body(LaneRange<T>{at, Lanes<T>::count});
    if (at < size) body(LaneRange<T>{at, size - at});
}

}  // namespace regard
