// Large results in large pages: a page of 4 kB costs a fault when it is first written, which takes longer than
// computing what goes into it.

#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#endif

extern "C" int regard_large_pages(char* memory, int64_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    constexpr uintptr_t page = 4096;
    const uintptr_t start = (reinterpret_cast<uintptr_t>(memory) + page - 1) / page * page;
    const uintptr_t end = (reinterpret_cast<uintptr_t>(memory) + uintptr_t(bytes)) / page * page;
    if (end > start) madvise(reinterpret_cast<void*>(start), end - start, MADV_HUGEPAGE);
#endif
    return 0;  // advice: a system that does not take it does what it did before
}
