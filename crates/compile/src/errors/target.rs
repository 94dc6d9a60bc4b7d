//! The architecture, its externs, and the limits of this compiler.

use syntax::diagnostics::Diagnostic;
use syntax::messages;
use syntax::source::Span;

use super::plural;

messages! {
    /// Makes the warning for a program without `main`: a library, which is only checked, since there is
    /// nothing to run.
    fn no_main(package: &str) =>
        warning("W1130", "the program has no `main`: it is checked, and there is nothing to run")
            .hint(format!("end it with `{package}(parser(), ..., deparser()) main;`"));

    fn wrong_package(found: &str, packages: &str, architectures: &str) =>
        error("E1131", "`main` is a `{found}`, not a {packages}")
            .note(format!("programs for other architectures than {architectures} cannot be compiled"));

    fn foreign_block(package: &str, architecture: &str, stage: &str, block: Span) =>
        error("E1125", "this `{package}` is not the one of {architecture}: its block `{stage}` is another parser or control, or has other parameters")
            .label(block, "this block");

    fn extern_place(name: &str, place: &str) =>
        error("E1132", "`{name}` can only be used in {place}");

    fn own_extern(name: &str, declared: Span, advice: &str) =>
        error("E1133", "Holdfast does not implement the extern `{name}`, which this program declares")
            .label(declared, "declared here")
            .hint(advice);

    fn foreign_enum(name: &str, members: &[&str]) =>
        error("E1129", "the enum `{name}` of the architecture does not have the members that it has here")
            .hint(format!("they are {}", members.join(", ")));

    fn hash_algorithm(name: &str) =>
        error("E1128", "Holdfast does not implement the hash algorithm `{name}`, which this program declares");

    fn table_place(found: &str) =>
        error("E1127", "a table can only be applied in the ingress and egress controls, not in `{found}`");

    fn clone_kind(kind: &str, control: &str) =>
        error("E1134", "a clone of kind `{kind}` cannot be made in the {control} control");

    fn field_list_entry() => error("E1135", "only fields can be preserved, not computed values");

    fn not_served(what: &str, why: &str) =>
        warning("W1297", "P4Runtime clients cannot use {what}: {why}");

    fn varbit_digest() => error("E1136", "a varbit cannot be part of a digest");

    fn extract_header(found: &str) => error("E1137", "`{found}` cannot be extracted")
        .note("only headers can");
}

pub(crate) fn extract_varbit(span: Span, name: &str, has: bool) -> Diagnostic {
    let message = match has {
        true => format!("`{name}` has a varbit field, whose length must be given"),
        false => format!("`{name}` has no varbit field, so no length can be given"),
    };
    Diagnostic::error("E1138", span, message)
}

messages! {
    fn emit_value(found: &str) => error("E1139", "`{found}` cannot be emitted")
        .note("only headers, and what is made of them");

    fn id_prefix(id: u32, wanted: u32) =>
        error("E1141", "the id {id:#010x} has the wrong first byte; it should be {wanted:#04x}");

    fn id_twice(id: u32) => error("E1142", "the id {id:#x} is used twice");

    fn id_zero() => error("E1148", "the id 0 means that there is none");

    fn controller_field(name: &str) =>
        error("E1150", "'{name}' has no fixed width; the fields of a header to or from the controller have one");

    /// Makes the error for a number that is too large for its field in P4Info.
    fn beyond_p4info(what: &str, value: u64, limit: u64) =>
        error("E1149", "{what} is {value}, and the control plane can be told {limit} at most");

    fn control_name_twice(name: &str, kind: &str) =>
        error("E1143", "two {kind} have the control-plane name `{name}`")
            .hint("rename one, or give it another `@name`");

    fn direct_resource_shared(name: &str) =>
        error("E1144", "`{name}` already belongs to another table");

    fn action_param_type(name: &str, found: &str) =>
        error("E1145", "the control plane cannot set `{name}`, which is of type `{found}`");

    fn log_values(holes: usize, values: usize) =>
        error("E1146", "the message has {} for {}", plural(holes, "place"), plural(values, "value"))
            .note("each `{}` takes one value");

    fn annotation_value() =>
        error("E1147", "a value in a structured annotation must be a constant string, number or truth value");

    fn unsupported(what: &str) => error("E1190", "{what} is not supported yet");

    fn too_large(what: &str) => error("E1191", "too large: {what}");

    fn violation(violation: &ir::verify::VerifyError) =>
        error("E1199", "this is a fault of Holdfast: the compiled program breaks a rule of its IR: {violation}");

    fn metadata_width(field: &str, wanted: u32, found: u32, files: &str) =>
        error("E1126", "the field `{field}` of the architecture's metadata has {found} bits; Holdfast gives it {wanted}")
            .hint(format!("include the {files} that is built in"));

    fn main_kind(what: &str) =>
        error("E1270", "`main` is {what}, but it must be an instance of a package");

    fn lookahead_type(found: &str) =>
        error("E1271", "`{found}` has no fixed size, so it cannot be looked at");

    fn emit_not_bytes(name: &str) =>
        warning("W1272", "`{name}` is not whole bytes, so zero bits are emitted after it");
}
