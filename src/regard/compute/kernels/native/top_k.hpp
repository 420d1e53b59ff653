// The few largest numbers of a row, and where they stand.

#pragma once

#include <cstdint>
#include <limits>

namespace regard {

// The best so far, largest first; of equals the one that comes first stays first.
template <class T> struct TopK {
    int64_t count;
    T* scores;
    int64_t* places;
    void clear() {
        for (int64_t i = 0; i < count; ++i) scores[i] = -std::numeric_limits<T>::infinity(), places[i] = 0;
    }
    T least() const { return scores[count - 1]; }
    void insert(T score, int64_t place) {
        int64_t at = count - 1;
        for (; at > 0 && scores[at - 1] < score; --at) scores[at] = scores[at - 1], places[at] = places[at - 1];
        scores[at] = score, places[at] = place;
    }
};

}  // namespace regard
