typedef bit<8>;
type struct S { } T;
typedef void;
typedef struct S { bit<8> a; };
type bit<8> U
const int A = 1;
