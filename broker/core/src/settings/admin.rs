//! What an administrator is built from.

use std::time::Duration;

use super::{Scope, Settings};

/// The administrator's settings, named as Kafka names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminSettings {
    /// From the call to its answer, all tries together.
    pub default_api_timeout: Duration,
    pub request_timeout: Duration,
    /// How often a call is sent again after a lost answer or a retriable error.
    pub retries: u32,
    pub retry_backoff: Duration,
    pub retry_backoff_max: Duration,
    pub reconnect_backoff: Duration,
    pub reconnect_backoff_max: Duration,
    pub socket_connection_setup_timeout: Duration,
}

impl Default for AdminSettings {
    fn default() -> Self {
        AdminSettings::new(&Settings::default_for(Scope::Admin))
    }
}

impl AdminSettings {
    pub fn new(settings: &Settings) -> AdminSettings {
        assert_eq!(
            settings.scope(),
            Scope::Admin,
            "administrator settings come from the administrator's scope"
        );
        let retry_backoff_max = settings.duration("retry.backoff.max.ms");
        AdminSettings {
            default_api_timeout: settings.duration("default.api.timeout.ms"),
            request_timeout: settings.duration("request.timeout.ms"),
            retries: settings.number("retries"),
            retry_backoff: settings.duration("retry.backoff.ms").min(retry_backoff_max),
            retry_backoff_max,
            reconnect_backoff: settings.duration("reconnect.backoff.ms"),
            reconnect_backoff_max: settings.duration("reconnect.backoff.max.ms"),
            socket_connection_setup_timeout: settings.duration("socket.connection.setup.timeout.ms"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_kafkas() {
        let settings = AdminSettings::default();
        assert_eq!(settings.default_api_timeout, Duration::from_secs(60));
        assert_eq!(settings.request_timeout, Duration::from_secs(30));
    }
}
