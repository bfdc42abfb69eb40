//! A second thread that does one piece of work at a time while the first one waits.

use std::sync::mpsc::{Receiver, Sender, channel};

type Work = Box<dyn FnOnce() + Send>;

/// The thread; it ends with the process.
pub struct Worker {
    work: Sender<Work>,
    done: Receiver<()>,
}

impl Worker {
    pub fn start() -> Self {
        let (work, queue) = channel::<Work>();
        let (finished, done) = channel();
        std::thread::spawn(move || {
            while let Ok(work) = queue.recv() {
                work();
                if finished.send(()).is_err() {
                    return;
                }
            }
        });
        Self { work, done }
    }

    /// Does the work there, and waits for its result.
    pub fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (result, answer) = channel();
        let work = move || {
            let _ = result.send(work());
        };
        self.work.send(Box::new(work)).expect("the other thread lives");
        self.done.recv().expect("the other thread lives");
        answer.recv().expect("a result")
    }
}
