// Weights from scores, row by row: softmax, softmax plus one, sparsemax, entmax-1.5 and alpha-entmax.
//
// A row is read once into a buffer that stays in the first cache, and Newton runs there. Where each weight is dear,
// what lies more than 1 / (alpha - 1) below the largest score is left behind first: it cannot be in the support.
//
// Weights are found up to a factor close to 1 and divided by their sum, so that rows sum to one whatever was rounded on
// the way. powers.hpp says what is solved for, threshold.py has the same mathematics in torch, with the references.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "powers.hpp"
#include "threads.hpp"
#include "totals.hpp"

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
    std::vector<double> wide, other;  // candidates of a row with alpha above 2, and where they are from
    std::vector<int64_t> places;
    explicit Work(int64_t n)
        : size(n), padded((n + Lanes<T>::count - 1) / Lanes<T>::count * Lanes<T>::count), row(padded), kept(padded) {}
};

// Reads what is allowed; answers the largest score, or NaN if a NaN or +inf is among them.
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

// (e^y - 1 - y) / y^2 for y >= 0, by its series where the difference would cancel.
template <class T> Vector<T> second_order(Vector<T> y) {
    const Vector<T> less_one = Exponential<T>(at_most<T>(Lanes<T>::exponent_limit, y)).minus_one();
    Vector<T> near = fill<T>(1);
#pragma GCC unroll 24
    for (int term = Lanes<T>::terms + 3; term > 2; --term) near = near * y * (T(1) / T(term)) + T(1);
    return y < T(0.5) ? near * T(0.5) : (less_one - y) / (y < T(0.5) ? fill<T>(1) : y * y);
}

template <class T> Vector<T> compute_slope(int32_t rule, T alpha, Vector<T> weight, Vector<T> log_weight) {
    if (rule == SPARSEMAX) return fill<T>(1);
    if (rule == ENTMAX15) {
        for (int lane = 0; lane < Lanes<T>::count; ++lane) weight[lane] = std::sqrt(weight[lane]);
        return weight;
    }
    return rule == ENTMAX ? exponential<T>(log_weight * (T(2) - alpha)) : weight;
}

// Reads weights and gradient up to the row's end and 0 beyond; a gradient where the weight is 0 counts as 0.
template <class T> inline void load_pair(const T* weights, const T* grad, int64_t left, Vector<T>& p, Vector<T>& g) {
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
    Total<T> slopes, products, change;
    for_each_block<T>(work.padded, [&](int64_t from, int64_t to) {
        Vector<T> p, g, part_slopes = {}, part_products = {};
        for (int64_t j = from; j < to; j += Lanes<T>::count) {
            load_pair<T>(weights + j, grad + j, work.size - j, p, g);
            const Integers<T> live = p != T(0);
            Vector<T> slope = fill<T>(0);
            if (any<T>(live)) {
                const Vector<T> log_weight = rule == ENTMAX ? logarithm<T>(live ? p : fill<T>(1)) : fill<T>(0);
                slope = live ? compute_slope<T>(rule, alpha, p, log_weight) : slope;
                if (by_alpha)
                    store<T>(&work.kept[j], p * log_weight * log_weight * second_order<T>(log_weight * (T(1) - alpha)));
            } else if (by_alpha) {
                store<T>(&work.kept[j], slope);
            }
            store<T>(&work.row[j], slope);
            part_slopes += slope;
            part_products += slope * g;
        }
        slopes.add(part_slopes), products.add(part_products);
    });
    const T total = rule <= SOFTMAX_PLUS_ONE ? T(1) : slopes.value(), mean = total ? products.value() / total : T(0);
    for (int64_t j = 0; j < work.padded; j += Lanes<T>::count) {
        Vector<T> p, g;
        load_pair<T>(weights + j, grad + j, work.size - j, p, g);
        if (by_alpha) change.add(load<T>(&work.kept[j]) * (g - mean));
        store<T>(&work.row[j], load<T>(&work.row[j]) * (g - mean));
    }
    std::memcpy(scores, work.row.data(), work.size * sizeof(T));
    return -change.value();
}

// Alpha above 2, in double: simplex_gradients.py has the formulas. Slopes p^(2 - alpha) may exceed every number while
// their ratios, and what they leave of a gradient, do not.
template <class T>
T sharp_backward_row(Work<T>& work, double alpha, const T* weights, const T* grad, T* scores, bool by_alpha) {
    work.wide.clear(), work.other.clear(), work.places.clear();
    double steepest = -1;
    T start = 0;
    for (int64_t j = 0; j < work.size; ++j) {
        if (weights[j] == T(0)) continue;
        const double exponent = (2 - alpha) * std::log(double(weights[j]));
        if (!(exponent <= steepest)) steepest = exponent, start = grad[j];
        work.wide.push_back(exponent), work.places.push_back(j);
    }
    std::fill(scores, scores + work.size, T(0));
    constexpr double limit = 600;
    const double taken = std::max(steepest - limit, 0.0), given_back = std::exp(std::min(taken, 700.0));
    double shares = 0, mean = 0, pull = 0, change = 0;
    for (size_t k = 0; k < work.places.size(); ++k) {
        const double share = std::exp(work.wide[k] - steepest), own = double(grad[work.places[k]]) - double(start);
        work.other.push_back(share);
        shares += share, mean += share * own, pull += std::exp(work.wide[k] - taken) * own;
    }
    for (size_t k = 0; k < work.places.size(); ++k) {
        const int64_t j = work.places[k];
        const double own = double(grad[j]) - double(start);
        scores[j] = T((std::exp(work.wide[k] - taken) * own - work.other[k] * (pull / shares)) * given_back);
        const double excess = alpha - 1, p = weights[j];
        if (by_alpha) change += (own - mean / shares) * p * (1 - excess * std::log(p)) / (excess * excess);
    }
    return T(change);
}

// Where the mask of a row starts: the row's number, written in the digits of the leading axes, along their strides.
int64_t compute_mask_offset(int64_t row, int64_t rank, const int64_t* sizes, const int64_t* strides) {
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
        const uint8_t* mask = allowed ? allowed + compute_mask_offset(row, layout.rank, layout.sizes, layout.strides) : nullptr;
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
        const bool asked = by_alpha != nullptr, sharp = rule == ENTMAX && own > T(2);
        const T change = sharp ? sharp_backward_row<T>(work, own, weights + at, grad + at, scores + at, asked)
                               : backward_row<T>(work, rule, own, weights + at, grad + at, scores + at, asked);
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
