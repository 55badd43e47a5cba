//! Topics are deleted, by name or by id (KIP-516). The brokers drop their logs when they learn of it.

use std::collections::BTreeSet;

use acked_wire::api::delete_topics::DeletableTopicResult;
use acked_wire::{
    DeleteTopicsRequest, DeleteTopicsResponse, MetadataRecord, RemoveTopicRecord, Str, Uuid, error_code,
};

use super::draft::Draft;

/// Decides on every topic of the request; one that is named twice is an error, whichever way it is named.
pub(super) fn delete_topics(draft: &mut Draft<'_>, request: &DeleteTopicsRequest) -> DeleteTopicsResponse {
    let mut response = DeleteTopicsResponse::default();
    let wanted = request
        .topic_names
        .iter()
        .map(|name| (Some(name), Uuid::ZERO))
        .chain(request.topics.iter().map(|topic| (topic.name.as_ref(), topic.topic_id)));
    let mut gone = BTreeSet::new();
    for (name, id) in wanted {
        let (found, code) = match name {
            Some(name) => (draft.image().topic_id(name), error_code::UNKNOWN_TOPIC_OR_PARTITION),
            None => (Some(id).filter(|id| draft.image().topic(*id).is_some()), error_code::UNKNOWN_TOPIC_ID),
        };
        let error_code = match found {
            None => code,
            Some(id) if !gone.insert(id) => error_code::INVALID_REQUEST,
            Some(id) => {
                draft.push(MetadataRecord::RemoveTopic(RemoveTopicRecord {
                    topic_id: id,
                    ..Default::default()
                }));
                error_code::NONE
            }
        };
        let known = found.and_then(|id| draft.image().topic(id)).map(|topic| topic.name.clone());
        response.responses.push(DeletableTopicResult {
            name: name.cloned().or(known),
            topic_id: found.unwrap_or(id),
            error_code,
            error_message: (error_code != error_code::NONE).then(|| Str::from(error_code::name(error_code))),
            ..Default::default()
        });
    }
    response
}
