//! HTTP server for the metrics on a UNIX socket: one thread, no call of it blocks.
//!
//! Every user may connect, so the number of connections is bounded and each has a deadline. When all places are taken, a
//! new connection takes the place of another one: the oldest of the user who has the most. So connections that send
//! nothing, or do not read their answer, can keep no other user from being answered, and another client of that
//! user is answered if it asks before as many others have connected.

use super::metrics::{Metrics, MetricsFormat};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of connections at a time.
const MOST: usize = 64;
/// Connections accepted before those that are open are looked at again: a client that was accepted must have the time
/// to ask, also while others connect without pause.
const ACCEPTS: usize = 8;
/// How long a connection may neither send nor take anything.
const IDLE: Duration = Duration::from_secs(5);
/// How long a request may take, from the connection to its last byte.
const REQUEST: Duration = Duration::from_secs(5);
/// How long a connection may take in all.
const TOTAL: Duration = Duration::from_secs(30);
/// Maximum length of a request in bytes.
const LONGEST: usize = 16 * 1024;
/// The pause after the system had no descriptor for a connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers all who connect, for ever.
pub fn serve(listener: &UnixListener, metrics: &Arc<Mutex<Metrics>>) {
    let mut connections: Vec<Connection> = Vec::new();
    loop {
        let mut asked = vec![libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 }];
        asked.extend(connections.iter().map(Connection::poll));
        let now = Instant::now();
        let next = connections.iter().map(|one| one.deadline().saturating_duration_since(now)).min();
        // Rounded up: with 0 it would be asked again and again until the deadline.
        let timeout = next.map_or(-1, |next| next.as_millis() as libc::c_int + 1);
        // SAFETY: a list of that length.
        unsafe { libc::poll(asked.as_mut_ptr(), asked.len() as libc::nfds_t, timeout) };
        let now = Instant::now();
        let mut ready = asked.iter().skip(1).map(|one| one.revents != 0);
        connections.retain_mut(|one| {
            let is_ready = ready.next() == Some(true);
            (!is_ready || one.advance(metrics) == ConnectionState::Open) && now < one.deadline()
        });
        if asked[0].revents != 0 {
            accept(listener, &mut connections);
        }
    }
}

fn accept(listener: &UnixListener, connections: &mut Vec<Connection>) {
    for _ in 0..ACCEPTS {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(_) => {
                // No descriptor is free, most likely.
                std::thread::sleep(PAUSE);
                return;
            }
        };
        let Ok(connection) = Connection::new(stream) else { continue };
        connections.push(connection);
        if connections.len() > MOST {
            let oldest = oldest_of_largest_user(connections.iter().map(|one| one.user));
            connections.remove(oldest);
        }
    }
}

/// The position of the oldest connection of the user who has the most; `users` are in the order in which they connected.
fn oldest_of_largest_user(users: impl Iterator<Item = u32> + Clone) -> usize {
    let mut counts = BTreeMap::<u32, usize>::new();
    users.clone().for_each(|user| *counts.entry(user).or_default() += 1);
    let greediest = counts.into_iter().max_by_key(|(_, count)| *count).map(|(user, _)| user);
    users.map(Some).position(|user| user == greediest).unwrap_or(0)
}

/// Whether a connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionState {
    Open,
    Done,
}

/// A client that is being answered.
struct Connection {
    stream: UnixStream,
    user: u32,
    begin: Instant,
    /// When it last sent or took something.
    moved: Instant,
    request: Vec<u8>,
    /// The answer, as soon as the request is whole, and how much of it has been sent.
    answer: Option<(Vec<u8>, usize)>,
}

impl Connection {
    fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let (user, now) = (user(&stream)?, Instant::now());
        Ok(Self { stream, user, begin: now, moved: now, request: Vec::new(), answer: None })
    }

    fn poll(&self) -> libc::pollfd {
        let events = if self.answer.is_some() { libc::POLLOUT } else { libc::POLLIN };
        libc::pollfd { fd: self.stream.as_raw_fd(), events, revents: 0 }
    }

    /// When it is closed, if nothing happens until then.
    fn deadline(&self) -> Instant {
        let whole = if self.answer.is_some() { TOTAL } else { REQUEST };
        (self.begin + whole).min(self.moved + IDLE)
    }

    /// Reads what there is of the request, or sends what is taken of the answer.
    fn advance(&mut self, metrics: &Mutex<Metrics>) -> ConnectionState {
        match self.try_advance(metrics) {
            Ok(state) => state,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                ConnectionState::Open
            }
            Err(_) => ConnectionState::Done,
        }
    }

    fn try_advance(&mut self, metrics: &Mutex<Metrics>) -> io::Result<ConnectionState> {
        if self.answer.is_none() {
            let mut buffer = [0; 1024];
            let read = self.stream.read(&mut buffer)?;
            self.moved = Instant::now();
            self.request.extend(&buffer[..read]);
            let is_whole = self.request.windows(4).any(|end| end == b"\r\n\r\n");
            if !is_whole && read > 0 && self.request.len() < LONGEST {
                return Ok(ConnectionState::Open);
            }
            self.answer = Some((answer(&self.request, metrics), 0));
        }
        let Some((answer, sent)) = &mut self.answer else { return Ok(ConnectionState::Open) };
        *sent += self.stream.write(&answer[*sent..])?;
        self.moved = Instant::now();
        Ok(if *sent == answer.len() { ConnectionState::Done } else { ConnectionState::Open })
    }
}

/// The user at the other end.
fn user(stream: &UnixStream) -> io::Result<u32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: an open socket, and a value of that length, which the system fills.
    let asked = unsafe {
        let into = (&raw mut peer).cast();
        libc::getsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, into, &mut length)
    };
    if asked == 0 { Ok(peer.uid) } else { Err(io::Error::last_os_error()) }
}

/// The answer to a request of HTTP 1.
fn answer(request: &[u8], metrics: &Mutex<Metrics>) -> Vec<u8> {
    let line = request.split(|&byte| byte == b'\r' || byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default();
    let (status, content, body) = match (method, path) {
        ("GET" | "HEAD", "/metrics") => {
            let body = metrics.lock().unwrap_or_else(PoisonError::into_inner).render(MetricsFormat::OpenMetrics);
            ("200 OK", "application/openmetrics-text; version=1.0.0; charset=utf-8", body)
        }
        ("GET" | "HEAD", _) => ("404 Not Found", "text/plain", "Ask for /metrics.\n".to_owned()),
        _ => ("405 Method Not Allowed", "text/plain", "Ask by GET.\n".to_owned()),
    };
    let length = body.len();
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    if method != "HEAD" {
        answer.push_str(&body);
    }
    answer.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::oldest_of_largest_user;

    #[test]
    fn the_oldest_connection_of_the_user_who_has_most_makes_room() {
        let of = |users: &[u32]| oldest_of_largest_user(users.iter().copied());
        assert_eq!(of(&[1, 2, 3, 2]), 1);
        assert_eq!(of(&[7, 7, 7]), 0);
        assert_eq!(of(&[0, 5, 5, 9, 5, 0]), 1);
    }
}
