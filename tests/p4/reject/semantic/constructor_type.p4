extern E {
    void E();
    int f();
}
