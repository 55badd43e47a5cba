//! DescribeConfigs (key 32): the settings of topics and brokers, and where each value comes from (KIP-226).

use crate::Str;
use crate::schema::messages;

messages! {
    /// Asks for settings of resources.
    pub struct DescribeConfigsRequest [versions 1..=4, flexible 4..] {
        resources: Vec<DescribeConfigsResource> [0..],
        include_synonyms: bool [1..],
        include_documentation: bool [3..],
    }

    /// See [`DescribeConfigsRequest`].
    pub struct DescribeConfigsResource {
        /// 2 topic, 4 broker, 8 logger of a broker, 16 client metrics, 32 group.
        resource_type: i8 [0..],
        resource_name: Str [0..],
        /// Null for every setting.
        configuration_keys: Option<Vec<Str>> [0.., nullable 0.., default = Some(Vec::new())],
    }

    /// Answer to [`DescribeConfigsRequest`].
    pub struct DescribeConfigsResponse [versions 1..=4, flexible 4..] {
        throttle_time_ms: i32 [0..],
        results: Vec<DescribeConfigsResult> [0..],
    }

    /// See [`DescribeConfigsResponse`].
    pub struct DescribeConfigsResult {
        error_code: i16 [0..],
        error_message: Option<Str> [0.., nullable 0.., default = Some(Str::default())],
        resource_type: i8 [0..],
        resource_name: Str [0..],
        configs: Vec<DescribeConfigsResourceResult> [0..],
    }

    /// See [`DescribeConfigsResult`].
    pub struct DescribeConfigsResourceResult {
        name: Str [0..],
        /// Null for sensitive settings, and for those without a value.
        value: Option<Str> [0.., nullable 0.., default = Some(Str::default())],
        read_only: bool [0..],
        /// 1 topic, 2 one broker, 3 all brokers, 4 the broker's file, 5 default, 6 logger of a broker, 7
        /// client metrics, 8 group; -1 not known.
        config_source: i8 [1.., default = -1; ignorable],
        is_sensitive: bool [0..],
        /// The values that would count, the one that does first.
        synonyms: Vec<DescribeConfigsSynonym> [1..; ignorable],
        /// 1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password; 0 not known.
        config_type: i8 [3..; ignorable],
        documentation: Option<Str> [3.., nullable 0.., default = Some(Str::default()); ignorable],
    }

    /// See [`DescribeConfigsResourceResult`].
    pub struct DescribeConfigsSynonym {
        name: Str [1..],
        value: Option<Str> [1.., nullable 0.., default = Some(Str::default())],
        /// As `config_source`.
        source: i8 [1..],
    }
}
