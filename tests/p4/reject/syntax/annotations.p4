@5 const int A = 1;
@[1] const int B = 2;
@a[k = 1, 2] const int C = 3;
@b(1 const int D = 4;
const int E = ;
