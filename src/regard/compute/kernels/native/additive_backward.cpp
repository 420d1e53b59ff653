// Gradients of additive scores: one pass over the pairs gives those of queries, keys and weight.

#include "additive_gradients.hpp"
#include "threads.hpp"

namespace regard::additive {
namespace {

constexpr int64_t tile = 32;   // columns whose factors and gradients stay in the first cache
constexpr int64_t chunk = 32;  // rows that meet a tile before the next
constexpr int64_t fewest_factored = 3;     // with fewer rows or columns the factors cost more than they save

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
          weight_gradient(weight_gradient), batch(p.batch()), padded(round_up(p.hidden, width)),
          threads(threads_for(batch * p.queries * p.keys * p.hidden, p.threads)), parts(choose_parts()),
          part_rows(round_up(ceil_divide(row.count, parts), rows_in_quad)), tiles(ceil_divide(column.count, tile)),
          chunks(ceil_divide(part_rows, chunk)),
          direct(std::min(p.queries, p.keys) < fewest_factored), alone(parts == 1), entry(column.count * padded),
          packed(direct ? 0 : (alone ? threads : batch) * entry),
          column_sums((alone ? threads : batch * parts) * entry), weight_sums(batch * parts * padded),
          column_reach(batch * tiles), row_reach(batch * parts * chunks), scratch(threads * Scratch::size(padded)) {}

    void run() {
#pragma omp parallel num_threads(threads) if (threads > 1)
        {
            const Scratch own(scratch + thread_number() * Scratch::size(padded), padded);
            if (alone) run_alone(own);
            else run_together(own);
        }
        finish_weight();
    }

  private:
    static constexpr int width = Lanes<T>::count;

