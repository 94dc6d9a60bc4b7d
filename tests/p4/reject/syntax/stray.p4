control c(inout bit<8> x) {
    apply { x = 1; }
}
}
const bit<8> A = ;
if (true) { f(); } else { g(); }
return 1;
const bit<8> B = ;
apply { }
