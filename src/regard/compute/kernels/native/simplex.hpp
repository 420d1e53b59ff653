// The weights of one row: softmax, softmax plus one, sparsemax, entmax-1.5 and alpha-entmax.
//
// A row is read once into a buffer that stays in the first cache, and Newton runs there. If each weight is costly,
// what lies more than 1 / (alpha - 1) below the largest score is left behind first: it cannot be in the support.
//
// Weights are found up to a factor close to 1 and divided by their sum, so that rows sum to one whatever was rounded on
// the way. powers.hpp says what is solved for, threshold.py has the same mathematics in torch, with the references.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "powers.hpp"
#include "totals.hpp"

namespace regard::simplex {
namespace {  // internal, so that the compiler may inline what is called once

enum Rule : int32_t { SOFTMAX = 0, SOFTMAX_PLUS_ONE = 1, SPARSEMAX = 2, ENTMAX15 = 3, ENTMAX = 4 };

template <class T> struct Mask;
template <> struct Mask<float> { typedef uint8_t bytes __attribute__((vector_size(Lanes<float>::count))); };
template <> struct Mask<double> { typedef uint8_t bytes __attribute__((vector_size(Lanes<double>::count))); };
template <class T> using Bytes = typename Mask<T>::bytes;

template <class T> struct Work {  // one thread's row in hand, padded with -inf to whole lanes
    int64_t size, padded;
    std::vector<T> row, kept;
    std::vector<double> wide, other;  // candidates of a row with alpha above 2, and where they are from
    std::vector<int64_t> places;
    explicit Work(int64_t n)
        : size(n), padded((n + Lanes<T>::count - 1) / Lanes<T>::count * Lanes<T>::count), row(padded), kept(padded) {}
};

// Reads what is allowed; returns the largest score, or NaN if a NaN or +inf is among them.
template <class T> T read_row(Work<T>& work, const T* scores, const uint8_t* allowed) {
    constexpr int width = Lanes<T>::count;
    const T nothing = -std::numeric_limits<T>::infinity();
    Vector<T> top = fill<T>(nothing);
    Integers<T> strange = {};
    std::memcpy(work.row.data(), scores, work.size * sizeof(T));
    std::fill(work.row.begin() + work.size, work.row.end(), nothing);
    for (int64_t j = 0; j < work.padded; j += width) {
        Vector<T> x = load<T>(&work.row[j]);
        if (allowed) {
            Bytes<T> bytes = {};
            if (j + width <= work.size) std::memcpy(&bytes, allowed + j, width);
            else std::memcpy(&bytes, allowed + j, work.size - j);
            x = __builtin_convertvector(bytes, Integers<T>) != 0 ? x : fill<T>(nothing);
            store<T>(&work.row[j], x);
        }
        strange |= !(x < std::numeric_limits<T>::infinity());
        top = x > top ? x : top;
    }
    if (any<T>(strange)) return std::numeric_limits<T>::quiet_NaN();
    T largest = top[0];
    for (int lane = 1; lane < width; ++lane) largest = std::max(largest, top[lane]);
    return largest;
}

// The row in hand times a factor, if it is wanted.
template <class T> void copy_scaled(Work<T>& work, T scale, T* to) {
    constexpr int width = Lanes<T>::count;
    int64_t j = 0;
    for (; j + width <= work.size; j += width) store<T>(to + j, load<T>(&work.row[j]) * scale);
    for (; j < work.size; ++j) to[j] = work.row[j] * scale;
}

// Copies what lies above `floor` close together: the candidates for the support.
template <class T> int64_t gather_candidates(Work<T>& work, T floor) {
    constexpr int width = Lanes<T>::count;
    int64_t count = 0;
    for (int64_t j = 0; j < work.padded; j += width) {
        const Vector<T> x = load<T>(&work.row[j]);
        if (!any<T>(x > floor)) continue;
        if (!any<T>(x <= floor)) {
            store<T>(&work.kept[count], x);
            count += width;
            continue;
        }
        for (int lane = 0; lane < width; ++lane) {
            work.kept[count] = x[lane];
            count += x[lane] > floor;
        }
    }
    while (count % width) work.kept[count++] = -std::numeric_limits<T>::infinity();
    return count;
}

// Sums of weights and slopes at one value of the unknown.
template <class T> struct Sums { T weights, slopes; };
template <class T, class R, class P> Sums<T> sum_at(const T* scores, int64_t count, const R& rule, const P& unknown) {
    Total<T> weights;
    Vector<T> slopes = {};
    for_each_block<T>(count, [&](int64_t from, int64_t to) {
        Vector<T> part = {}, part_slopes = {}, slope;
        for (int64_t j = from; j < to; j += Lanes<T>::count) {
            part += rule.weight(load<T>(scores + j), unknown, slope);
            part_slopes += slope;
        }
        weights.add(part);
        slopes += part_slopes;
    });
    return {weights.value(), sum<T>(slopes)};
}

// The weights at that value, divided by their sum.
template <class T, class R, class P> void write_weights(Work<T>& work, const R& rule, const P& unknown, T* weights) {
    constexpr int width = Lanes<T>::count;
    Total<T> total;
    for_each_block<T>(work.padded, [&](int64_t from, int64_t to) {
        Vector<T> part = {}, slope;
        for (int64_t j = from; j < to; j += width) {
            const Vector<T> weight = rule.weight(load<T>(&work.row[j]), unknown, slope);
            part += weight;
            store<T>(&work.row[j], weight);
        }
        total.add(part);
    });
    copy_scaled<T>(work, T(1) / total.value(), weights);
}

template <class T> void subtract(Work<T>& work, T top) {
    for (int64_t j = 0; j < work.padded; j += Lanes<T>::count) store<T>(&work.row[j], load<T>(&work.row[j]) - top);
}

// Sparsemax and entmax-1.5: Newton from the left takes three to five steps.
template <class T, class R> void power_row(Work<T>& work, T top, const R& rule, T* weights) {
    subtract<T>(work, top);
    const T close = 2 * std::numeric_limits<T>::epsilon(), least = rule.least(work.size);
    T b = 1;
    for (int turn = 0; turn < 100; ++turn) {
        const Sums<T> sums = sum_at<T>(work.row.data(), work.padded, rule, b);
        const T step = rule.step(sums.weights, sums.slopes);
        b = std::max(b - step, least);
        if (std::abs(step) <= close * b) break;
    }
    write_weights<T>(work, rule, b, weights);
}

// The unknown of alpha-entmax between two values: at `low` the weights sum to at least one, at `high` to at most one.
// Newton on the logarithm of the sum, whose slope by m is -slopes / weights; by halves where that leaves the bracket or
// does not get slower: above alpha = 2 the sum is all but a step where a score enters the support.
template <class T> struct Bracket { T m, low, high; };
template <class T> Bracket<T> solve(const T* scores, int64_t count, const Entmax<T>& rule) {
    const T unit = std::numeric_limits<T>::epsilon();
    T m = 0, low = 0, high = std::log(T(count)) * (1 + 4 * unit), last = std::numeric_limits<T>::infinity();
    for (int turn = 0; turn < 200; ++turn) {
        const Sums<T> sums = sum_at<T>(scores, count, rule, rule.place(m));
        const T excess = std::log(sums.weights);
        (excess >= 0 ? low : high) = m;
        // An end far away would bring back, however small its part, scores that are not in the support.
        if (std::abs(excess) <= 8 * unit) return {m, m, m};
        if (high - low <= 4 * unit * (1 + high)) break;
        const T size = std::max(std::abs(excess) * sums.weights / sums.slopes, 2 * unit * (1 + m));
        const T next = excess > 0 ? m + size : m - size;
        const bool newton = next > low && next < high && size <= last / 2;
        last = newton ? size : (high - low) / 2;
        m = newton ? next : (low + high) / 2;
    }
    return {m, low, high};
}

// Alpha up to 2. What lies more than 1 / a below the largest score cannot be in the support and is left behind.
template <class T> void entmax_row(Work<T>& work, T top, T a, T* weights) {
    const Entmax<T> rule{a};
    subtract<T>(work, top);
    const T floor = a > 0 ? T(-1) / a : std::numeric_limits<T>::lowest();  // a < 0: all in the support
    const int64_t count = gather_candidates<T>(work, floor);
    write_weights<T>(work, rule, rule.place(solve<T>(work.kept.data(), count, rule).m), weights);
}

// Alpha above 2, in double. A score on the edge of the support may weigh much and yet, one unit in the last place
// further on, nothing: so the weights are that mixture of both ends of the bracket which sums to one.
template <class T> void sharp_row(Work<T>& work, T top, double a, T* weights) {
    work.wide.clear(), work.places.clear();
    for (int64_t j = 0; j < work.size; ++j) {
        const double u = double(work.row[j]) - double(top);
        if (u * a > -1) work.wide.push_back(u), work.places.push_back(j);
    }
    while (work.wide.size() % Lanes<double>::count) work.wide.push_back(-std::numeric_limits<double>::infinity());
    const int64_t count = work.wide.size();
    const Entmax<double> rule{a};
    const Bracket<double> ends = solve<double>(work.wide.data(), count, rule);
    const auto low = rule.place(ends.low), high = rule.place(ends.high);
    const double most = sum_at<double>(work.wide.data(), count, rule, low).weights;
    const double least = sum_at<double>(work.wide.data(), count, rule, high).weights;
    const double share = most > least ? std::min(std::max((1 - least) / (most - least), 0.0), 1.0) : 1;
    Total<double> total;
    Vector<double> slope;
    for (int64_t j = 0; j < count; j += Lanes<double>::count) {
        const Vector<double> u = load<double>(&work.wide[j]);
        const Vector<double> weight = share * rule.weight(u, low, slope) + (1 - share) * rule.weight(u, high, slope);
        total.add(weight);
        store<double>(&work.wide[j], weight);
    }
    const double scale = 1 / total.value();
    std::fill(weights, weights + work.size, T(0));
    for (size_t j = 0; j < work.places.size(); ++j) weights[work.places[j]] = T(work.wide[j] * scale);
}

// `extra` is what the total has besides the row: 0, or 1 for softmax plus one.
template <class T> void softmax_row(Work<T>& work, T top, T extra, T* weights) {
    const T shift = extra > 0 ? std::max(top, T(0)) : top;
    Total<T> total;
    for_each_block<T>(work.padded, [&](int64_t from, int64_t to) {
        Vector<T> part = {};
        for (int64_t j = from; j < to; j += Lanes<T>::count) {
            const Vector<T> power = exponential<T>(load<T>(&work.row[j]) - shift);
            part += power;
            store<T>(&work.row[j], power);
        }
        total.add(part);
    });
    copy_scaled<T>(work, T(1) / (total.value() + (extra > 0 ? std::exp(-shift) : T(0))), weights);
}

template <class T>
void forward_row(Work<T>& work, int32_t rule, T alpha, const T* scores, const uint8_t* allowed, T* weights) {
    const T top = read_row<T>(work, scores, allowed), nothing = -std::numeric_limits<T>::infinity();
    if (top == nothing) return std::fill(weights, weights + work.size, T(0)), void();
    if (std::isnan(top)) {
        for (int64_t j = 0; j < work.size; ++j) weights[j] = work.row[j] == nothing ? T(0) : top;
        return;
    }
    if (rule == SPARSEMAX) return power_row<T>(work, top, Sparsemax<T>{}, weights);
    if (rule == ENTMAX15) return power_row<T>(work, top, Entmax15<T>{}, weights);
    if (rule == ENTMAX && alpha > T(2)) return sharp_row<T>(work, top, double(alpha) - 1, weights);
    if (rule == ENTMAX && alpha != T(1)) return entmax_row<T>(work, top, alpha - T(1), weights);
    softmax_row<T>(work, top, rule == SOFTMAX_PLUS_ONE ? T(1) : T(0), weights);
}

}  // namespace
}  // namespace regard::simplex
