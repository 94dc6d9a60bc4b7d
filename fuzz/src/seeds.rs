//! Where fuzzing starts: the programs of the repository's tests, generated and random valid programs, random histories.

use conformance::{apps, generated};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Random programs and histories.
const RANDOM: u64 = 40;

/// What programs may include, by the name they use.
pub fn includes() -> &'static [(String, String)] {
    static INCLUDES: OnceLock<Vec<(String, String)>> = OnceLock::new();
    INCLUDES.get_or_init(|| {
        let files = [
            ("include/rest.p4", "tests/p4/run/include/rest.p4"),
            ("headers.p4", "python/holdfast/apps/headers.p4"),
            ("../headers.p4", "python/holdfast/apps/headers.p4"),
        ];
        let read = |path: &str| std::fs::read_to_string(apps::root().join(path));
        let mut includes = vec![
            ("core.p4".to_string(), compile::CORE_P4.to_string()),
            ("v1model.p4".to_string(), compile::V1MODEL_P4.to_string()),
        ];
        for (name, path) in files {
            // Without one of them there is less to start from, and nothing else is lost.
            if let Ok(text) = read(path) {
                includes.push((name.to_string(), text));
            }
        }
        includes
    })
}

/// Writes the inputs to start from into the directory that `FUZZ_SEEDS` names, before libFuzzer reads it.
///
/// # Panics
/// If they cannot be written, or there are none.
pub fn write(target: &str) {
    let Some(directory) = std::env::var_os("FUZZ_SEEDS").map(PathBuf::from) else {
        return;
    };
    let seeds = seeds(target);
    assert!(!seeds.is_empty(), "no seeds for {target}");
    for (i, seed) in seeds.iter().enumerate() {
        let path = directory.join(format!("seed-{i:04}"));
        std::fs::write(&path, seed).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
}

/// Inputs to start from.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    match target {
        "parse" | "compile" => {
            let mut sources = sources();
            sources.extend((0..RANDOM).map(generated_source));
            sources
        }
        "artifact" => artifacts(),
        "packet" => histories(),
        "generated" => (0..RANDOM).map(generated::case).collect(),
        _ => Vec::new(),
    }
}

/// A generated program, as text.
fn generated_source(seed: u64) -> Vec<u8> {
    generated::source(&generated::case(seed)).into_bytes()
}

/// An input that is not a mutant, when the target has an endless supply of those.
pub fn fresh(target: &str, seed: u64) -> Option<Vec<u8>> {
    match target {
        "parse" | "compile" => Some(generated_source(seed)),
        "artifact" => Some(ir::text::print(&ir::arbitrary::program(seed)).into_bytes()),
        "generated" => Some(generated::case(seed)),
        _ => None,
    }
}

fn sources() -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    collect(&apps::root().join("tests/p4"), &mut files);
    collect(&apps::root().join("python/holdfast/apps"), &mut files);
    let read = |path: &PathBuf| std::fs::read(path).ok();
    let sources = files.iter().filter_map(read);
    sources.filter(|s| s.len() <= crate::MAX_INPUT).collect()
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "p4") {
            files.push(path);
        }
    }
}

fn artifacts() -> Vec<Vec<u8>> {
    let mut programs: Vec<ir::Program> = (0..RANDOM).map(ir::arbitrary::program).collect();
    let mut files = Vec::new();
    collect(&apps::root().join("tests/p4/run"), &mut files);
    let options = apps::options(&[]);
    let compiled = files
        .iter()
        .filter_map(|path| compile::compile_file(path, &options).compiled);
    programs.extend(compiled.map(|c| c.program));
    programs
        .iter()
        .map(|p| ir::text::print(p).into_bytes())
        .collect()
}

fn histories() -> Vec<Vec<u8>> {
    let history = |seed: u64| {
        let mut rng = ir::arbitrary::Rng::new(seed);
        (0..600).map(|_| rng.below(256) as u8).collect()
    };
    (0..RANDOM).map(history).collect()
}
