//! `aclshim collect`: drains the rings of all processes of a machine from outside, as a service.
//!
//! | | |
//! |---|---|
//! | [`supervisor`] | starts a worker for each user who has rings, and adds up their reports |
//! | [`worker_process`], [`user_rights`] | a worker as the supervisor sees it, and the rights that it has |
//! | [`worker`] | drains the rings of one user, with that user's rights and no others |
//! | [`metrics`] | what is counted, and the formats of metrics |
//! | [`exposition`] | where: a socket and a file |
//! | [`diagnostics`] | messages, on standard error and in a log |
//! | [`server`] | answers those who connect to the socket |
//! | [`real_user`] | the real user behind a user id |
//! | [`system`] | signals, pipes and the number of descriptors |
//!
//! Supervisor and workers sleep while nothing happens: see [`drain_loop`](crate::recording::drain_loop).

mod diagnostics;
mod exposition;
mod metrics;
mod real_user;
mod server;
mod supervisor;
mod system;
pub mod user_rights;
mod worker;
mod worker_process;

use crate::recording::run::ignore_closed_pipes;
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Arguments of `aclshim collect`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  Drain all programs of this user, or as root of all users, until it is ended (SIGTERM, Ctrl-C):
    aclshim collect &
    LD_PRELOAD=/path/to/libaclshim.so ACLSHIM_DRAIN=outside ACLSHIM_DIR=$PWD/out program
  With metrics for Prometheus, asked for or through node_exporter:
    aclshim collect --metrics-socket /run/aclshim/metrics.sock
    curl --unix-socket /run/aclshim/metrics.sock http://localhost/metrics
    aclshim collect --metrics-file /var/lib/node_exporter/aclshim.prom
  Write what ended programs have left, and stop:
    aclshim collect --once")]
pub struct Arguments {
    /// Stop when everything that is there now has been written
    #[arg(long)]
    once: bool,
    /// Answer HTTP requests for /metrics on this UNIX socket, in OpenMetrics text
    #[arg(long, value_name = "PATH")]
    metrics_socket: Option<PathBuf>,
    /// Write the metrics to this file now and then, for node_exporter's textfile collector (its name must end in .prom)
    #[arg(long, value_name = "PATH")]
    metrics_file: Option<PathBuf>,
    /// How often the file is written, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "15", value_parser = seconds)]
    metrics_interval: Duration,
    /// Also write messages to files in this folder, one a day; the last 14 are kept
    #[arg(long, value_name = "DIR")]
    log_dir: Option<PathBuf>,
    /// Drain the rings of one user and tell of it on standard output
    #[arg(long, hide = true)]
    worker: bool,
    /// The programs' ACLSHIM_RING_DIR
    #[arg(default_value = "/dev/shm", value_name = "RING_DIR")]
    folder: PathBuf,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.01..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "give seconds, from 0.01 to 86400".into())
}

/// Drains what is in the folder.
pub fn main(arguments: Arguments) -> Result<ExitCode> {
    ignore_closed_pipes();
    collect(&arguments).or_else(|error| {
        diagnostics::report(format_args!("aclshim: {error:#}"));
        Ok(ExitCode::FAILURE)
    })
}

fn collect(arguments: &Arguments) -> Result<ExitCode> {
    if let Some(folder) = &arguments.log_dir {
        diagnostics::write_to(folder)?;
    }
    if !arguments.folder.is_dir() {
        bail!("{}: no such folder; it must be the ACLSHIM_RING_DIR of the programs", arguments.folder.display());
    }
    if arguments.worker { worker::main(arguments) } else { supervisor::main(arguments) }
}
