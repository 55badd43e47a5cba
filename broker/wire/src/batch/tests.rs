use super::*;

#[test]
fn a_written_batch_is_valid_and_read_back() {
    let mut builder = BatchBuilder::new(1_000).producer(7, 1, 5);
    builder.push(1_000, Some(b"key"), Some(b"value"), &[(b"h", None), (b"h", Some(b"again"))]);
    builder.push(1_003, None, None, &[]);
    let mut bytes = builder.build();
    patch(&mut bytes, 42, 3);
    let batch = BatchView::only(&bytes).expect("one batch");
    assert_eq!(batch.validate(), Ok(()));
    assert_eq!((batch.header.base_offset, batch.header.last_offset()), (42, 43));
    assert_eq!(batch.header.partition_leader_epoch, 3);
    let records = batch.records().expect("not compressed").collect::<Result<Vec<_>, _>>().expect("valid");
    assert_eq!(records[1].timestamp, 1_003);
    assert_eq!(records[0].headers().len(), 2);
}
