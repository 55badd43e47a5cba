//! TCP. Small frames leave at once: nothing here waits to fill a packet.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpStream};

use crate::Listener;

/// A bound TCP socket.
#[derive(Debug)]
pub struct TokioListener {
    listener: TcpListener,
    address: SocketAddr,
}

impl TokioListener {
    pub(super) async fn bind(address: SocketAddr) -> io::Result<TokioListener> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(TokioListener { listener, address })
    }
}

impl Listener for TokioListener {
    type Stream = TcpStream;

    fn local_address(&self) -> SocketAddr {
        self.address
    }

    async fn accept(&mut self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = self.listener.accept().await?;
        stream.set_nodelay(true)?;
        Ok((stream, peer))
    }
}

/// Resolves the name and tries its addresses one after the other.
pub(super) async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::runtime::Builder;

    use super::*;
    use crate::{Env, TokioEnv};

    fn env() -> TokioEnv {
        TokioEnv::new("unused", Some(0)).expect("a seed needs no entropy")
    }

    #[test]
    fn bytes_travel_both_ways_without_delay() {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let mut listener = env().listen((Ipv4Addr::LOCALHOST, 0).into()).await.expect("a free port");
            let port = listener.local_address().port();
            assert_ne!(port, 0, "the real port is told");
            env().spawn("echo", async move {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                assert!(stream.nodelay().expect("an open socket"));
                let mut bytes = [0; 4];
                stream.read_exact(&mut bytes).await.expect("four bytes");
                stream.write_all(&bytes).await.expect("an open peer");
            });
            let mut stream = env().connect("localhost", port).await.expect("a listening port");
            assert!(stream.nodelay().expect("an open socket"));
            stream.write_all(b"ping").await.expect("an open peer");
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.expect("an orderly end");
            assert_eq!(answer, b"ping");
        });
    }

    #[test]
    fn closed_port_and_unknown_name_are_errors() {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = env().listen((Ipv4Addr::LOCALHOST, 0).into()).await.expect("a free port");
            let port = listener.local_address().port();
            drop(listener);
            let error = env().connect("127.0.0.1", port).await.expect_err("nobody listens");
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
            assert!(env().connect("no such name", port).await.is_err());
        });
    }
}
