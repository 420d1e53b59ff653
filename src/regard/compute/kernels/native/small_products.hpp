// Products of matrices that fit the first cache, and how rows are brought into the shape they need.

#pragma once

#include <algorithm>

#include "vectors.hpp"

namespace regard {

template <class T> inline int64_t round_up_to_lanes(int64_t size) {
    return (size + Lanes<T>::count - 1) / Lanes<T>::count * Lanes<T>::count;
}

template <class T> struct Rows {  // rows of some matrix, one `stride` apart
    T* data;
    int64_t stride;
    T* row(int64_t index) const { return data + index * stride; }
};

template <class T> struct Factors {  // the factor in row r for term t
    const T* data;
    int64_t down, across;
    T at(int64_t r, int64_t t) const { return data[r * down + t * across]; }
};

template <class T, int R, int C>
inline void tile(int64_t count, Factors<T> factors, Rows<const T> terms, Rows<T> out, bool more) {
    constexpr int lanes = Lanes<T>::count;
    Vector<T> sums[R][C];
    for (int r = 0; r < R; ++r)
        for (int c = 0; c < C; ++c) sums[r][c] = more ? load<T>(out.row(r) + c * lanes) : Vector<T>{};
    for (int64_t t = 0; t < count; ++t) {
        Vector<T> row[C];
        for (int c = 0; c < C; ++c) row[c] = load<T>(terms.row(t) + c * lanes);
        for (int r = 0; r < R; ++r) {
            const T factor = factors.at(r, t);
            for (int c = 0; c < C; ++c) sums[r][c] += row[c] * factor;
        }
    }
    for (int r = 0; r < R; ++r)
        for (int c = 0; c < C; ++c) store<T>(out.row(r) + c * lanes, sums[r][c]);
}

template <class T, int C>
inline void strip(int64_t rows, int64_t count, Factors<T> factors, Rows<const T> terms, Rows<T> out, bool more) {
    const auto from = [=](int64_t r) {
        return Factors<T>{factors.data + r * factors.down, factors.down, factors.across};
    };
    const auto to = [=](int64_t r) { return Rows<T>{out.row(r), out.stride}; };
    int64_t r = 0;
    for (; r + 8 <= rows; r += 8) tile<T, 8, C>(count, from(r), terms, to(r), more);
    if (rows & 4) tile<T, 4, C>(count, from(r), terms, to(r), more), r += 4;
    if (rows & 2) tile<T, 2, C>(count, from(r), terms, to(r), more), r += 2;
    if (rows & 1) tile<T, 1, C>(count, from(r), terms, to(r), more);
}

// out (rows x width) = factors (rows x count) . terms (count x width), added to what is there where `more`.
// `width` is a whole number of lanes.
template <class T>
inline void product(int64_t rows, int64_t width, int64_t count, Factors<T> factors, Rows<const T> terms, Rows<T> out,
                    bool more = false) {
    constexpr int lanes = Lanes<T>::count;
    int64_t at = 0;
    for (; at + 2 * lanes <= width; at += 2 * lanes)
        strip<T, 2>(rows, count, factors, {terms.data + at, terms.stride}, {out.data + at, out.stride}, more);
    if (at < width)
        strip<T, 1>(rows, count, factors, {terms.data + at, terms.stride}, {out.data + at, out.stride}, more);
}

// The rows themselves where they are whole numbers of lanes, else a copy in `space` with zeros behind them.
template <class T> Rows<const T> whole_rows(int64_t rows, int64_t width, Rows<const T> from, T* space) {
    const int64_t wide = round_up_to_lanes<T>(width);
    if (wide == width) return from;
    for (int64_t r = 0; r < rows; ++r) {
        std::copy(from.row(r), from.row(r) + width, space + r * wide);
        std::fill(space + r * wide + width, space + (r + 1) * wide, T(0));
    }
    return {space, wide};
}

// Columns as rows of a whole number of lanes, with zeros behind them.
template <class T> Rows<const T> turned(int64_t rows, int64_t width, Rows<const T> from, T* space) {
    const int64_t wide = round_up_to_lanes<T>(rows);
    for (int64_t c = 0; c < width; ++c) {
        T* row = space + c * wide;
        for (int64_t r = 0; r < rows; ++r) row[r] = from.row(r)[c];
        std::fill(row + rows, row + wide, T(0));
    }
    return {space, wide};
}

template <class T> void copy_rows(int64_t rows, int64_t width, Rows<const T> from, Rows<T> to) {
    for (int64_t r = 0; r < rows; ++r) std::copy(from.row(r), from.row(r) + width, to.row(r));
}

}  // namespace regard
