// Softmax attention within many short sequences that lie one after another. ragged.py has the definition.
//
// A sequence and a group of heads is one task of one thread; all that it needs fits the first caches. Tables of weights
// have a row for each key and a lane for each query, so that every step of the softmax is the same for all lanes.

#include <cmath>
#include <cstdint>
#include <limits>

#include "logarithm.hpp"
#include "noise.hpp"
#include "small_products.hpp"
#include "threads.hpp"

namespace {

using namespace regard;

// The sizes of one call; ragged.py packs them in this order.
struct Shape {
    int64_t threads, sequences, heads, groups, width, content, causal, seed;
    const int64_t *query_bounds, *key_bounds, *tables;  // rows of each sequence, and where its tables begin
    double scale, rate;
};

template <class T> struct Tensors {  // queries, keys and values, or their gradients
    Rows<T> query, key, value;
};

template <class T> struct Task {  // one sequence and one group of heads
    const Shape& shape;
    int64_t sequence, group, queries, keys, wide, shared;
    Task(const Shape& s, int64_t index)
        : shape(s), sequence(index / s.groups), group(index % s.groups),
          queries(s.query_bounds[sequence + 1] - s.query_bounds[sequence]),
          keys(s.key_bounds[sequence + 1] - s.key_bounds[sequence]), wide(padded<T>(queries)),
          shared(s.heads / s.groups) {}
    int64_t head(int64_t index) const { return group * shared + index; }
    template <class U> Rows<U> of_queries(Rows<U> all, int64_t head, int64_t size) const {
        return {all.row(shape.query_bounds[sequence]) + head * size, all.stride};
    }
    template <class U> Rows<U> of_keys(Rows<U> all, int64_t size) const {
        return {all.row(shape.key_bounds[sequence]) + group * size, all.stride};
    }
    int64_t table(int64_t head) const { return shape.tables[sequence] + head * keys * wide; }
};

// Dropout on weights, by the address (sequence and head, query, key): what each query mixes its keys with.
template <class T> struct Drop {
    const Shape& shape;
    uint32_t limit, *first, *second;
    T factor;
    Drop(const Shape& s, uint32_t* space, int64_t longest)
        : shape(s), limit(limit_of(float(s.rate))), first(space), second(space + longest),
          factor(T(1 / (1 - s.rate))) {}
    void begin(const Task<T>& task, int64_t head) const {
        for (int64_t i = 0; i < task.wide; ++i) {
            const RowKeys keys(uint64_t(shape.seed), uint32_t(task.sequence * shape.heads + head), uint32_t(i));
            first[i] = keys.first, second[i] = keys.second;
        }
    }
    void apply(const Task<T>& task, const T* from, T* to) const {
        for (int64_t j = 0; j < task.keys; ++j, from += task.wide, to += task.wide)
            for (int64_t i = 0; i < task.wide; ++i) {
                const uint32_t bits = mix(mix(uint32_t(j) ^ first[i]) + second[i]);
                const T value = from[i] * factor;
                to[i] = (bits >> 9) >= limit ? value : T(0);
            }
    }
};

// Scores become weights, in place, for one register of queries that starts at `query`.
template <class T> void weigh(const Task<T>& task, T* table, int64_t query) {
    const T nothing = -std::numeric_limits<T>::infinity(), scale = T(task.shape.scale);
    const int64_t late = task.shape.causal ? task.queries - task.keys : std::numeric_limits<int64_t>::min() / 2;
    Vector<T> place, top = fill<T>(nothing), sums = {};
    for (int lane = 0; lane < Lanes<T>::count; ++lane) place[lane] = T(query + lane);
    for (int64_t j = 0; j < task.keys; ++j) {  // a query sees the keys j with j + queries - keys <= its place
        T* row = table + j * task.wide + query;
        Vector<T> score = load<T>(row) * scale;
        if (late + j > query) store<T>(row, score = place >= T(late + j) ? score : fill<T>(nothing));
        else store<T>(row, score);
        top = greater(score, top);
    }
    top = top > nothing ? top : Vector<T>{};
    for (int64_t j = 0; j < task.keys; ++j) {
        T* row = table + j * task.wide + query;
        const Vector<T> power = exponential<T>(load<T>(row) - top);
        store<T>(row, power);
        sums += power;
    }
    const Vector<T> share = T(1) / (sums > T(0) ? sums : fill<T>(1));
    for (int64_t j = 0; j < task.keys; ++j) {
        T* row = table + j * task.wide + query;
        store<T>(row, load<T>(row) * share);
    }
}

// The gradient of the weights becomes that of the scores before scaling, in place.
template <class T> void slope(const Task<T>& task, const T* table, T* slopes, int64_t query) {
    Vector<T> mean = {};
    for (int64_t at = query; at < task.keys * task.wide; at += task.wide)
        mean += load<T>(table + at) * load<T>(slopes + at);
    const T scale = T(task.shape.scale);
    for (int64_t at = query; at < task.keys * task.wide; at += task.wide)
        store<T>(slopes + at, load<T>(table + at) * (load<T>(slopes + at) - mean) * scale);
}

struct Longest {
    int64_t queries = 1, keys = 1;
    explicit Longest(const Shape& s) {
        for (int64_t i = 0; i < s.sequences; ++i) {
            queries = std::max(queries, s.query_bounds[i + 1] - s.query_bounds[i]);
            keys = std::max(keys, s.key_bounds[i + 1] - s.key_bounds[i]);
        }
    }
};

template <class T> struct Space {  // what one thread works in
    int64_t width, content, wide;
    Buffer<T> columns, queries, keys, grads, dropped, slopes, made, by_key, by_value;
    Buffer<uint32_t> addresses;
    Space(const Shape& s, const Longest& most)
        : width(padded<T>(s.width)), content(padded<T>(s.content)), wide(padded<T>(most.queries)),
          columns(std::max(s.width, s.content) * wide), queries(most.queries * width),
          keys(most.keys * std::max(width, content)), grads(most.queries * content), dropped(most.keys * wide),
          slopes(most.keys * wide), made(most.queries * std::max(width, content)), by_key(most.keys * width),
          by_value(most.keys * content), addresses(2 * wide) {}
};

// Each task with the space of its thread.
template <class T, class Body> void each_task(const Shape& s, int64_t cost, Body body) {
    const Longest most(s);
#pragma omp parallel num_threads(threads_for(s.tables[s.sequences] * cost, s.threads))
    {
        Space<T> space(s, most);
        const Drop<T> drop(s, space.addresses, space.wide);
#pragma omp for schedule(dynamic, 8)
        for (int64_t index = 0; index < s.sequences * s.groups; ++index) {
            body(Task<T>(s, index), space, drop);
        }
    }
}

template <class T>
void read(const Task<T>& task, Space<T>& space, const Drop<T>& drop, Tensors<const T> in, Rows<T> out, T* tables) {
    const Shape& s = task.shape;
    const auto key = task.of_keys(in.key, s.width);
    const auto values = whole_rows<T>(task.keys, s.content, task.of_keys(in.value, s.content), space.keys);
    for (int64_t own = 0; own < task.shared; ++own) {
        const int64_t head = task.head(own);
        T *table = tables + task.table(head), *used = table;
        const auto columns = turned<T>(task.queries, s.width, task.of_queries(in.query, head, s.width), space.columns);
        product<T>(task.keys, task.wide, s.width, {key.data, key.stride, 1}, columns, {table, task.wide});
        for (int64_t query = 0; query < task.wide; query += Lanes<T>::count) weigh<T>(task, table, query);
        if (s.rate > 0) {
            drop.begin(task, head);
            drop.apply(task, table, used = space.dropped);
        }
        const auto to = task.of_queries(out, head, s.content);
        const bool whole = space.content == s.content;
        const Rows<T> made = whole ? to : Rows<T>{space.made, space.content};
        product<T>(task.queries, space.content, task.keys, {used, 1, task.wide}, values, made);
        if (!whole) copy_rows<T>(task.queries, s.content, {made.data, made.stride}, to);
    }
}

template <class T>
void pull_back(const Task<T>& task, Space<T>& space, const Drop<T>& drop, Tensors<const T> in, const T* tables,
               Rows<const T> upstream, Tensors<T> by) {
    const Shape& s = task.shape;
    const auto value = task.of_keys(in.value, s.content);
    const auto keys = whole_rows<T>(task.keys, s.width, task.of_keys(in.key, s.width), space.keys);
    for (int64_t own = 0; own < task.shared; ++own) {
        const int64_t head = task.head(own);
        const T *table = tables + task.table(head), *used = table;
        const auto up = task.of_queries(upstream, head, s.content);
        const auto grads = whole_rows<T>(task.queries, s.content, up, space.grads);
        const auto queries =
            whole_rows<T>(task.queries, s.width, task.of_queries(in.query, head, s.width), space.queries);
        const auto columns = turned<T>(task.queries, s.content, up, space.columns);
        product<T>(task.keys, task.wide, s.content, {value.data, value.stride, 1}, columns, {space.slopes, task.wide});
        if (s.rate > 0) {
            drop.begin(task, head);
            drop.apply(task, space.slopes, space.slopes);
            drop.apply(task, table, space.dropped);
            used = space.dropped;
        }
        product<T>(task.keys, space.content, task.queries, {used, task.wide, 1}, grads,
                   {space.by_value, space.content}, own > 0);
        for (int64_t query = 0; query < task.wide; query += Lanes<T>::count)
            slope<T>(task, table, space.slopes, query);
        product<T>(task.queries, space.width, task.keys, {space.slopes, 1, task.wide}, keys,
                   {space.made, space.width});
        copy_rows<T>(task.queries, s.width, {space.made, space.width}, task.of_queries(by.query, head, s.width));
        product<T>(task.keys, space.width, task.queries, {space.slopes, task.wide, 1}, queries,
                   {space.by_key, space.width}, own > 0);
    }
    copy_rows<T>(task.keys, s.width, {space.by_key, space.width}, task.of_keys(by.key, s.width));
    copy_rows<T>(task.keys, s.content, {space.by_value, space.content}, task.of_keys(by.value, s.content));
}

}  // namespace

