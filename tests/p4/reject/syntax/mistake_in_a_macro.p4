#define WIDTH 8w
#define DECLARE(T, n) T n = WIDTH
const DECLARE(bit<8>, A);
control c() {
    DECLARE(bit<8>, table);
    apply { }
}
