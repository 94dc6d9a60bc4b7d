// Words that are keywords in one place only are names everywhere else.

struct Words {
    bit<8> actions;
    bit<8> apply;
    bit<8> entries;
    bit<8> key;
    bit<8> list;
    bit<8> priority;
    bit<8> state;
    bit<8> type;
}

control work(inout Words words, in bit<8> key, in bit<8> state) {
    action actions(bit<8> type) {
        words.type = type;
    }
    table priority {
        key = { }
        actions = { actions; }
        default_action = actions(1);
    }
    apply {
        bit<8> entries = key + state;
        priority.apply();
        words = { 1, entries, words.list, 4, 5, 6, 7, 8 };
        words.apply = words.priority;
    }
}
