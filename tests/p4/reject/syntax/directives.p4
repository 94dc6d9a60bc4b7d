#bogus
#include
#include <no_such_file.p4>
#include "no_such_file.p4"
#define
#define F(a, a) a
#define G(a b) a
#define H ## a
#define I(x) #y
#import <core.p4>
#elifdef X
#define defined 1
#undef
#ifdef
#endif
#ifndef 5
#endif
#error this program is wrong
#warning and suspicious
#line x
#else
#elif 1
#endif
const int A = 1;