    struct Scratch {
        T *factors, *sums, *raw_rows, *raw_columns, *column_sums, *weight_sums, *upstream;
        Scratch(T* own, int64_t padded)
            : factors(own), sums(own + chunk * padded), raw_rows(sums + chunk * padded),
              raw_columns(raw_rows + rows_in_quad * padded), column_sums(raw_columns + tile * padded),
              weight_sums(column_sums + tile * padded), upstream(weight_sums + padded) {}
        static int64_t size(int64_t padded) {
            return (2 * chunk + rows_in_quad + 2 * tile + 1) * padded + rows_in_quad * tile;
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
    const bool direct, alone;
    const int64_t entry;  // numbers in the factors of one batch entry
    const Buffer<T> packed, column_sums;
    const Buffer<double> weight_sums;
    const Buffer<T> column_reach, row_reach, scratch;

    // Rows are cut into as many parts as even work needs. Each part has column sums of its own, which cost memory.
    int64_t choose_parts() const {
        int64_t count = 1;
        if (batch < 4 * threads)
            while (batch * count % threads) ++count;
        return std::min(count, ceil_divide(row.count, rows_in_quad));
    }

    int64_t tile_count(int64_t n) const { return std::min(tile, column.count - n * tile); }

    // Each thread does whole batch entries, whose factors and sums stay in its cache and are written over by the next.
    void run_alone(const Scratch& own) {
        T *factors = packed + (direct ? 0 : thread_number() * entry), *sums = column_sums + thread_number() * entry;
#pragma omp for schedule(dynamic)
        for (int64_t b = 0; b < batch; ++b) {
            for (int64_t n = 0; n < tiles && !direct; ++n) measure_columns(b, n);
            for (int64_t c = 0; c < chunks && !direct; ++c) measure_rows(b, c);
            for (int64_t n = 0; n < tiles && !direct; ++n) pack_tile(b, n, factors);
            add_part(b, factors, sums, own);
            for (int64_t n = 0; n < tiles; ++n) finish_columns(b, n, sums);
        }
    }

    // Too few entries for that: all threads prepare all of them, add what their parts give, and join the sums.
    void run_together(const Scratch& own) {
        if (!direct) {
#pragma omp for nowait
            for (int64_t u = 0; u < batch * tiles; ++u) measure_columns(u / tiles, u % tiles);
#pragma omp for
            for (int64_t u = 0; u < batch * parts * chunks; ++u) measure_rows(u / chunks, u % chunks);
#pragma omp for schedule(dynamic)
            for (int64_t u = 0; u < batch * tiles; ++u) pack_tile(u / tiles, u % tiles, packed + u / tiles * entry);
        }
#pragma omp for schedule(dynamic)
        for (int64_t u = 0; u < batch * parts; ++u)
            add_part(u, packed + (direct ? 0 : u / parts * entry), column_sums + u * entry, own);
#pragma omp for schedule(dynamic)
        for (int64_t u = 0; u < batch * tiles; ++u)
            finish_columns(u / tiles, u % tiles, column_sums + u / tiles * parts * entry);
    }

    void measure_columns(int64_t b, int64_t n) {
        column_reach[b * tiles + n] = reach<T>(column.rows, b, n * tile, n * tile + tile_count(n), p.hidden);
    }
    // `u` is a part of a batch entry, `c` a chunk of the part.
    void measure_rows(int64_t u, int64_t c) {
        const int64_t start = u % parts * part_rows, first = start + c * chunk;
        const int64_t last = std::min({first + chunk, start + part_rows, row.count});
        row_reach[u * chunks + c] = reach<T>(row.rows, u / parts, first, last, p.hidden);
    }

    bool small(int64_t b) const {
        const T* of_columns = column_reach + b * tiles;
        const T* of_rows = row_reach + b * parts * chunks;
        return std::all_of(of_columns, of_columns + tiles, is_small<T>) &&
               std::all_of(of_rows, of_rows + parts * chunks, is_small<T>);
    }

    void pack_tile(int64_t b, int64_t n, T* factors_of_entry) const {
        const int64_t count = tile_count(n);
        const bool is_small = small(b);
        T* to = factors_of_entry + n * tile * padded;
        for (int64_t j = 0; j < count; ++j)
            factors<T>(column.rows.at(b, n * tile + j), p.hidden, padded, is_small, to + j * width, count * width);
    }

    void add_part(int64_t u, const T* columns, T* sums, const Scratch& own) {
        const int64_t start = u % parts * part_rows, stop = std::min(start + part_rows, row.count);
        std::memset(weight_sums + u * padded, 0, size_t(padded) * sizeof(double));
        if (start >= stop) std::memset(sums, 0, size_t(entry) * sizeof(T));
        for (int64_t first = start; first < stop; first += chunk)
            add_chunk(u, first, std::min(first + chunk, stop), columns, sums, own);
    }

    void add_chunk(int64_t u, int64_t first, int64_t last, const T* columns, T* sums, const Scratch& own) {
        const int64_t b = u / parts, c = (first - u % parts * part_rows) / chunk;
        const bool is_small = !direct && small(b), fresh = c == 0;
        const T reached = direct ? T(0) : row_reach[u * chunks + c];
        std::memset(own.sums, 0, size_t(chunk * padded) * sizeof(T));
        for (int64_t i = first; !direct && i < round_up(last, rows_in_quad); ++i)
            factors<T>(row.rows.at(b, std::min(i, last - 1)), p.hidden, padded, is_small,
                       own.factors + (i - first) * padded, width);
        for (int64_t n = 0; n < tiles; ++n) {
            const int64_t size = tile_count(n) * padded;
            const Form form = direct ? Form::direct : choose_form<T>(is_small, reached, column_reach[b * tiles + n]);
            std::memset(own.column_sums, 0, size_t(size) * sizeof(T));
            std::memset(own.weight_sums, 0, size_t(padded) * sizeof(T));
            add_tile(b, first, last, n, form, columns + n * tile * padded, own);
            for (int64_t h = 0; h < padded; ++h) weight_sums[u * padded + h] += double(own.weight_sums[h]);
            T* to = sums + n * tile * padded;
            for (int64_t x = 0; x < size; x += width) {
                const Vector<T> more = load<T>(own.column_sums + x);
                store<T>(to + x, fresh ? more : load<T>(to + x) + more);
            }
        }
        for (int64_t i = first; i < last; ++i) finish_row(b, i, own.sums + (i - first) * padded);
    }

    void add_tile(
        int64_t b, int64_t first, int64_t last, int64_t n, Form form, const T* columns, const Scratch& own) const {
        const int64_t count = tile_count(n);
        if (form == Form::direct) {
            for (int64_t j = 0; j < count; ++j)
                copy(column.rows.at(b, n * tile + j), own.raw_columns + j * width, count);
            columns = own.raw_columns;
        }
        for (int64_t i = first; i < last; i += rows_in_quad) {
            if (!gather_upstream(b, i, last, n, own.upstream)) continue;
            const T* rows = own.factors + (i - first) * padded;
            if (form == Form::direct) {
                for (int64_t r = 0; r < rows_in_quad; ++r)
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

    // Rows beyond the last get no gradient and so give none. Nor does a masked block, and then there is nothing to do.
    bool gather_upstream(int64_t b, int64_t i, int64_t last, int64_t n, T* to) const {
        const T* from = upstream + b * p.queries * p.keys + i * row.upstream_stride + n * tile * column.upstream_stride;
        bool any = false;
        for (int64_t j = 0; j < tile_count(n); ++j)
            for (int64_t r = 0; r < rows_in_quad; ++r) {
                const T g = i + r < last ? from[r * row.upstream_stride + j * column.upstream_stride] : T(0);
                to[j * rows_in_quad + r] = g;
                any |= g != 0;
            }
        return any;
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

    void finish_columns(int64_t b, int64_t n, const T* sums) const {
        const int64_t count = tile_count(n);
        sums += n * tile * padded;
        T* to = column.gradient + (b * column.count + n * tile) * p.hidden;
        for (int64_t j = 0; j < count; ++j)
            for (int64_t h = 0; h < p.hidden; h += width) {
                Vector<T> total = load<T>(sums + h * count + j * width);
                for (int64_t part = 1; part < parts; ++part)
                    total += load<T>(sums + part * entry + h * count + j * width);
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
    const bool exchange = p->queries < rows_in_quad && p->keys > p->queries;
    return report_memory([&] {
        Backward<T>(exchange ? keys : queries, exchange ? queries : keys, weight, upstream, weight_gradient, *p).run();
    });
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
