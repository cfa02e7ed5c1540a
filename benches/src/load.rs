//! Load generator with little overhead: persistent connections, prebuilt requests, and responses
//! read by their length.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Failure;

/// Builds a GET of `path` with these headers.
pub fn get(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    request(address, "GET", path, headers, &[])
}

/// Builds a request with a body.
pub fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("content-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// A persistent connection.
pub struct LoadConnection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// Status, headers and body of a response.
pub struct HttpAnswer {
    pub status: u16,
    /// Status line and headers.
    pub head: String,
    pub body: Vec<u8>,
}

impl LoadConnection {
    pub async fn open(address: SocketAddr) -> Result<Self, Failure> {
        Self::over(TcpStream::connect(address).await?)
    }

    pub fn over(stream: TcpStream) -> Result<Self, Failure> {
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::new(),
        })
    }

    /// Sends a request and reads the response.
    pub async fn ask(&mut self, request: &[u8]) -> Result<HttpAnswer, Failure> {
        self.stream.write_all(request).await?;
        let head = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end + 4;
            }
            self.read().await?;
        };
        let written = String::from_utf8_lossy(&self.buffer[..head]).into_owned();
        let text = written.to_ascii_lowercase();
        let status = text.get(9..12).ok_or("no status")?.parse()?;

        let length: usize = text
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .ok_or("an answer without a length")?
            .trim()
            .parse()?;
        while self.buffer.len() < head + length {
            self.read().await?;
        }

        let body = self.buffer[head..head + length].to_vec();
        self.buffer.drain(..head + length);
        Ok(HttpAnswer {
            status,
            head: written,
            body,
        })
    }

    async fn read(&mut self) -> Result<(), Failure> {
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            return Err("the server closed the connection".into());
        }
        Ok(())
    }
}

/// Returns the body that signs with the text about electronic records that a signing form shows.
pub fn signing_body(form: &[u8]) -> Result<Vec<u8>, Failure> {
    let form = String::from_utf8_lossy(form);
    let control = form.split("name=\"consent\" value=\"").nth(1);
    let consent = control.and_then(|rest| rest.split('"').next());
    let consent = consent.ok_or("the form has no consent")?;
    Ok(format!("Signature=Jo&consent={consent}&action=finish").into_bytes())
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len())
        .position(|window| window == wanted)
}

/// Sends requests over `connections` for the duration `time`, each connection taking the next of
/// `requests` in turn, and returns the response times. Any status but `expected` is a failure.
pub async fn run(
    address: SocketAddr,
    requests: &[Vec<u8>],
    connections: usize,
    time: Duration,
    expected: u16,
) -> Result<Vec<Duration>, Failure> {
    let requests: std::sync::Arc<[Vec<u8>]> = requests.into();
    let end = Instant::now() + time;
    let tasks: Vec<_> = (0..connections)
        .map(|first| {
            let requests = requests.clone();
            tokio::spawn(async move {
                let mut connection = LoadConnection::open(address).await?;
                let mut times = Vec::new();
                let mut next = first;
                while Instant::now() < end {
                    let asked = Instant::now();
                    let answer = connection.ask(&requests[next % requests.len()]).await?;
                    times.push(asked.elapsed());
                    if answer.status != expected {
                        let text = String::from_utf8_lossy(&answer.body).into_owned();
                        return Err(format!("{}: {text}", answer.status).into());
                    }

                    next += connections;
                }

                Ok::<_, Failure>(times)
            })
        })
        .collect();

    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await??);
    }

    Ok(all)
}
