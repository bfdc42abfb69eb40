//! The `aclshim` command.

mod dropin;
mod stat;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// See what an unmodified program copies to and from an Ascend device.
#[derive(Parser)]
#[command(
    version,
    about,
    after_help = "A first look:\n  LD_PRELOAD=/path/to/libaclshim.so ACLSHIM_DIR=out program\n  aclshim stat out"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Say what was counted: calls and bytes by function
    #[command(
        after_help = "Examples:\n  aclshim stat aclshim-out\n  aclshim stat --json /dev/shm/aclshim-1234-17f0c0de.ring"
    )]
    Stat {
        /// One JSON object instead of a table
        #[arg(long)]
        json: bool,
        /// An ACLSHIM_DIR (running and ended processes that named it are found in the ring directory), or a ring file
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Write a libascendcl.so that brings the shim along, for programs that cannot be preloaded
    #[command(
        after_help = "Example:\n  aclshim dropin /opt/aclshim/dropin\n  LD_LIBRARY_PATH=/opt/aclshim/dropin:$LD_LIBRARY_PATH program"
    )]
    Dropin {
        /// The folder to write to; it goes first on LD_LIBRARY_PATH
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        /// The real libascendcl.so; by default the one under $ASCEND_HOME_PATH/lib64 or on LD_LIBRARY_PATH
        #[arg(long, value_name = "PATH")]
        real: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Stat { json, paths } => {
            stat::stat(&paths, if json { stat::Format::Json } else { stat::Format::Table })
        }
        Command::Dropin { dir, real } => dropin::dropin(&dir, real.as_deref()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("aclshim: {error:#}");
            ExitCode::FAILURE
        }
    }
}
