//! Records about brokers and controllers: registrations, fencing, features.

use crate::schema::messages;
use crate::{Str, Uuid};

messages! {
    /// A broker registered an incarnation.
    pub struct RegisterBrokerRecord [versions 0..=4, flexible 0..] {
        broker_id: i32 [0..],
        is_migrating_zk_broker: bool [2..],
        incarnation_id: Uuid [0..],
        broker_epoch: i64 [0..],
        end_points: Vec<BrokerEndpoint> [0..],
        features: Vec<BrokerFeature> [0..],
        rack: Option<Str> [0.., nullable 0.., default = Some(Str::default())],
        fenced: bool [0.., default = true],
        in_controlled_shutdown: bool [1..],
        log_dirs: Vec<Uuid> [3.., tag 0],
        cordoned_log_dirs: Option<Vec<Uuid>> [4.., nullable 4.., tag 1],
    }

    /// See [`RegisterBrokerRecord`].
    pub struct BrokerEndpoint {
        name: Str [0..],
        host: Str [0..],
        port: u16 [0..],
        security_protocol: i16 [0..],
    }

    /// See [`RegisterBrokerRecord`].
    pub struct BrokerFeature {
        name: Str [0..],
        min_supported_version: i16 [0..],
        max_supported_version: i16 [0..],
    }

    /// A broker was removed for good.
    pub struct UnregisterBrokerRecord [versions 0..=0, flexible 0..] {
        broker_id: i32 [0..],
        broker_epoch: i64 [0..],
    }

    /// A broker was fenced (older metadata versions).
    pub struct FenceBrokerRecord [versions 0..=0, flexible 0..] {
        id: i32 [0..],
        epoch: i64 [0..],
    }

    /// A broker was unfenced (older metadata versions).
    pub struct UnfenceBrokerRecord [versions 0..=0, flexible 0..] {
        id: i32 [0..],
        epoch: i64 [0..],
    }

    /// Fencing, shutdown state or directories of a broker changed.
    pub struct BrokerRegistrationChangeRecord [versions 0..=3, flexible 0..] {
        broker_id: i32 [0..],
        broker_epoch: i64 [0..],
        /// -1 unfenced, 0 no change, 1 fenced.
        fenced: i8 [0.., tag 0],
        /// 0 no change, 1 stopping.
        in_controlled_shutdown: i8 [1.., tag 1],
        log_dirs: Vec<Uuid> [2.., tag 2],
        cordoned_log_dirs: Option<Vec<Uuid>> [3.., nullable 3.., tag 3],
    }

    /// A controller registered an incarnation.
    pub struct RegisterControllerRecord [versions 0..=0, flexible 0..] {
        controller_id: i32 [0..],
        incarnation_id: Uuid [0..],
        zk_migration_ready: bool [0..],
        end_points: Vec<ControllerEndpoint> [0..],
        features: Vec<ControllerFeature> [0..],
    }

    /// See [`RegisterControllerRecord`].
    pub struct ControllerEndpoint {
        name: Str [0..],
        host: Str [0..],
        port: u16 [0..],
        security_protocol: i16 [0..],
    }

    /// See [`RegisterControllerRecord`].
    pub struct ControllerFeature {
        name: Str [0..],
        min_supported_version: i16 [0..],
        max_supported_version: i16 [0..],
    }

    /// A feature was finalized at a level.
    pub struct FeatureLevelRecord [versions 0..=0, flexible 0..] {
        name: Str [0..],
        /// 0 for off.
        feature_level: i16 [0..],
    }

    /// State of a migration from ZooKeeper (older clusters).
    pub struct ZkMigrationStateRecord [versions 0..=0, flexible 0..] {
        zk_migration_state: i8 [0..],
    }
}
