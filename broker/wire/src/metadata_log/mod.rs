//! Records of the metadata log (`__cluster_metadata`): what the controller decided.
//!
//! A record's value is a frame version (1), the record's key and its version, each a variable-length integer,
//! then the message in flexible encoding. The record's key in the batch is null.

mod log;
mod nodes;
mod settings;
mod topics;

use bytes::{Buf, Bytes, BytesMut};

use crate::schema::reader::Reader;
use crate::schema::sink::Sink;
use crate::{Message, WireError};

pub use log::*;
pub use nodes::*;
pub use settings::*;
pub use topics::*;

/// The one version of the frame around a metadata record.
const FRAME_VERSION: u32 = 1;

macro_rules! metadata_records {
    ($($variant:ident = $key:literal, $record:ident;)*) => {
        /// Any record of the metadata log.
        #[derive(Clone, Debug, PartialEq)]
        pub enum MetadataRecord {
            $($variant($record),)*
        }

        $(
            impl From<$record> for MetadataRecord {
                fn from(record: $record) -> MetadataRecord {
                    MetadataRecord::$variant(record)
                }
            }
        )*

        impl MetadataRecord {
            /// Number of the record type.
            pub fn key(&self) -> u32 {
                match self {
                    $(MetadataRecord::$variant(_) => $key,)*
                }
            }

            /// Kafka's name of the record type.
            pub fn name(&self) -> &'static str {
                match self {
                    $(MetadataRecord::$variant(_) => $record::NAME,)*
                }
            }

            /// The newest declared version of the record type.
            pub fn newest_version(&self) -> i16 {
                match self {
                    $(MetadataRecord::$variant(_) => *$record::DECLARED.end(),)*
                }
            }

            fn encode_message(&self, version: i16, out: &mut BytesMut) -> Result<(), WireError> {
                match self {
                    $(MetadataRecord::$variant(record) => record.encode(version, out),)*
                }
            }

            fn decode_message(key: u32, version: i16, input: &mut Bytes) -> Result<MetadataRecord, WireError> {
                match key {
                    $($key => $record::decode(version, input).map(MetadataRecord::$variant),)*
                    _ => Err(WireError::UnknownRecordKey { key }),
                }
            }
        }
    };
}

impl MetadataRecord {
    /// The value of a log record, in the newest version. Fails as [`Message::encode`] does.
    pub fn encode(&self) -> Result<Bytes, WireError> {
        self.encode_version(self.newest_version())
    }

    /// The value of a log record, in `version`. Fails as [`Message::encode`] does.
    pub fn encode_version(&self, version: i16) -> Result<Bytes, WireError> {
        let mut out = BytesMut::new();
        out.varint(FRAME_VERSION);
        out.varint(self.key());
        out.varint(version as u16 as u32);
        self.encode_message(version, &mut out)?;
        Ok(out.freeze())
    }

    /// Reads the value of a log record. Bytes after the record are ignored.
    pub fn decode(value: &Bytes) -> Result<MetadataRecord, WireError> {
        MetadataRecord::decode_versioned(value).map(|(record, _)| record)
    }

    /// Reads the value of a log record, and tells the version that it was written in.
    pub fn decode_versioned(value: &Bytes) -> Result<(MetadataRecord, i16), WireError> {
        let mut reader = Reader::new(value.clone());
        let frame_version = reader.varint()?;
        if frame_version != FRAME_VERSION {
            return Err(WireError::UnknownFrameVersion { version: frame_version });
        }
        let key = reader.varint()?;
        let version = i16::try_from(reader.varint()?).unwrap_or(i16::MAX);
        let mut message = value.clone();
        message.advance(reader.position());
        Ok((MetadataRecord::decode_message(key, version, &mut message)?, version))
    }
}

metadata_records! {
    RegisterBroker = 0, RegisterBrokerRecord;
    UnregisterBroker = 1, UnregisterBrokerRecord;
    Topic = 2, TopicRecord;
    Partition = 3, PartitionRecord;
    Config = 4, ConfigRecord;
    PartitionChange = 5, PartitionChangeRecord;
    FenceBroker = 7, FenceBrokerRecord;
    UnfenceBroker = 8, UnfenceBrokerRecord;
    RemoveTopic = 9, RemoveTopicRecord;
    DelegationToken = 10, DelegationTokenRecord;
    UserScramCredential = 11, UserScramCredentialRecord;
    FeatureLevel = 12, FeatureLevelRecord;
    ClientQuota = 14, ClientQuotaRecord;
    ProducerIds = 15, ProducerIdsRecord;
    BrokerRegistrationChange = 17, BrokerRegistrationChangeRecord;
    AccessControlEntry = 18, AccessControlEntryRecord;
    RemoveAccessControlEntry = 19, RemoveAccessControlEntryRecord;
    NoOp = 20, NoOpRecord;
    ZkMigrationState = 21, ZkMigrationStateRecord;
    RemoveUserScramCredential = 22, RemoveUserScramCredentialRecord;
    BeginTransaction = 23, BeginTransactionRecord;
    EndTransaction = 24, EndTransactionRecord;
    AbortTransaction = 25, AbortTransactionRecord;
    RemoveDelegationToken = 26, RemoveDelegationTokenRecord;
    RegisterController = 27, RegisterControllerRecord;
    ClearElr = 28, ClearElrRecord;
}
