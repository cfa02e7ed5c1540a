//! A TCP proxy between a node and a dependency that simulates a broken, slow or silent network.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Behaviour of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkCondition {
    Good,
    /// Connections break, and new ones are refused.
    Cut,
    /// Nothing arrives, and neither end notices.
    Silent,
    /// Each piece of data arrives after this delay.
    Slow(Duration),
    /// Connections break after this number of bytes.
    Short(usize),
}

/// A running proxy.
pub struct FaultyProxy {
    pub address: SocketAddr,
    network: watch::Sender<NetworkCondition>,
}

impl FaultyProxy {
    /// Starts a proxy for the server at `to`, as `host:port`.
    pub async fn start(to: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (network, told) = watch::channel(NetworkCondition::Good);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                // Dropping the accepted socket closes it.
                if *told.borrow() == NetworkCondition::Cut {
                    continue;
                }

                if let Ok(far) = TcpStream::connect(&to).await {
                    let (near_in, near_out) = near.into_split();
                    let (far_in, far_out) = far.into_split();
                    tokio::spawn(pass(near_in, far_out, told.clone()));
                    tokio::spawn(pass(far_in, near_out, told.clone()));
                }
            }
        });

        Self { address, network }
    }

    pub fn become_(&self, network: NetworkCondition) {
        self.network.send(network).unwrap();
    }
}

/// Forwards one direction of a connection until the network is cut.
async fn pass(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut told: watch::Receiver<NetworkCondition>,
) {
    let mut piece = vec![0; 64 * 1024];
    let mut passed = 0;
    loop {
        let network = *told.borrow_and_update();
        match network {
            NetworkCondition::Cut => return,
            NetworkCondition::Silent => {
                if told.changed().await.is_err() {
                    return;
                }
                continue;
            }
            _ => {}
        }

        let length = tokio::select! {
            changed = told.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return,
            },
            read = from.read(&mut piece) => match read {
                Ok(length) if length > 0 => length,
                _ => return,
            },
        };

        if let NetworkCondition::Slow(time) = network {
            tokio::time::sleep(time).await;
        }

        passed += length;
        if matches!(network, NetworkCondition::Short(most) if passed > most) {
            return;
        }

        // Data that was read before the network fell silent still arrives.
        if to.write_all(&piece[..length]).await.is_err() {
            return;
        }
    }
}
