bit<8> f(in bit<8> a { return a; }
bit<8> g(in bit<8> a) return a;
bit<8> h(inn bit<8> a) { return a; }
bit<8> i<bit<8>>(in bit<8> a) { return a; }
void (in bit<8> a) { }
