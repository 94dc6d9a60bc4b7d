#define TWO(a, b) a + b
#define NONE() 1
#define CAT(a, b) a ## b
#define N 1
#define N 2
const int A = TWO(1);
const int B = TWO(1, 2, 3);
const int C = NONE(1);
const int D = CAT(x, +) 1;
const int E = TWO(1, (2);
const int F = ;
#define J(x) x # 1
const int G = J(1);
