// Weights from scores, row by row: softmax, softmax plus one, sparsemax, entmax-1.5 and alpha-entmax.
//
// A row is read once into a buffer that stays in the first cache, and Newton runs there. Where each weight is dear,
// what lies more than 1 / (alpha - 1) below the largest score is left behind first: it cannot be in the support.
//
// The threshold t is the root of F(t) = (|| [1 + a (u - t)]_+ ||_{1/a} - 1) / a with a = alpha - 1: a norm of a convex
// function, hence convex for a <= 1, and linear in t when all scores are equal or a = 0. From the left Newton
// therefore never passes the root, and takes three to five steps. Above a = 1 a bracket keeps it safe.
//
// threshold.py has the same mathematics in torch, with the references.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "powers.hpp"
#include "threads.hpp"

namespace {

using namespace regard;

enum Rule : int32_t { SOFTMAX = 0, SOFTMAX_PLUS_ONE = 1, SPARSEMAX = 2, ENTMAX15 = 3, ENTMAX = 4 };

template <class T> struct Mask;
template <> struct Mask<float> { typedef uint8_t bytes __attribute__((vector_size(Lanes<float>::count))); };
template <> struct Mask<double> { typedef uint8_t bytes __attribute__((vector_size(Lanes<double>::count))); };
template <class T> using Bytes = typename Mask<T>::bytes;

template <class T> struct Work {  // one thread's row in hand, padded with -inf to whole lanes
    int64_t size, padded;
    std::vector<T> row, kept;
    explicit Work(int64_t n)
        : size(n), padded((n + Lanes<T>::count - 1) / Lanes<T>::count * Lanes<T>::count), row(padded), kept(padded) {}
};

// Reads what is allowed; answers the largest score, or NaN if a NaN or +inf is among them.
template <class T> T read(Work<T>& work, const T* scores, const uint8_t* allowed) {
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

// Copies what lies above `floor` close together: the candidates for the support.
template <class T> int64_t gather(Work<T>& work, T floor) {
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

template <class T, class R> T threshold(const T* candidates, int64_t count, const R& rule) {
    const T close = 2 * std::numeric_limits<T>::epsilon();
    // Where all scores are equal the root is the upper bound itself: leave Newton room to land on it.
    T t = 0, low = 0, high = -(1 + 8 * close) * std::expm1(-rule.a * std::log(T(count))) / rule.a;
    for (int turn = 0; turn < 100; ++turn) {
        Vector<T> weights = {}, slopes = {}, slope;
        for (int64_t j = 0; j < count; j += Lanes<T>::count) {
            weights += rule.weight(load<T>(candidates + j) - t, slope);
            slopes += slope;
        }
        const T total = sum<T>(weights), step = rule.step(total, sum<T>(slopes));
        (total > T(1) ? low : high) = t;
        const T next = t + step;
        if (std::abs(step) <= close * (T(1) + t)) return next;
        t = next > low && next < high ? next : (low + high) / 2;
    }
    return t;
}

template <class T, class R> void power_row(Work<T>& work, T top, const R& rule, T* weights) {
    for (int64_t j = 0; j < work.padded; j += Lanes<T>::count) store<T>(&work.row[j], load<T>(&work.row[j]) - top);
    const T* candidates = work.row.data();
    int64_t count = work.padded;
    if (R::dear) {
        const T floor = rule.a > 0 ? T(-1) / rule.a : std::numeric_limits<T>::lowest();  // a < 0: all in the support
        candidates = work.kept.data(), count = gather<T>(work, floor);
    }
    const T t = threshold<T>(candidates, count, rule);
    Vector<T> slope;
    for (int64_t j = 0; j < work.padded; j += Lanes<T>::count)
        store<T>(&work.row[j], rule.weight(load<T>(&work.row[j]) - t, slope));
    std::memcpy(weights, work.row.data(), work.size * sizeof(T));
}

// `extra` is what the total has besides the row: 0, or 1 for softmax plus one.
template <class T> void softmax_row(Work<T>& work, T top, T extra, T* weights) {
    const T shift = extra > 0 ? std::max(top, T(0)) : top;
    Vector<T> total = {};
    for (int64_t j = 0; j < work.padded; j += Lanes<T>::count) {
        const Vector<T> power = exponential<T>(load<T>(&work.row[j]) - shift);
        total += power;
        store<T>(&work.row[j], power);
    }
    const T scale = T(1) / (sum<T>(total) + (extra > 0 ? std::exp(-shift) : T(0)));
    for (int64_t j = 0; j < work.padded; j += Lanes<T>::count)
        store<T>(&work.row[j], load<T>(&work.row[j]) * scale);
    std::memcpy(weights, work.row.data(), work.size * sizeof(T));
}

template <class T>
void forward_row(Work<T>& work, int32_t rule, T alpha, const T* scores, const uint8_t* allowed, T* weights) {
    const T top = read<T>(work, scores, allowed), nothing = -std::numeric_limits<T>::infinity();
    if (top == nothing) return std::fill(weights, weights + work.size, T(0)), void();
    if (std::isnan(top)) {
        for (int64_t j = 0; j < work.size; ++j) weights[j] = work.row[j] == nothing ? T(0) : top;
        return;
    }
    if (rule == SPARSEMAX) return power_row<T>(work, top, Sparsemax<T>{}, weights);
    if (rule == ENTMAX15) return power_row<T>(work, top, Entmax15<T>{}, weights);
    if (rule == ENTMAX && alpha != T(1)) return power_row<T>(work, top, Entmax<T>{alpha - T(1)}, weights);
    softmax_row<T>(work, top, rule == SOFTMAX_PLUS_ONE ? T(1) : T(0), weights);
}

// (e^y - 1 - y) / y^2 for y >= 0, by its series where the difference would cancel.
template <class T> Vector<T> second_order(Vector<T> y) {
    const Vector<T> less_one = Exponential<T>(at_most<T>(Lanes<T>::exponent_limit, y)).minus_one();
    Vector<T> near = fill<T>(1);
#pragma GCC unroll 24
    for (int term = Lanes<T>::terms + 3; term > 2; --term) near = near * y * (T(1) / T(term)) + T(1);
    return y < T(0.5) ? near * T(0.5) : (less_one - y) / (y < T(0.5) ? fill<T>(1) : y * y);
}

template <class T> Vector<T> slope_of(int32_t rule, T alpha, Vector<T> weight, Vector<T> log_weight) {
    if (rule == SPARSEMAX) return fill<T>(1);
    if (rule == ENTMAX15) {
        for (int lane = 0; lane < Lanes<T>::count; ++lane) weight[lane] = std::sqrt(weight[lane]);
        return weight;
    }
    return rule == ENTMAX ? exponential<T>(log_weight * (T(2) - alpha)) : weight;
}

// Reads weights and gradient up to the row's end and 0 beyond; a gradient where the weight is 0 counts as 0.
template <class T> inline void pair(const T* weights, const T* grad, int64_t left, Vector<T>& p, Vector<T>& g) {
    if (left >= Lanes<T>::count) {  // the compiler makes one load of a copy whose length it knows
        p = load<T>(weights), g = load<T>(grad);
    } else {
        p = g = fill<T>(0);
        std::memcpy(&p, weights, left * sizeof(T));
        std::memcpy(&g, grad, left * sizeof(T));
    }
    g = p != T(0) ? g : fill<T>(0);
}

// ds = slope (g - mean of g under slope); answers the row's derivative by alpha where `by_alpha` asks for it.
template <class T>
T backward_row(Work<T>& work, int32_t rule, T alpha, const T* weights, const T* grad, T* scores, bool by_alpha) {
    Vector<T> p, g, slopes = {}, products = {}, change = {};
    for (int64_t j = 0; j < work.padded; j += Lanes<T>::count) {
        pair<T>(weights + j, grad + j, work.size - j, p, g);
        const Integers<T> live = p != T(0);
        Vector<T> slope = fill<T>(0);
        if (any<T>(live)) {
            const Vector<T> log_weight = rule == ENTMAX ? logarithm<T>(live ? p : fill<T>(1)) : fill<T>(0);
            slope = live ? slope_of<T>(rule, alpha, p, log_weight) : slope;
            if (by_alpha)
                store<T>(&work.kept[j], p * log_weight * log_weight * second_order<T>(log_weight * (T(1) - alpha)));
        } else if (by_alpha) {
            store<T>(&work.kept[j], slope);
        }
        store<T>(&work.row[j], slope);
        slopes += slope;
        products += slope * g;
    }
    const T total = rule <= SOFTMAX_PLUS_ONE ? T(1) : sum<T>(slopes), mean = total ? sum<T>(products) / total : T(0);
    for (int64_t j = 0; j < work.padded; j += Lanes<T>::count) {
        pair<T>(weights + j, grad + j, work.size - j, p, g);
        if (by_alpha) change += load<T>(&work.kept[j]) * (g - mean);
        store<T>(&work.row[j], load<T>(&work.row[j]) * (g - mean));
    }
    std::memcpy(scores, work.row.data(), work.size * sizeof(T));
    return -sum<T>(change);
}

// Where the mask of a row starts: the row's number, written in the digits of the leading axes, along their strides.
int64_t mask_offset(int64_t row, int64_t rank, const int64_t* sizes, const int64_t* strides) {
    int64_t offset = 0;
    for (int64_t axis = rank - 1; axis >= 0; --axis) {
        offset += row % sizes[axis] * strides[axis];
        row /= sizes[axis];
    }
    return offset;
}

// layout: threads, rows, row length, number of leading axes, their sizes, their strides in the mask.
struct Layout {
    int64_t threads, rows, size, rank;
    const int64_t *sizes, *strides;
    explicit Layout(const int64_t* from)
        : threads(from[0]), rows(from[1]), size(from[2]), rank(from[3]), sizes(from + 4), strides(from + 4 + rank) {}

    // Hands out blocks of rows as threads become free: rows with a wide support take longer than others.
    template <class T, class Each> void run(Each each) const {
        const int64_t block = std::max<int64_t>(1, 16384 / size), blocks = (rows + block - 1) / block;
#pragma omp parallel for num_threads(threads_for(rows * size, threads)) schedule(dynamic)
        for (int64_t at = 0; at < blocks; ++at) {
            Work<T> work(size);
            for (int64_t row = at * block; row < std::min(rows, (at + 1) * block); ++row) each(work, row);
        }
    }
};

template <class T>
int forward(int32_t rule, const int64_t* from, const T* scores, const uint8_t* allowed, const T* alpha, T* weights) {
    const Layout layout(from);
    layout.run<T>([&](Work<T>& work, int64_t row) {
        const int64_t at = row * layout.size;
        const uint8_t* mask = allowed ? allowed + mask_offset(row, layout.rank, layout.sizes, layout.strides) : nullptr;
        forward_row<T>(work, rule, alpha ? alpha[row] : T(0), scores + at, mask, weights + at);
    });
    return 0;
}

template <class T>
int backward(int32_t rule, const int64_t* from, const T* weights, const T* grad, const T* alpha, T* scores,
             T* by_alpha) {
    const Layout layout(from);
    layout.run<T>([&](Work<T>& work, int64_t row) {
        const int64_t at = row * layout.size;
        const T own = alpha ? alpha[row] : T(0);
        const T change = backward_row<T>(work, rule, own, weights + at, grad + at, scores + at, by_alpha != nullptr);
        if (by_alpha) by_alpha[row] = change;
    });
    return 0;
}

}  // namespace

#define REGARD_SIMPLEX(T)                                                                                            \
    extern "C" int regard_simplex_forward_##T(int32_t rule, const int64_t* layout, const T* scores,                  \
                                              const uint8_t* allowed, const T* alpha, T* weights) {                  \
        return forward<T>(rule, layout, scores, allowed, alpha, weights);                                            \
    }                                                                                                                \
    extern "C" int regard_simplex_backward_##T(int32_t rule, const int64_t* layout, const T* weights,                \
                                               const T* grad, const T* alpha, T* scores, T* by_alpha) {              \
        return backward<T>(rule, layout, weights, grad, alpha, scores, by_alpha);                                    \
    }

REGARD_SIMPLEX(float)
REGARD_SIMPLEX(double)
