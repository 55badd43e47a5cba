//! Control records that the metadata quorum writes into its log.
//!
//! The key of a control record is a version (0) and a type, two bytes each. The value is a message whose
//! first field repeats the version it was written in.

use bytes::{Bytes, BytesMut};

use crate::schema::messages;
use crate::schema::reader::Reader;
use crate::schema::sink::Sink;
use crate::{Message, Str, Uuid, WireError};

messages! {
    /// A leader of the quorum began its epoch (KIP-595). Version 1 has directory ids (KIP-853).
    pub struct LeaderChangeMessage [versions 0..=1, flexible 0..] {
        version: i16 [0..],
        leader_id: i32 [0..],
        voters: Vec<Voter> [0..],
        granting_voters: Vec<Voter> [0..],
    }

    /// Used by [`LeaderChangeMessage`].
    pub struct Voter {
        voter_id: i32 [0..],
        voter_directory_id: Uuid [1..],
    }

    /// First record of a snapshot (KIP-630).
    pub struct SnapshotHeaderRecord [versions 0..=0, flexible 0..] {
        version: i16 [0..],
        last_contained_log_timestamp: i64 [0..],
    }

    /// Last record of a snapshot (KIP-630).
    pub struct SnapshotFooterRecord [versions 0..=0, flexible 0..] {
        version: i16 [0..],
    }

    /// The level of `kraft.version` from here on (KIP-853).
    pub struct KRaftVersionRecord [versions 0..=0, flexible 0..] {
        version: i16 [0..],
        k_raft_version: i16 [0..],
    }

    /// The voters from here on (KIP-853).
    pub struct VotersRecord [versions 0..=0, flexible 0..] {
        version: i16 [0..],
        voters: Vec<RecordedVoter> [0..],
    }

    /// Used by [`VotersRecord`], where Kafka names it `Voter`.
    pub struct RecordedVoter {
        voter_id: i32 [0..],
        voter_directory_id: Uuid [0..],
        endpoints: Vec<Endpoint> [0..],
        k_raft_version_feature: KRaftVersionFeature [0..],
    }

    /// See [`RecordedVoter`].
    pub struct Endpoint {
        name: Str [0..],
        host: Str [0..],
        port: u16 [0..],
    }

    /// See [`RecordedVoter`].
    pub struct KRaftVersionFeature {
        min_supported_version: i16 [0..],
        max_supported_version: i16 [0..],
    }

    /// Who sent the request inside an [`Envelope`](crate::EnvelopeRequest) (KIP-590). Its version precedes it
    /// in two bytes: [`DefaultPrincipalData::encode_prefixed`].
    pub struct DefaultPrincipalData [versions 0..=0, flexible 0..] {
        /// The schema's `type`; `User` for clients that did not authenticate.
        kind: Str [0..],
        name: Str [0..],
        token_authenticated: bool [0..],
    }
}

impl DefaultPrincipalData {
    /// As it stands in an envelope: two bytes of version, then the message.
    pub fn encode_prefixed(&self) -> Result<Bytes, WireError> {
        let mut out = BytesMut::new();
        out.u16(0);
        self.encode(0, &mut out)?;
        Ok(out.freeze())
    }

    pub fn decode_prefixed(value: &Bytes) -> Result<DefaultPrincipalData, WireError> {
        let mut reader = Reader::new(value.clone());
        let version = reader.u16()? as i16;
        DefaultPrincipalData::decode(version, &mut value.slice(reader.position()..))
    }
}

/// Any control record of the quorum.
#[derive(Clone, Debug, PartialEq)]
pub enum ControlRecord {
    LeaderChange(LeaderChangeMessage),
    SnapshotHeader(SnapshotHeaderRecord),
    SnapshotFooter(SnapshotFooterRecord),
    KRaftVersion(KRaftVersionRecord),
    Voters(VotersRecord),
    /// A type of another concern (0 abort, 1 commit) or of the future.
    Other {
        kind: i16,
        value: Bytes,
    },
}

impl ControlRecord {
    fn kind(&self) -> i16 {
        match self {
            ControlRecord::LeaderChange(_) => 2,
            ControlRecord::SnapshotHeader(_) => 3,
            ControlRecord::SnapshotFooter(_) => 4,
            ControlRecord::KRaftVersion(_) => 5,
            ControlRecord::Voters(_) => 6,
            ControlRecord::Other { kind, .. } => *kind,
        }
    }

    /// The record's key in the batch.
    pub fn key(&self) -> [u8; 4] {
        let [high, low] = self.kind().to_be_bytes();
        [0, 0, high, low]
    }

    /// The record's value in the batch, written in the version that the message itself states.
    pub fn value(&self) -> Result<Bytes, WireError> {
        let mut out = BytesMut::new();
        match self {
            ControlRecord::LeaderChange(message) => message.encode(message.version, &mut out)?,
            ControlRecord::SnapshotHeader(message) => message.encode(message.version, &mut out)?,
            ControlRecord::SnapshotFooter(message) => message.encode(message.version, &mut out)?,
            ControlRecord::KRaftVersion(message) => message.encode(message.version, &mut out)?,
            ControlRecord::Voters(message) => message.encode(message.version, &mut out)?,
            ControlRecord::Other { value, .. } => return Ok(value.clone()),
        }
        Ok(out.freeze())
    }

    /// Reads key and value of a record in a control batch.
    pub fn decode(key: &[u8], value: &Bytes) -> Result<ControlRecord, WireError> {
        let mut reader = Reader::new(Bytes::copy_from_slice(key));
        let _key_version = reader.u16()?;
        let kind = reader.u16()? as i16;
        if !(2..=6).contains(&kind) {
            return Ok(ControlRecord::Other { kind, value: value.clone() });
        }
        let version = Reader::new(value.clone()).u16()? as i16;
        let mut value = value.clone();
        Ok(match kind {
            2 => ControlRecord::LeaderChange(LeaderChangeMessage::decode(version, &mut value)?),
            3 => ControlRecord::SnapshotHeader(SnapshotHeaderRecord::decode(version, &mut value)?),
            4 => ControlRecord::SnapshotFooter(SnapshotFooterRecord::decode(version, &mut value)?),
            5 => ControlRecord::KRaftVersion(KRaftVersionRecord::decode(version, &mut value)?),
            _ => ControlRecord::Voters(VotersRecord::decode(version, &mut value)?),
        })
    }
}
