extern E {
    E(list<bit<8>> data = ...);
}
