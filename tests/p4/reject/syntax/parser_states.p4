parser p(inout bit<8> x) {
    state start {
        return;
        exit;
        switch (x) { }
        for (bit<8> i in 1 .. 3) { }
        transition next;
        x = 1;
    }
    state next {
        transition select(x) {
            1 accept;
            2: ;
            3: reject;
            (4, 5: accept;
        }
    }
    state last {
        transition select x { }
    }
}
parser empty() { }
