const int A = 1 $ 2;
const int B = 'x';
const int C = 1 \ 2;
const int D = é;
const int E = ;
