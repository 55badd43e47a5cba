//! Standard output that may be closed by its reader: that ends the writing, quietly, and is no failure of ours.

use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};

/// Whether the reader is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    Yes,
    ReaderGone,
}

pub struct Sink {
    output: BufWriter<StdoutLock<'static>>,
    gone: bool,
}

impl Sink {
    pub fn stdout() -> Sink {
        Sink { output: BufWriter::new(io::stdout().lock()), gone: false }
    }

    pub fn reader_gone(&self) -> bool {
        self.gone
    }

    /// Writes a text and flushes it, so that a reader sees every result when it is there.
    ///
    /// # Errors
    /// Every failure but a closed pipe.
    pub fn write(&mut self, text: &str) -> io::Result<Written> {
        if self.gone {
            return Ok(Written::ReaderGone);
        }
        let written = self.output.write_all(text.as_bytes()).and_then(|()| self.output.flush());
        match written {
            Ok(()) => Ok(Written::Yes),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.gone = true;
                Ok(Written::ReaderGone)
            }
            Err(error) => Err(error),
        }
    }
}
