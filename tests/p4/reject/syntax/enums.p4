enum E { A = 1, B }
enum bit<8> F { A = 1, B }
enum G { }
enum H { A B }
error { A, }
