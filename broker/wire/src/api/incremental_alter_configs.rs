//! IncrementalAlterConfigs (key 44): settings of topics and brokers are changed one by one (KIP-339).

use crate::Str;
use crate::schema::messages;

messages! {
    /// Asks for settings to be changed; those that are not named stay.
    pub struct IncrementalAlterConfigsRequest [versions 0..=1, flexible 1..] {
        resources: Vec<AlterConfigsResource> [0..],
        validate_only: bool [0..],
    }

    /// See [`IncrementalAlterConfigsRequest`].
    pub struct AlterConfigsResource {
        /// 2 topic, 4 broker, 8 logger of a broker, 16 client metrics, 32 group.
        resource_type: i8 [0..],
        /// Empty for the default of all brokers.
        resource_name: Str [0..],
        configs: Vec<AlterableConfig> [0..],
    }

    /// See [`AlterConfigsResource`].
    pub struct AlterableConfig {
        name: Str [0..],
        /// 0 set, 1 delete, 2 append to a list, 3 subtract from a list.
        config_operation: i8 [0..],
        value: Option<Str> [0.., nullable 0.., default = Some(Str::default())],
    }

    /// Answer to [`IncrementalAlterConfigsRequest`].
    pub struct IncrementalAlterConfigsResponse [versions 0..=1, flexible 1..] {
        throttle_time_ms: i32 [0..],
        responses: Vec<AlterConfigsResourceResponse> [0..],
    }

    /// See [`IncrementalAlterConfigsResponse`].
    pub struct AlterConfigsResourceResponse {
        error_code: i16 [0..],
        error_message: Option<Str> [0.., nullable 0.., default = Some(Str::default())],
        resource_type: i8 [0..],
        resource_name: Str [0..],
    }
}