#define REGARD_RAGGED(T)                                                                                              \
    extern "C" int regard_lanes_##T() { return Lanes<T>::count; }                                                     \
    extern "C" int regard_ragged_##T(const Shape* s, const T* q, int64_t q_stride, const T* k, int64_t k_stride,      \
                                     const T* v, int64_t v_stride, T* out, T* tables) {                               \
        const Tensors<const T> in{{q, q_stride}, {k, k_stride}, {v, v_stride}};                                       \
        const Rows<T> to{out, s->heads * s->content};                                                                 \
        each_task<T>(*s, 128, [=](const Task<T>& task, Space<T>& space, const Drop<T>& drop) {                        \
            read<T>(task, space, drop, in, to, tables);                                                               \
        });                                                                                                           \
        return 0;                                                                                                     \
    }                                                                                                                 \
    extern "C" int regard_ragged_back_##T(const Shape* s, const T* q, int64_t q_stride, const T* k, int64_t k_stride, \
                                          const T* v, int64_t v_stride, const T* tables, const T* upstream, T* by_q,  \
                                          int64_t by_q_stride, T* by_k, int64_t by_k_stride, T* by_v,                 \
                                          int64_t by_v_stride) {                                                      \
        const Tensors<const T> in{{q, q_stride}, {k, k_stride}, {v, v_stride}};                                       \
        const Tensors<T> by{{by_q, by_q_stride}, {by_k, by_k_stride}, {by_v, by_v_stride}};                           \
        const Rows<const T> up{upstream, s->heads * s->content};                                                      \
        each_task<T>(*s, 256, [=](const Task<T>& task, Space<T>& space, const Drop<T>& drop) {                        \
            pull_back<T>(task, space, drop, in, tables, up, by);                                                      \
        });                                                                                                           \
        return 0;                                                                                                     \
    }

REGARD_RAGGED(float)
REGARD_RAGGED(double)
