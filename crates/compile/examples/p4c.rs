//! Compiles programs and prints diagnostics, IR or P4Info: `p4c [--p4info|--ir] FILE...`
use std::path::Path;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (flags, files): (Vec<String>, Vec<String>) =
        args.into_iter().partition(|a| a.starts_with("--"));
    for file in files {
        let outcome = compile::compile_file(Path::new(&file), &compile::Options::default());
        eprint!("{}", outcome.render());
        let Some(compiled) = outcome.compiled else {
            continue;
        };
        if flags.iter().any(|f| f == "--p4info") {
            print!("{}", compiled.p4info.to_text());
        }
        if flags.iter().any(|f| f == "--ir") {
            println!("{}", ir::text::print(&compiled.program));
        }
    }
}
