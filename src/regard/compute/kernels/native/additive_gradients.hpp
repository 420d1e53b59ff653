// The innermost loop of the gradients. A vector holds several hidden units of one pair.
//
// With x = exp(2 (q + k)) and r = 1 / (1 + x): tanh' = 4 x r^2 and tanh = 1 - 2 r. Not 4 (r - r^2), which is exact on
// one side of zero only. Sums run over short stretches that are then added to longer ones, as torch's own do.

#pragma once

#include "additive.hpp"

namespace regard::additive {

constexpr int rows_in_quad = 4;  // rows that share a division

// A quarter of tanh' and half of tanh for one column and four rows.
template <class T> struct Quad {
    Vector<T> slope[rows_in_quad], half[rows_in_quad];

    template <Form form> static inline Quad compute(const Vector<T>* rows, Vector<T> column) {
        using V = Vector<T>;
        V product[rows_in_quad], top[rows_in_quad], bottom[rows_in_quad], inverse[rows_in_quad];
#pragma GCC unroll 4
        for (int n = 0; n < rows_in_quad; ++n) {
            if (form == Form::direct) {
                top[n] = exp_minus_one<T>(rows[n] + column, Limits<T>::pair_exponent);
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
        for (int n = 0; n < rows_in_quad; ++n) {
            const bool by_top = form == Form::small || form == Form::direct;
            quad.half[n] = by_top ? T(0.5) * top[n] * inverse[n] : T(0.5) - inverse[n];
            quad.slope[n] = form == Form::small ? T(0.25) - quad.half[n] * quad.half[n]
                                                : product[n] * inverse[n] * inverse[n];
        }
        return quad;
    }

    // 1 / x for four numbers by one division, or by two if the product of four might overflow.
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
        V row[rows_in_quad], totals[rows_in_quad], weight_total = fill<T>(0);
        for (int n = 0; n < rows_in_quad; ++n) row[n] = load<T>(rows + n * padded + h), totals[n] = fill<T>(0);
        for (int64_t j = 0; j < count; ++j) {
            const Quad<T> quad = Quad<T>::template compute<form>(row, load<T>(columns + j * width));
            const T* g = upstream + j * rows_in_quad;
            V column_total = quad.slope[0] * g[0], pair_total = quad.half[0] * g[0];
            totals[0] += quad.slope[0] * g[0];
#pragma GCC unroll 4
            for (int n = 1; n < rows_in_quad; ++n) {
                totals[n] += quad.slope[n] * g[n];
                column_total += quad.slope[n] * g[n];
                pair_total += quad.half[n] * g[n];
            }
            weight_total += pair_total;
            store<T>(column_sums + j * width, load<T>(column_sums + j * width) + column_total);
        }
        for (int n = 0; n < rows_in_quad; ++n) {
            T* to = row_sums + n * padded + h;
            store<T>(to, load<T>(to) + totals[n]);
        }
        store<T>(weight_sums + h, load<T>(weight_sums + h) + weight_total);
    }
}

}  // namespace regard::additive
