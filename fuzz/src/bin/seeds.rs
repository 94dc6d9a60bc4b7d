//! `seeds TARGET DIRECTORY`: writes the inputs to start from.

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let (Some(target), Some(directory)) = (args.next(), args.next().map(PathBuf::from)) else {
        eprintln!("usage: seeds TARGET DIRECTORY");
        return ExitCode::from(2);
    };
    let seeds = targets::seeds::seeds(&target);
    let written = std::fs::create_dir_all(&directory).and_then(|()| {
        let mut files = (0..)
            .map(|i| directory.join(format!("seed-{i:04}")))
            .zip(&seeds);
        files.try_for_each(|(path, seed)| std::fs::write(path, seed))
    });
    match written {
        Ok(()) => {
            println!("{target}: {} seeds", seeds.len());
            ExitCode::from(u8::from(seeds.is_empty()))
        }
        Err(error) => {
            eprintln!("{}: {error}", directory.display());
            ExitCode::FAILURE
        }
    }
}
