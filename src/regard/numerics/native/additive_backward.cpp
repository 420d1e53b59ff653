// Gradients of additive scores. A vector holds several hidden units of one pair; one pass over the pairs gives all.
//
// With x = exp(2 (q + k)) and r = 1 / (1 + x): tanh' = 4 x r^2 and tanh = 1 - 2 r. Not 4 (r - r^2), which is exact on
// one side of zero only. Sums run over short stretches that are then added to longer ones, as torch's own do.

#include "additive.hpp"
#include "threads.hpp"

namespace regard::additive {
namespace {

constexpr int64_t tile = 32;       // columns whose factors and gradients stay in the first cache
constexpr int64_t chunk = 32;      // rows that meet a tile before the next
constexpr int rows_at_once = 4;    // rows that share a division
constexpr int64_t few = 3;

// A quarter of tanh' and half of tanh for one column and four rows.
template <class T> struct Quad {
    Vector<T> slope[rows_at_once], half[rows_at_once];

    template <Form form> static inline Quad of(const Vector<T>* rows, Vector<T> column) {
        using V = Vector<T>;
        V product[rows_at_once], top[rows_at_once], bottom[rows_at_once], inverse[rows_at_once];
#pragma GCC unroll 4
        for (int n = 0; n < rows_at_once; ++n) {
            if (form == Form::direct) {
                top[n] = less_one<T>(rows[n] + column, Limits<T>::pair_exponent);
                product[n] = top[n] + T(1);
                bottom[n] = top[n] + T(2);
            } else {
                product[n] = rows[n] * column;
                if (form == Form::clamped) product[n] = at_most<T>(Limits<T>::pair_product, product[n]);
                bottom[n] = product[n] + T(1);
                top[n] = rows[n] + column;
            }
        }
        invert<form == Form::small || form == Form::plain>(bottom, inverse);
        Quad quad;
#pragma GCC unroll 4
        for (int n = 0; n < rows_at_once; ++n) {
            const bool by_top = form == Form::small || form == Form::direct;
            quad.half[n] = by_top ? T(0.5) * top[n] * inverse[n] : T(0.5) - inverse[n];
            quad.slope[n] = form == Form::small ? T(0.25) - quad.half[n] * quad.half[n]
                                                : product[n] * inverse[n] * inverse[n];
        }
        return quad;
    }

    // 1 / x for four numbers by one division, or by two where the product of four might overflow.
    template <bool four> static inline void invert(const Vector<T>* x, Vector<T>* inverse) {
        using V = Vector<T>;
        const V left = x[0] * x[1], right = x[2] * x[3];
        const V both = T(1) / (four ? left * right : left);
        const V left_inverse = four ? both * right : both, right_inverse = four ? both * left : T(1) / right;
        inverse[0] = left_inverse * x[1];
        inverse[1] = left_inverse * x[0];
        inverse[2] = right_inverse * x[3];
        inverse[3] = right_inverse * x[2];
    }
};

// Adds to the gradients of four rows, of a tile of columns, and of the weight. `columns` and `column_sums` hold a
// vector of hidden units for each column, then the next vector of hidden units; `upstream` four rows for each column.
template <Form form, class T>
void add_gradients(const T* rows, const T* columns, const T* upstream, int64_t count, int64_t padded, T* row_sums,
                   T* column_sums, T* weight_sums) {
    using V = Vector<T>;
    constexpr int width = Lanes<T>::count;
    for (int64_t h = 0; h < padded; h += width, columns += count * width, column_sums += count * width) {
        V row[rows_at_once], totals[rows_at_once], weight_total = fill<T>(0);
        for (int n = 0; n < rows_at_once; ++n) row[n] = load<T>(rows + n * padded + h), totals[n] = fill<T>(0);
        for (int64_t j = 0; j < count; ++j) {
            const Quad<T> quad = Quad<T>::template of<form>(row, load<T>(columns + j * width));
            const T* g = upstream + j * rows_at_once;
            V column_total = quad.slope[0] * g[0], pair_total = quad.half[0] * g[0];
            totals[0] += quad.slope[0] * g[0];
#pragma GCC unroll 4
            for (int n = 1; n < rows_at_once; ++n) {
                totals[n] += quad.slope[n] * g[n];
                column_total += quad.slope[n] * g[n];
                pair_total += quad.half[n] * g[n];
            }
            weight_total += pair_total;
            store<T>(column_sums + j * width, load<T>(column_sums + j * width) + column_total);
        }
        for (int n = 0; n < rows_at_once; ++n) {
            T* to = row_sums + n * padded + h;
            store<T>(to, load<T>(to) + totals[n]);
        }
        store<T>(weight_sums + h, load<T>(weight_sums + h) + weight_total);
    }
}

// One of the two inputs, with the place of its gradient and the stride of the upstream gradient along it.
template <class T> struct Side {
    Rows<T> rows;
    int64_t count, upstream_stride;
    T* gradient;
};

template <class T> class Backward {
  public:
    Backward(Side<T> row, Side<T> column, const T* weight, const T* upstream, T* weight_gradient, const Problem& p)
        : p(p), row(row), column(column), weights(weight_rows(weight, p)), upstream(upstream),
          weight_gradient(weight_gradient), batch(p.batch()), padded(rounded_up(p.hidden, width)),
          threads(threads_for(batch * p.queries * p.keys * p.hidden, p.threads)), parts(parts_for()),
          part_rows(rounded_up(pieces(row.count, parts), rows_at_once)), tiles(pieces(column.count, tile)),
          chunks(pieces(part_rows, chunk)),
          direct(std::min(p.queries, p.keys) < few), packed(direct ? 0 : batch * column.count * padded),
          column_sums(batch * parts * column.count * padded), weight_sums(batch * parts * padded),
          column_reach(batch * tiles), row_reach(batch * parts * chunks), scratch(threads * Scratch::size(padded)) {}

    void run() {
#pragma omp parallel num_threads(threads) if (threads > 1)
        {
            const Scratch own(scratch + thread_number() * Scratch::size(padded), padded);
            if (!direct) {
                measure();
                pack();
            }
#pragma omp for schedule(dynamic)
            for (int64_t u = 0; u < batch * parts; ++u) add_part(u, own);
#pragma omp for schedule(dynamic)
            for (int64_t u = 0; u < batch * tiles; ++u) finish_columns(u / tiles, u % tiles);
        }
        finish_weight();
    }

  private:
    static constexpr int width = Lanes<T>::count;

    struct Scratch {
        T *factors, *sums, *raw_rows, *raw_columns, *column_sums, *weight_sums, *upstream;
        Scratch(T* own, int64_t padded)
            : factors(own), sums(own + chunk * padded), raw_rows(sums + chunk * padded),
              raw_columns(raw_rows + rows_at_once * padded), column_sums(raw_columns + tile * padded),
              weight_sums(column_sums + tile * padded), upstream(weight_sums + padded) {}
        static int64_t size(int64_t padded) {
            return (2 * chunk + rows_at_once + 2 * tile + 1) * padded + rows_at_once * tile;
        }
    };

    const Problem& p;
    const Side<T> row, column;
    const Rows<T> weights;
    const T* upstream;
    T* weight_gradient;
    const int64_t batch, padded;
    const int threads;
    const int64_t parts, part_rows, tiles, chunks;
    const bool direct;
    const Buffer<T> packed, column_sums;
    const Buffer<double> weight_sums;
    const Buffer<T> column_reach, row_reach, scratch;

    // Rows are cut into as many parts as even work needs. Each part has column sums of its own, which cost memory.
    int64_t parts_for() const {
        int64_t count = 1;
        if (batch < 4 * threads)
            while (batch * count % threads) ++count;
        return std::min(count, pieces(row.count, rows_at_once));
    }

    int64_t tile_count(int64_t n) const { return std::min(tile, column.count - n * tile); }

    void measure() {
#pragma omp for nowait
        for (int64_t u = 0; u < batch * tiles; ++u) {
            const int64_t first = u % tiles * tile, last = std::min(first + tile, column.count);
            column_reach[u] = reach<T>(column.rows, u / tiles, first, last, p.hidden);
        }
#pragma omp for
        for (int64_t u = 0; u < batch * parts * chunks; ++u) {
            const int64_t part = u / chunks, start = part % parts * part_rows, first = start + u % chunks * chunk;
            const int64_t last = std::min({first + chunk, start + part_rows, row.count});
            row_reach[u] = reach<T>(row.rows, part / parts, first, last, p.hidden);
        }
    }

    bool small(int64_t b) const {
        const T* of_columns = column_reach + b * tiles;
        const T* of_rows = row_reach + b * parts * chunks;
        return std::all_of(of_columns, of_columns + tiles, is_small<T>) &&
               std::all_of(of_rows, of_rows + parts * chunks, is_small<T>);
    }

    void pack() {
#pragma omp for schedule(dynamic)
        for (int64_t u = 0; u < batch * tiles; ++u) {
            const int64_t b = u / tiles, n = u % tiles, count = tile_count(n);
            const bool is_small = small(b);
            T* to = packed + (b * column.count + n * tile) * padded;
            for (int64_t j = 0; j < count; ++j)
                factors<T>(column.rows.at(b, n * tile + j), p.hidden, padded, is_small, to + j * width, count * width);
        }
    }

    void add_part(int64_t u, const Scratch& own) {
        const int64_t start = u % parts * part_rows, stop = std::min(start + part_rows, row.count);
        T* sums = column_sums + u * column.count * padded;
        std::memset(weight_sums + u * padded, 0, size_t(padded) * sizeof(double));
        if (start >= stop) std::memset(sums, 0, size_t(column.count * padded) * sizeof(T));
        for (int64_t first = start; first < stop; first += chunk)
            add_chunk(u, first, std::min(first + chunk, stop), first == start, sums, own);
    }

    void add_chunk(int64_t u, int64_t first, int64_t last, bool fresh, T* sums, const Scratch& own) {
        const int64_t b = u / parts;
        const bool is_small = !direct && small(b);
        const T reached = direct ? T(0) : row_reach[u * chunks + (first - u % parts * part_rows) / chunk];
        std::memset(own.sums, 0, size_t(chunk * padded) * sizeof(T));
        for (int64_t i = first; !direct && i < rounded_up(last, rows_at_once); ++i)
            factors<T>(row.rows.at(b, std::min(i, last - 1)), p.hidden, padded, is_small,
                       own.factors + (i - first) * padded, width);
        for (int64_t n = 0; n < tiles; ++n) {
            const int64_t size = tile_count(n) * padded;
            const Form form = direct ? Form::direct : form_for<T>(is_small, reached, column_reach[b * tiles + n]);
            std::memset(own.column_sums, 0, size_t(size) * sizeof(T));
            std::memset(own.weight_sums, 0, size_t(padded) * sizeof(T));
            add_tile(b, first, last, n, form, own);
            for (int64_t h = 0; h < padded; ++h) weight_sums[u * padded + h] += double(own.weight_sums[h]);
            T* to = sums + n * tile * padded;
            for (int64_t x = 0; x < size; x += width) {
                const Vector<T> more = load<T>(own.column_sums + x);
                store<T>(to + x, fresh ? more : load<T>(to + x) + more);
            }
        }
        for (int64_t i = first; i < last; ++i) finish_row(b, i, own.sums + (i - first) * padded);
    }

    void add_tile(int64_t b, int64_t first, int64_t last, int64_t n, Form form, const Scratch& own) {
        const int64_t count = tile_count(n);
        const T* columns = packed + (b * column.count + n * tile) * padded;
        if (form == Form::direct) {
            for (int64_t j = 0; j < count; ++j) copy(column.rows.at(b, n * tile + j), own.raw_columns + j * width, count);
            columns = own.raw_columns;
        }
        for (int64_t i = first; i < last; i += rows_at_once) {
            gather_upstream(b, i, last, n, own.upstream);
            const T* rows = own.factors + (i - first) * padded;
            if (form == Form::direct) {
                for (int64_t r = 0; r < rows_at_once; ++r)
                    copy(row.rows.at(b, std::min(i + r, last - 1)), own.raw_rows + r * padded, 1);
                rows = own.raw_rows;
            }
            const auto add = form == Form::direct    ? add_gradients<Form::direct, T>
                             : form == Form::clamped ? add_gradients<Form::clamped, T>
                             : form == Form::small   ? add_gradients<Form::small, T>
                                                     : add_gradients<Form::plain, T>;
            add(rows, columns, own.upstream, count, padded, own.sums + (i - first) * padded, own.column_sums,
                own.weight_sums);
        }
    }

    // A row as it is, zeros after its end, `stride` vectors from one vector to the next.
    void copy(const T* from, T* to, int64_t stride) const {
        int64_t h = 0;
        for (; h + width <= p.hidden; h += width, to += stride * width) store<T>(to, load<T>(from + h));
        if (h < padded) store<T>(to, load_tail<T>(from + h, p.hidden - h));
    }

    // Rows beyond the last get no gradient and so give none.
    void gather_upstream(int64_t b, int64_t i, int64_t last, int64_t n, T* to) const {
        const T* from = upstream + b * p.queries * p.keys + i * row.upstream_stride + n * tile * column.upstream_stride;
        for (int64_t j = 0; j < tile_count(n); ++j)
            for (int64_t r = 0; r < rows_at_once; ++r)
                to[j * rows_at_once + r] =
                    i + r < last ? from[r * row.upstream_stride + j * column.upstream_stride] : T(0);
    }

    // Gradient = 4 w * sum, cut to the row's length.
    void write(Vector<T> sum, const T* weight, int64_t h, T* to) const {
        const int64_t count = std::min<int64_t>(width, p.hidden - h);
        if (count == width) return store<T>(to + h, T(4) * load<T>(weight + h) * sum);
        const Vector<T> last = T(4) * load_tail<T>(weight + h, count) * sum;
        std::memcpy(to + h, &last, size_t(count) * sizeof(T));
    }

    void finish_row(int64_t b, int64_t i, const T* sums) const {
        T* to = row.gradient + (b * row.count + i) * p.hidden;
        for (int64_t h = 0; h < p.hidden; h += width) write(load<T>(sums + h), weights.at(b, 0), h, to);
    }

    void finish_columns(int64_t b, int64_t n) const {
        const int64_t count = tile_count(n), each = column.count * padded;
        const T* sums = column_sums + b * parts * each + n * tile * padded;
        T* to = column.gradient + (b * column.count + n * tile) * p.hidden;
        for (int64_t j = 0; j < count; ++j)
            for (int64_t h = 0; h < p.hidden; h += width) {
                Vector<T> total = load<T>(sums + h * count + j * width);
                for (int64_t part = 1; part < parts; ++part)
                    total += load<T>(sums + part * each + h * count + j * width);
                write(total, weights.at(b, 0), h, to + j * p.hidden);
            }
    }

    void finish_weight() const {
        const int64_t each = p.one_weight ? batch * parts : parts;
        for (int64_t b = 0; b < (p.one_weight ? 1 : batch); ++b)
            for (int64_t h = 0; h < p.hidden; ++h) {
                double total = 0;
                for (int64_t u = b * parts; u < b * parts + each; ++u) total += weight_sums[u * padded + h];
                weight_gradient[b * p.hidden + h] = T(2 * total);
            }
    }
};

template <class T>
int gradients(const T* query, const T* key, const T* weight, const T* upstream, T* query_gradient, T* key_gradient,
              T* weight_gradient, const Problem* p) {
    const Side<T> queries{query_rows(query, *p), p->queries, p->keys, query_gradient};
    const Side<T> keys{key_rows(key, *p), p->keys, 1, key_gradient};
    // Rows come in fours: of a single query and many keys, let the keys be the rows.
    const bool exchange = p->queries < rows_at_once && p->keys > p->queries;
    try {
        Backward<T>(exchange ? keys : queries, exchange ? queries : keys, weight, upstream, weight_gradient, *p).run();
        return 0;
    } catch (const std::bad_alloc&) {
        return 1;
    }
}

}  // namespace
}  // namespace regard::additive

using regard::additive::Problem;

extern "C" int regard_additive_gradients_float(
    const float* query, const float* key, const float* weight, const float* upstream, float* query_gradient,
    float* key_gradient, float* weight_gradient, const Problem* problem) {
    return regard::additive::gradients<float>(
        query, key, weight, upstream, query_gradient, key_gradient, weight_gradient, problem);
}
extern "C" int regard_additive_gradients_double(
    const double* query, const double* key, const double* weight, const double* upstream, double* query_gradient,
    double* key_gradient, double* weight_gradient, const Problem* problem) {
    return regard::additive::gradients<double>(
        query, key, weight, upstream, query_gradient, key_gradient, weight_gradient, problem);
}
