#define N 1
#if
#endif
#if N +
#endif
#if (N
#endif
#if 1 / 0
#endif
#if N == "x"
#endif
#if defined
#endif
#if 12ab
#endif
#if N N
#endif
#if 1 ? 2
#endif
#if N
#else
#else
#elif 1
#endif N
#ifdef N
const int A = 1;
