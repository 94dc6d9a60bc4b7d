// The core library of P4_16: what the language specification (appendix "P4 core library") promises to every program.
#ifndef _CORE_P4_
#define _CORE_P4_

// The order matters: the position is the value that `standard_metadata.parser_error` holds.
error {
    NoError,
    PacketTooShort,        // the packet ends before what is extracted, looked at or skipped
    NoMatch,               // no case of a select matches
    StackOutOfBounds,      // `next` or `last` of a header stack that has none
    HeaderTooShort,        // a varbit field is given more bits than it can hold
    ParserTimeout,         // the parser takes too long
    ParserInvalidArgument  // an argument the operation cannot work with, such as a part of a byte
}

// The packet as the parser reads it.
extern packet_in {
    // Takes a header of fixed size, or one element of a header stack.
    void extract<T>(out T hdr);
    // Takes a header with one varbit field of the given length.
    void extract<T>(out T variableSizeHeader, in bit<32> variableFieldSizeInBits);
    // The value that `extract` would take, without taking it.
    T lookahead<T>();
    // Skips bits.
    void advance(in bit<32> sizeInBits);
    // Length of the packet in bytes.
    bit<32> length();
}

// The packet as the deparser writes it.
extern packet_out {
    // Appends a header if it is valid; of a struct or stack, every valid header in order.
    void emit<T>(in T hdr);
}

// In parsers: if the condition is false, sets the error and rejects the packet.
extern void verify(in bool check, in error toSignal);

// Does nothing.
@noWarn("unused")
action NoAction() {}

match_kind {
    exact,
    ternary,
    lpm
}

// Checked by the compiler.
extern bool static_assert(bool check, string message);
extern bool static_assert(bool check);

#endif
