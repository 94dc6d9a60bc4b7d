const int A = 1;
/* The end of this comment is missing.
const int B = 2;
