// Which of the compiled forms this processor can run: 0 plain, 1 AVX2, 2 AVX-512. The order of SETS in kernels.py.

extern "C" int regard_instruction_set() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 0;
    const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
    return wide ? 2 : 1;
#else
    return 0;
#endif
}
