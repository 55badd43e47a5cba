//! What the nodes hold of the network: listeners and byte streams.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use acked_env::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::world::host::Host;
use crate::world::shared::Shared;

/// One end of a connection. Dropping it closes the end: FIN, or RST when something arrived that was never read.
pub struct SimStream {
    shared: Arc<Shared>,
    connection: u32,
    end: usize,
}

impl SimStream {
    pub(in crate::world) async fn connect(
        shared: &Arc<Shared>,
        host: Host,
        name: &str,
        port: u16,
    ) -> io::Result<SimStream> {
        let connection = shared.with(|kernel| {
            let (network, mut around) = kernel.network();
            let to = network.resolve(name)?;
            Some(network.connect(host, to, port, &mut around))
        });
        let connection = connection
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no host is called {name}")))?;
        // The stream exists from here on, so that a caller who stops waiting closes the attempt.
        let stream = SimStream { shared: Arc::clone(shared), connection, end: 0 };
        poll_fn(|context| shared.lock().network.poll_connected(connection, context.waker())).await?;
        Ok(stream)
    }
}

impl AsyncRead for SimStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut kernel = self.shared.lock();
        let (network, mut around) = kernel.network();
        let unfilled = buffer.initialize_unfilled();
        if unfilled.is_empty() {
            return Poll::Ready(Ok(()));
        }
        match network.read(self.connection, self.end, unfilled, context.waker(), &mut around) {
            Poll::Ready(Ok(size)) => {
                buffer.advance(size);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncWrite for SimStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut kernel = self.shared.lock();
        let (network, mut around) = kernel.network();
        network.write(self.connection, self.end, bytes, context.waker(), &mut around)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut kernel = self.shared.lock();
        let (network, mut around) = kernel.network();
        Poll::Ready(network.shutdown(self.connection, self.end, &mut around))
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        self.shared.with(|kernel| {
            let (network, mut around) = kernel.network();
            network.release(self.connection, self.end, &mut around);
        });
    }
}

/// Accepts connections on one port of a machine until dropped.
pub struct SimListener {
    shared: Arc<Shared>,
    host: Host,
    port: u16,
    token: u64,
}

impl SimListener {
    pub(in crate::world) fn bind(
        shared: &Arc<Shared>,
        host: Host,
        address: SocketAddr,
    ) -> io::Result<SimListener> {
        let (port, token) = shared.lock().network.listen(host, address)?;
        Ok(SimListener { shared: Arc::clone(shared), host, port, token })
    }
}

impl Listener for SimListener {
    type Stream = SimStream;

    fn local_address(&self) -> SocketAddr {
        SocketAddr::new(self.shared.lock().network.address(self.host), self.port)
    }

    async fn accept(&mut self) -> io::Result<(SimStream, SocketAddr)> {
        let key = (self.port, self.token);
        let accepted =
            poll_fn(|context| self.shared.lock().network.accept(self.host, key, context.waker())).await;
        let (connection, peer) = accepted?;
        Ok((SimStream { shared: Arc::clone(&self.shared), connection, end: 1 }, peer))
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        self.shared.with(|kernel| {
            let (network, mut around) = kernel.network();
            network.stop_listening(self.host, (self.port, self.token), &mut around);
        });
    }
}
