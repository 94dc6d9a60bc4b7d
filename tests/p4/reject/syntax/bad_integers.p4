const int A = 0xFG;
const int B = 0b12;
const int C = 8w;
const int D = 0o8;
const int E = 12ab;
const int F = 99999999999w1;
const bit<8> G = 8w0x;
