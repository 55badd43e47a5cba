//! Records about settings, quotas, producer ids, access rules and credentials.

use bytes::Bytes;

use crate::schema::messages;
use crate::{Str, Uuid};

messages! {
    /// One setting of a resource was set, or removed by null.
    pub struct ConfigRecord [versions 0..=0, flexible 0..] {
        /// 2 topic, 4 broker (an empty name: all brokers).
        resource_type: i8 [0..],
        resource_name: Str [0..],
        name: Str [0..],
        /// Null removes the setting.
        value: Option<Str> [0.., nullable 0.., default = Some(Str::default())],
    }

    /// A client quota was set or removed.
    pub struct ClientQuotaRecord [versions 0..=0, flexible 0..] {
        entity: Vec<EntityData> [0..],
        key: Str [0..],
        value: f64 [0..],
        remove: bool [0..],
    }

    /// See [`ClientQuotaRecord`].
    pub struct EntityData {
        entity_type: Str [0..],
        entity_name: Option<Str> [0.., nullable 0.., default = Some(Str::default())],
    }

    /// Producer ids below this one are given out.
    pub struct ProducerIdsRecord [versions 0..=0, flexible 0..] {
        broker_id: i32 [0..],
        broker_epoch: i64 [0.., default = -1],
        /// The first id that is not given out.
        next_producer_id: i64 [0..],
    }

    /// An access rule was created.
    pub struct AccessControlEntryRecord [versions 0..=0, flexible 0..] {
        id: Uuid [0..],
        resource_type: i8 [0..],
        resource_name: Str [0..],
        pattern_type: i8 [0..],
        principal: Str [0..],
        host: Str [0..],
        operation: i8 [0..],
        permission_type: i8 [0..],
    }

    /// An access rule was deleted.
    pub struct RemoveAccessControlEntryRecord [versions 0..=0, flexible 0..] {
        id: Uuid [0..],
    }

    /// A SCRAM credential was set.
    pub struct UserScramCredentialRecord [versions 0..=0, flexible 0..] {
        name: Str [0..],
        mechanism: i8 [0..],
        salt: Bytes [0..],
        stored_key: Bytes [0..],
        server_key: Bytes [0..],
        iterations: i32 [0..],
    }

    /// A SCRAM credential was removed.
    pub struct RemoveUserScramCredentialRecord [versions 0..=0, flexible 0..] {
        name: Str [0..],
        mechanism: i8 [0..],
    }

    /// A delegation token was created or renewed.
    pub struct DelegationTokenRecord [versions 0..=0, flexible 0..] {
        owner: Str [0..],
        requester: Str [0..],
        renewers: Vec<Str> [0..],
        issue_timestamp: i64 [0..],
        max_timestamp: i64 [0..],
        expiration_timestamp: i64 [0..],
        token_id: Str [0..],
    }

    /// A delegation token was removed.
    pub struct RemoveDelegationTokenRecord [versions 0..=0, flexible 0..] {
        token_id: Str [0..],
    }
}
