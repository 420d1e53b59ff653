// How many threads a loop is worth, and which one is running. Without OpenMP there is one.

#pragma once

#include <algorithm>
#include <cstdint>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace regard {

// Waking a thread costs some microseconds: each must have at least that much to do.
inline int threads_for(int64_t work, int64_t allowed) {
    constexpr int64_t least = 1 << 15;
    return int(std::max<int64_t>(1, std::min(allowed, work / least)));
}

inline int thread_number() {
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

}  // namespace regard
