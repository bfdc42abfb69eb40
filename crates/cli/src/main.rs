//! The `aclshim` command.

mod collect;
mod dropin;
mod findings;
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
    /// Say what was recorded: calls, bytes and durations by function
    #[command(
        after_help = "Examples:\n  aclshim stat aclshim-out\n  aclshim stat --json /dev/shm/aclshim-1234-17f0c0de.ring"
    )]
    Stat {
        /// One JSON object instead of a table
        #[arg(long)]
        json: bool,
        /// An ACLSHIM_DIR (running and ended processes that named it are found in the ring directory), a trace or a ring file
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Say which calls break a rule, why, and what to do about it
    #[command(
        after_help = "Examples:\n  aclshim findings aclshim-out\n  aclshim findings --baseline aclshim-out > known.txt\n  ACLSHIM_BASELINE=known.txt ..."
    )]
    Findings {
        /// One JSON object a line
        #[arg(long)]
        json: bool,
        /// As a file of known findings for ACLSHIM_BASELINE
        #[arg(long, conflicts_with = "json")]
        baseline: bool,
        /// As for `stat`
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// List the rules
    Rules {
        /// One JSON array
        #[arg(long)]
        json: bool,
    },
    /// Write the records of all running and ended programs to their files, from outside
    #[command(
        after_help = "Example:\n  aclshim collect &\n  LD_PRELOAD=/path/to/libaclshim.so ACLSHIM_DRAIN=outside ACLSHIM_DIR=out program"
    )]
    Collect {
        /// Stop when everything that is there now has been written
        #[arg(long)]
        once: bool,
        /// The programs' ACLSHIM_RING_DIR
        #[arg(default_value = "/dev/shm", value_name = "RING_DIR")]
        folder: PathBuf,
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
    // A reader that has seen enough ends us, as it ends any other command. (Rust ignores the signal, and panics instead.)
    // SAFETY: nothing else runs yet.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let outcome = match Arguments::parse().command {
        Command::Stat { json, paths } => {
            stat::stat(&paths, if json { stat::Format::Json } else { stat::Format::Table })
        }
        Command::Findings { json, baseline, paths } => findings::findings(
            &paths,
            match (json, baseline) {
                (true, _) => findings::Print::Json,
                (_, true) => findings::Print::Baseline,
                _ => findings::Print::Text,
            },
        ),
        Command::Rules { json } => findings::rules(if json { stat::Format::Json } else { stat::Format::Table }),
        Command::Collect { once, folder } => {
            collect::collect(&folder, if once { collect::Until::Once } else { collect::Until::Ended })
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
