// Additive scores. A vector holds the same hidden unit of several keys, so sums over hidden units need no shuffling.

#include "additive.hpp"
#include "threads.hpp"

namespace regard::additive {
namespace {

constexpr int group = 4;             // ratios that share a division
constexpr int rows_at_once = 2;      // queries that share the loads of a key's factors
constexpr int64_t fewest_factored = 3;           // with fewer queries the factors of the keys cost more than they save
constexpr int64_t direct_keys = 32;  // keys that a thread takes at once if there are few queries

// sum_h (slope F + shift) / (scale F + 1) for `rows_at_once` queries and a vector of keys. A row holds its scales,
// then its slopes, then its shifts. Clamped, the product is cut before it is used; the shift is minus the weight.
template <class T, bool clamped>
inline void ratios(const T* rows, int64_t padded, const T* panel, int64_t hidden, Vector<T>* totals) {
    using V = Vector<T>;
    constexpr int width = Lanes<T>::count;
    for (int row = 0; row < rows_at_once; ++row) totals[row] = fill<T>(0);
    for (int64_t h = 0; h < hidden; h += group) {
        V factor[group];
        for (int n = 0; n < group; ++n) factor[n] = load<T>(panel + (h + n) * width);
#pragma GCC unroll 4
        for (int row = 0; row < rows_at_once; ++row) {
            const T *scale = rows + row * 3 * padded + h, *slope = scale + padded, *shift = slope + padded;
            V top[group], bottom[group];
#pragma GCC unroll 4
            for (int n = 0; n < group; ++n) {
                if (clamped) {
                    const V product = at_most<T>(Limits<T>::product, factor[n] * scale[n]);
                    top[n] = shift[n] - product * shift[n];
                    bottom[n] = product + T(1);
                } else {
                    top[n] = factor[n] * slope[n] + shift[n];
                    bottom[n] = factor[n] * scale[n] + T(1);
                }
            }
            const V left = bottom[0] * bottom[1], right = bottom[2] * bottom[3];
            const V left_top = bottom[1] * top[0] + bottom[0] * top[1];
            const V right_top = bottom[3] * top[2] + bottom[2] * top[3];
            totals[row] += (left_top * right + right_top * left) / (left * right);
        }
    }
}

// w tanh(q + k) = w m / (m + 2) with m = exp(2 (q + k)) - 1, exact for any finite input.
template <class T> struct Ratio {
    Vector<T> top, bottom;
    inline Ratio(Vector<T> query, Vector<T> key, Vector<T> weight) {
        const Vector<T> more = exp_minus_one<T>(query + key, Limits<T>::exponent);
        top = weight * more;
        bottom = more + T(2);
    }
};

template <class T> T direct_score(const T* query, const T* key, const T* weight, int64_t hidden) {
    using V = Vector<T>;
    constexpr int width = Lanes<T>::count;
    V total = fill<T>(0);
    int64_t h = 0;
    const auto ratio = [&](int64_t at) {
        return Ratio<T>(load<T>(query + at), load<T>(key + at), load<T>(weight + at));
    };
    for (; h + group * width <= hidden; h += group * width) {
        const Ratio<T> a = ratio(h), b = ratio(h + width), c = ratio(h + 2 * width), d = ratio(h + 3 * width);
        const V left = a.bottom * b.bottom, right = c.bottom * d.bottom;
        const V left_top = a.top * b.bottom + b.top * a.bottom, right_top = c.top * d.bottom + d.top * c.bottom;
        total += (left_top * right + right_top * left) / (left * right);
    }
    for (; h < hidden; h += width) {
        const int64_t count = std::min<int64_t>(width, hidden - h);
        const bool whole = count == width;
        const V q = whole ? load<T>(query + h) : load_tail<T>(query + h, count);
        const V k = whole ? load<T>(key + h) : load_tail<T>(key + h, count);
        const Ratio<T> last(q, k, load<T>(weight + h));
        total += last.top / last.bottom;
    }
    return sum<T>(total);
}

template <class T> class Forward {
  public:
    Forward(const T* query, const T* key, const T* weight, T* scores, const Problem& problem)
        : p(problem), queries(query_rows(query, p)), keys(key_rows(key, p)), weights(weight_rows(weight, p)),
          scores(scores), batch(p.batch()), padded(round_up(p.hidden, std::max(group, width))),
          grouped(round_up(p.hidden, group)), threads(threads_for(batch * p.queries * p.keys * p.hidden, p.threads)),
          chunk(choose_chunk()), chunks(ceil_divide(p.queries, chunk)), panels(ceil_divide(p.keys, width)),
          direct(p.queries < fewest_factored), alone(batch % threads == 0 || batch >= 4 * threads),
          packed(direct ? 0 : (alone ? threads : batch) * panels * padded * width), key_reach(batch * panels),
          query_reach(batch * p.queries), scratch(threads * scratch_size()) {}

    void run() {
#pragma omp parallel num_threads(threads) if (threads > 1)
        {
            T* own = scratch + thread_number() * scratch_size();
            if (direct) run_direct(own);
            else if (alone) run_alone(own);
            else run_together(own);
        }
    }

  private:
    static constexpr int width = Lanes<T>::count;
    const Problem& p;
    const Rows<T> queries, keys, weights;
    T* scores;
    const int64_t batch, padded, grouped;
    const int threads;
    const int64_t chunk, chunks, panels;
    const bool direct, alone;
    const Buffer<T> packed, key_reach, query_reach, scratch;

    int64_t choose_chunk() const {
        int64_t size = 32;
        while (size > rows_at_once && batch * ceil_divide(p.queries, size) < 2 * threads) size /= 2;
        return size;
    }
    int64_t scratch_size() const { return padded * (1 + std::max<int64_t>(3 * chunk, width)); }

    // The weights over a power of two that brings them below one, so that no product of four ratios can overflow.
    T normal_weights(int64_t b, T* to) const {
        const T* weight = weights.at(b, 0);
        const T scale = power_of_two_above(largest<T>(weight, p.hidden));
        for (int64_t h = 0; h < padded; ++h) to[h] = h < p.hidden ? weight[h] / scale : T(0);
        return scale;
    }

    // Each thread does whole batch entries, whose factors stay in its cache and are written over by the next.
    void run_alone(T* own) {
        T* factors = packed + thread_number() * panels * padded * width;
#pragma omp for schedule(dynamic)
        for (int64_t b = 0; b < batch; ++b) {
            for (int64_t n = 0; n < panels; ++n) measure_panel(b, n);
            for (int64_t i = 0; i < p.queries; ++i) measure_query(b, i);
            for (int64_t n = 0; n < panels; ++n) pack_panel(b, n, factors, own);
            for (int64_t c = 0; c < chunks; ++c) score_chunk(b, c, factors, own);
        }
    }

    // Too few entries for that: all threads prepare all of them, then score.
    void run_together(T* own) {
        const int64_t size = panels * padded * width;
#pragma omp for nowait
        for (int64_t u = 0; u < batch * panels; ++u) measure_panel(u / panels, u % panels);
#pragma omp for
        for (int64_t u = 0; u < batch * p.queries; ++u) measure_query(u / p.queries, u % p.queries);
#pragma omp for schedule(dynamic)
        for (int64_t u = 0; u < batch * panels; ++u)
            pack_panel(u / panels, u % panels, packed + u / panels * size, own);
#pragma omp for schedule(dynamic)
        for (int64_t u = 0; u < batch * chunks; ++u)
            score_chunk(u / chunks, u % chunks, packed + u / chunks * size, own);
    }

    void measure_panel(int64_t b, int64_t n) {
        const int64_t last = std::min((n + 1) * width, p.keys);
        key_reach[b * panels + n] = reach<T>(keys, b, n * width, last, p.hidden);
    }
    void measure_query(int64_t b, int64_t i) {
        query_reach[b * p.queries + i] = reach<T>(queries, b, i, i + 1, p.hidden);
    }

    bool small(int64_t b) const {
        const T* of_keys = key_reach + b * panels;
        const T* of_queries = query_reach + b * p.queries;
        return std::all_of(of_keys, of_keys + panels, is_small<T>) &&
               std::all_of(of_queries, of_queries + p.queries, is_small<T>);
    }

    // The factors of `width` keys side by side, hidden unit after hidden unit.
    void pack_panel(int64_t b, int64_t n, T* factors_of_entry, T* own) const {
        const int64_t first = n * width, count = std::min<int64_t>(width, p.keys - first);
        const bool is_small = small(b);
        std::memset(own, 0, size_t(width * padded) * sizeof(T));
        for (int64_t j = 0; j < count; ++j)
            factors<T>(keys.at(b, first + j), p.hidden, padded, is_small, own + j * padded, width);
        T* to = factors_of_entry + n * padded * width;
        for (int64_t j = 0; j < width; ++j)
            for (int64_t h = 0; h < grouped; ++h) to[h * width + j] = own[j * padded + h];
    }

    void prepare_row(int64_t b, int64_t i, bool is_small, const T* weight, T* row) const {
        T *scale = row, *slope = row + padded, *shift = slope + padded;
        factors<T>(queries.at(b, i), p.hidden, padded, is_small, scale, width);
        for (int64_t h = 0; h < padded; ++h) {
            slope[h] = is_small ? weight[h] : weight[h] * scale[h];
            shift[h] = is_small ? weight[h] * scale[h] : -weight[h];
        }
    }

    void score_chunk(int64_t b, int64_t c, const T* factors_of_entry, T* own) const {
        T *weight = own, *rows = own + padded;
        const int64_t first = c * chunk, last = std::min(first + chunk, p.queries);
        const bool is_small = small(b);
        const T unit = normal_weights(b, weight);
        for (int64_t i = first; i < round_up(last, rows_at_once); ++i)
            prepare_row(b, std::min(i, last - 1), is_small, weight, rows + (i - first) * 3 * padded);
        for (int64_t n = 0; n < panels; ++n)
            for (int64_t i = first; i < last; i += rows_at_once) {
                const int64_t end = std::min<int64_t>(i + rows_at_once, last);
                const Form form = form_of(b, i, end, n, is_small);
                if (form == Form::direct) {
                    score_direct(b, i, end, n * width, std::min((n + 1) * width, p.keys), weight, unit);
                } else {
                    Vector<T> totals[rows_at_once];
                    const T *at = rows + (i - first) * 3 * padded, *panel = factors_of_entry + n * padded * width;
                    if (form == Form::clamped) ratios<T, true>(at, padded, panel, grouped, totals);
                    else ratios<T, false>(at, padded, panel, grouped, totals);
                    for (int64_t row = i; row < end; ++row) write(totals[row - i] * unit, b, row, n);
                }
            }
    }

    void write(Vector<T> totals, int64_t b, int64_t i, int64_t n) const {
        const int64_t count = std::min<int64_t>(width, p.keys - n * width);
        T* to = scores + (b * p.queries + i) * p.keys + n * width;
        if (count == width) store<T>(to, totals);
        else std::memcpy(to, &totals, size_t(count) * sizeof(T));
    }

    // Of a few rows and a panel, not of all that a thread takes: so the numbers do not depend on the threads.
    Form form_of(int64_t b, int64_t i, int64_t end, int64_t n, bool is_small) const {
        const T* reached = query_reach + b * p.queries;
        return choose_form<T>(is_small, *std::max_element(reached + i, reached + end), key_reach[b * panels + n]);
    }

    void score_direct(
        int64_t b, int64_t first, int64_t last, int64_t start, int64_t stop, const T* weight, T unit) const {
        for (int64_t i = first; i < last; ++i) {
            T* to = scores + (b * p.queries + i) * p.keys;
            const T* query = queries.at(b, i);
            for (int64_t j = start; j < stop; ++j)
                to[j] = unit * direct_score<T>(query, keys.at(b, j), weight, p.hidden);
        }
    }

    void run_direct(T* own) {
        const int64_t blocks = ceil_divide(p.keys, direct_keys);
#pragma omp for schedule(dynamic)
        for (int64_t u = 0; u < batch * blocks; ++u) {
            const int64_t b = u / blocks, start = u % blocks * direct_keys;
            const T unit = normal_weights(b, own);
            score_direct(b, 0, p.queries, start, std::min(start + direct_keys, p.keys), own, unit);
        }
    }
};

template <class T> int scores(const T* query, const T* key, const T* weight, T* to, const Problem* problem) {
    return report_memory([=] { Forward<T>(query, key, weight, to, *problem).run(); });
}

}  // namespace
}  // namespace regard::additive

using regard::additive::Problem;

extern "C" int regard_additive_scores_float(
    const float* query, const float* key, const float* weight, float* scores, const Problem* problem) {
    return regard::additive::scores<float>(query, key, weight, scores, problem);
}
extern "C" int regard_additive_scores_double(
    const double* query, const double* key, const double* weight, double* scores, const Problem* problem) {
    return regard::additive::scores<double>(query, key, weight, scores, problem);
}
