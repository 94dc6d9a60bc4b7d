@name("no end)
const int A = ;
const int B = 1;
