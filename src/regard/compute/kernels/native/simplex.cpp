// Weights from scores and gradients from weights, row by row and in parallel; simplex.hpp has the weights of one row.

#include "simplex.hpp"
#include "threads.hpp"

namespace {

using namespace regard;
using namespace regard::simplex;

// (e^y - 1 - y) / y^2 for y >= 0, by its series if the difference would cancel.
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

// ds = slope (g - mean of g under slope); returns the row's derivative by alpha if `by_alpha` asks for it.
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
