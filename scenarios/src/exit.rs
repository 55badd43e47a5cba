//! How a command ends: the exit codes that schedulers read, and the failure that carries one with its message.

/// What the process tells whoever started it (the numbers are part of the command line's contract).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// Everything that was asked for ran and held.
    Held = 0,
    /// A contract was broken, or an outcome occurred that the scenario's `[expect] gate` names.
    Broken = 1,
    /// Bad usage or configuration.
    Usage = 2,
    /// Too little ran, or what had to be seen was not, or a checker could not say.
    Inconclusive = 3,
    NothingSelected = 4,
    /// One seed gave two different runs.
    Nondeterministic = 5,
    /// The canary passed: the detector is broken.
    CanaryPassed = 6,
    Internal = 70,
    InputOutput = 74,
    Interrupted = 130,
    Terminated = 143,
}

impl Exit {
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The word in a campaign's summary.
    pub fn word(self) -> &'static str {
        match self {
            Exit::Held => "pass",
            Exit::Broken => "violated",
            Exit::Usage => "usage",
            Exit::Inconclusive => "inconclusive",
            Exit::NothingSelected => "nothing-selected",
            Exit::Nondeterministic => "nondeterministic",
            Exit::CanaryPassed => "broken-canary",
            Exit::Internal => "internal-error",
            Exit::InputOutput => "input-output-error",
            Exit::Interrupted => "interrupted",
            Exit::Terminated => "terminated",
        }
    }
}

/// Why a command could not do what it was asked to do. `text` follows "failed to"-free plain words.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct Failure {
    pub exit: Exit,
    pub text: String,
}

impl Failure {
    pub fn usage(text: impl Into<String>) -> Failure {
        Failure { exit: Exit::Usage, text: text.into() }
    }

    pub fn internal(text: impl Into<String>) -> Failure {
        Failure { exit: Exit::Internal, text: text.into() }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure { exit: Exit::InputOutput, text: format!("failed to write the results: {error}") }
    }
}

impl From<crate::scenario::ScenarioError> for Failure {
    fn from(error: crate::scenario::ScenarioError) -> Failure {
        Failure::usage(format!("failed to {error}"))
    }
}
