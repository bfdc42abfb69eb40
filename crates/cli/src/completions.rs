//! `aclshim completions`: for the shell, and man pages.

use anyhow::{Context, Result, bail};
use clap::builder::PossibleValue;
use clap::{CommandFactory, ValueEnum};
use clap_complete::Shell;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `aclshim completions`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  aclshim completions bash > ~/.local/share/bash-completion/completions/aclshim\n  aclshim completions zsh > ~/.zfunc/_aclshim\n  aclshim completions man ~/.local/share/man/man1"
)]
pub struct Arguments {
    /// The shell whose completions are printed; or man: pages for the command and each of its subcommands
    #[arg(value_name = "SHELL|man", value_parser = kinds())]
    what: String,
    /// The folder for the man pages; it is made if need be
    #[arg(value_name = "DIR", required_if_eq("what", "man"))]
    dir: Option<PathBuf>,
}

fn kinds() -> Vec<PossibleValue> {
    let shells = Shell::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    shells.chain([PossibleValue::new("man")]).collect()
}

/// Prints the completions, or writes the pages.
pub fn main(arguments: Arguments) -> Result<ExitCode> {
    let mut command = crate::Arguments::command();
    match (Shell::from_str(&arguments.what, true), arguments.dir) {
        (Ok(_), Some(dir)) => bail!("{}: completions are printed; only man pages take a folder", dir.display()),
        (Ok(shell), None) => clap_complete::generate(shell, &mut command, "aclshim", &mut std::io::stdout()),
        (Err(_), dir) => {
            let dir = dir.context("a folder for the man pages")?;
            let wrong = || dir.display().to_string();
            std::fs::create_dir_all(&dir).with_context(wrong)?;
            clap_mangen::generate_to(command, &dir).with_context(wrong)?;
            println!("{}: man pages; read one with: man {0}/aclshim-run.1", dir.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}
