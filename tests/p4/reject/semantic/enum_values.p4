type bit<8> Byte;
enum Byte A {
    a = 1
}
enum int<8> B {
    low = -128,
    high = 128
}
enum bit<4> C {
    a = 16,
    b = -1
}
