// Vectors as wide as the processor's registers, in the extension that GCC and Clang share, and the exponential on them.

#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace regard {

#if defined(__AVX512F__)
constexpr int register_bytes = 64;
#elif defined(__AVX__)
constexpr int register_bytes = 32;
#else
constexpr int register_bytes = 16;
#endif

template <class T> struct Lanes;
template <> struct Lanes<float> {
    typedef float vector __attribute__((vector_size(register_bytes)));
    typedef float loose __attribute__((vector_size(register_bytes), aligned(4), may_alias));
    typedef int32_t integer;
    typedef int32_t integers __attribute__((vector_size(register_bytes)));
    static constexpr int count = register_bytes / 4, mantissa = 23, bias = 127, terms = 7;
    // log 2 in two parts: the first has so few digits that its product with a whole exponent is exact.
    static constexpr float log2_high = 0x1.62ep-1f, log2_low = 0x1.0bfbe8e7bcd5ep-15f, exponent_limit = 86.0f;
    static constexpr float rounding = 0x1.8p23f;  // adding it rounds to a whole number, left in the low bits
};
template <> struct Lanes<double> {
    typedef double vector __attribute__((vector_size(register_bytes)));
    typedef double loose __attribute__((vector_size(register_bytes), aligned(8), may_alias));
    typedef int64_t integer;
    typedef int64_t integers __attribute__((vector_size(register_bytes)));
    static constexpr int count = register_bytes / 8, mantissa = 52, bias = 1023, terms = 13;
    static constexpr double log2_high = 0x1.62e42feep-1, log2_low = 0x1.a39ef35793c76p-33, exponent_limit = 700.0;
    static constexpr double rounding = 0x1.8p52;
};
template <class T> using Vector = typename Lanes<T>::vector;

template <class T> inline Vector<T> load(const T* from) {
    return *reinterpret_cast<const typename Lanes<T>::loose*>(from);
}
template <class T> inline void store(T* to, Vector<T> value) {
    *reinterpret_cast<typename Lanes<T>::loose*>(to) = value;
}
template <class T> inline Vector<T> fill(T value) { return Vector<T>{} + value; }

// The lesser and the greater; a NaN in `value` stays. Compilers do not see one instruction in the comparison.
template <class V> inline V lesser(V bound, V value) { return bound < value ? bound : value; }
template <class V> inline V greater(V bound, V value) { return bound > value ? bound : value; }
#if defined(__AVX512F__)
template <> inline Vector<float> lesser(Vector<float> a, Vector<float> b) { return _mm512_min_ps(a, b); }
template <> inline Vector<float> greater(Vector<float> a, Vector<float> b) { return _mm512_max_ps(a, b); }
template <> inline Vector<double> lesser(Vector<double> a, Vector<double> b) { return _mm512_min_pd(a, b); }
template <> inline Vector<double> greater(Vector<double> a, Vector<double> b) { return _mm512_max_pd(a, b); }
#elif defined(__AVX__)
template <> inline Vector<float> lesser(Vector<float> a, Vector<float> b) { return _mm256_min_ps(a, b); }
template <> inline Vector<float> greater(Vector<float> a, Vector<float> b) { return _mm256_max_ps(a, b); }
template <> inline Vector<double> lesser(Vector<double> a, Vector<double> b) { return _mm256_min_pd(a, b); }
template <> inline Vector<double> greater(Vector<double> a, Vector<double> b) { return _mm256_max_pd(a, b); }
#endif
template <class T> inline Vector<T> at_most(T bound, Vector<T> value) { return lesser(fill<T>(bound), value); }
template <class T> inline Vector<T> at_least(T bound, Vector<T> value) { return greater(fill<T>(bound), value); }

// By halves: a chain of additions would wait for each.
template <class T> inline T sum(Vector<T> value) {
    T lanes[Lanes<T>::count];
    store<T>(lanes, value);
#pragma GCC unroll 5
    for (int half = Lanes<T>::count / 2; half > 0; half /= 2)
        for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
    return lanes[0];
}

