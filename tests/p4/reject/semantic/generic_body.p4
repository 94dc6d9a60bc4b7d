// A generic function is checked even if nobody calls it.
bool same<T>(in T a, in T b) {
    return a == b;
}
bit<8> wrong<T>(in T a) {
    return a;
}
T other<T, U>(in U a) {
    T b = a;
    return b;
}
T fine<T>(in T a) {
    T b = a;
    return b;
}
