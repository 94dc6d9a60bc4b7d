#include <core.p4>
error {
    MyError,
    NoMatch
}