#if defined(__AVX512F__)
template <> inline float sum<float>(Vector<float> value) { return _mm512_reduce_add_ps(value); }
template <> inline double sum<double>(Vector<double> value) { return _mm512_reduce_add_pd(value); }
#endif

// A polynomial, lowest power first, by Horner's rule.
template <class T, int terms> inline Vector<T> polynomial(const double (&coefficient)[terms], Vector<T> x) {
    Vector<T> total = fill<T>(T(coefficient[terms - 1]));
#pragma GCC unroll 24
    for (int n = terms - 2; n >= 0; --n) total = total * x + T(coefficient[n]);
    return total;
}

// The Taylor series of (e^x - 1) / x.
template <class T, int terms> inline Vector<T> series(Vector<T> x) {
    double coefficient[terms] = {1.0};
    for (int n = 1; n < terms; ++n) coefficient[n] = coefficient[n - 1] / (n + 1);
    return polynomial<T, terms>(coefficient, x);
}

// (e^(a x) - 1) / x for |a x| <= log(2) / 2: of all polynomials with so few terms, the one whose largest relative error
// is least (by Remez' algorithm), 1.1e-8 and 1.8e-17.
template <class T, int terms>
inline Vector<T> scaled_polynomial(const double (&coefficient)[terms], Vector<T> x, double a) {
    double scaled[terms], power = 1;
    for (int n = 0; n < terms; ++n) scaled[n] = coefficient[n] * (power *= a);
    return polynomial<T>(scaled, x);
}
inline Vector<float> growth(Vector<float> x, double a = 1) {
    constexpr double coefficient[] = {1.0000000106597768, 0.49999998119168196, 0.16666505899008350,
                                      0.041667137150319429, 0.0083691042937795626, 0.0013888872618561935};
    return scaled_polynomial<float>(coefficient, x, a);
}
inline Vector<double> growth(Vector<double> x, double a = 1) {
    constexpr double coefficient[] = {
        1.0, 0.50000000000000055756, 0.16666666666666563029, 0.041666666666573538928, 0.0083333333333980838321,
        0.0013888888932388454529, 0.00019841269707083849911, 0.000024801504437416727754, 2.755741496301488568e-6,
        2.7626331474596203683e-7, 2.5052102553432499426e-8};
    return scaled_polynomial<double>(coefficient, x, a);
}

// 2^n, from the sum of n, `rounding` and `bias`: its low bits are the exponent.
template <class T> inline Vector<T> power_of_two(Vector<T> shifted) {
    typename Lanes<T>::integers bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = bits << Lanes<T>::mantissa;
    Vector<T> scale;
    std::memcpy(&scale, &bits, sizeof bits);
    return scale;
}

// e^x - 1 = scale * tail + (scale - 1), with scale a power of two and |tail| < 1/2: what is needed for e^x, and for
// e^x - 1 without cancellation near x = 0. |x| must not exceed the exponent limit.
template <class T> struct Exponential {
    Vector<T> scale, tail;
    explicit inline Exponential(Vector<T> x) {
        using L = Lanes<T>;
        const Vector<T> shifted = x * T(1.44269504088896340736) + (L::rounding + L::bias);
        const Vector<T> whole = shifted - (L::rounding + L::bias);
        const Vector<T> rest = (x - whole * L::log2_high) - whole * L::log2_low;
        tail = rest * growth(rest);
        scale = power_of_two<T>(shifted);
    }
    inline Vector<T> value() const { return scale * tail + scale; }
    inline Vector<T> minus_one() const { return scale * tail + (scale - T(1)); }
};

// Memory that starts on a cache line and is given back at the end of the scope.
template <class T> class Buffer {
  public:
    explicit Buffer(int64_t count) {
        const size_t bytes = (size_t(count < 1 ? 1 : count) * sizeof(T) + 63) / 64 * 64;
        data_ = static_cast<T*>(std::aligned_alloc(64, bytes));
        if (!data_) throw std::bad_alloc();
    }
    ~Buffer() { std::free(data_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    operator T*() const { return data_; }

  private:
    T* data_;
};

}  // namespace regard
