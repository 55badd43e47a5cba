//! The page of a hand-made campaign: its golden sample, what it never contains, and how long it may be. With
//! ACKED_UPDATE_GOLDEN set, the sample is written instead of compared.

use sha2::{Digest, Sha256};

use super::*;
use crate::document::tests::document;
use crate::story::life::tests::{decided, moment, story};
use crate::story::{Change, Moment};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/page.html");

/// The story of the life tests, with what b2 had and what followed.
fn moments() -> Vec<Moment> {
    let (_, mut moments) = story();
    let appended = |leader_epoch, first, last| Change::Appended { leader_epoch, first, last };
    moments.extend([
        moment(3, "appended", "b1", appended(0, 0, 6)),
        moment(4, "appended", "b2", appended(0, 0, 6)),
        moment(4, "acked", "b1", Change::Acked { leader_epoch: 0, first: 0, last: 6 }),
        moment(26, "appended", "b2", appended(2, 7, 9)),
        moment(27, "high-watermark", "b2", Change::HighWatermark { to: 7 }),
        moment(32, "appended", "b1", appended(2, 7, 9)),
    ]);
    moments.sort_by_key(|moment| moment.t_us);
    moments
}

#[test]
fn the_page_is_the_golden_sample() {
    let page = page(&document(), &moments());
    if std::env::var_os("ACKED_UPDATE_GOLDEN").is_some() {
        std::fs::write(GOLDEN, &page).expect("the sample can be written");
    }
    let golden = std::fs::read_to_string(GOLDEN).expect("the sample is there");
    assert!(
        page == golden,
        "the page is not the sample: look at it, then run again with ACKED_UPDATE_GOLDEN=1"
    );
}

#[test]
fn the_policy_lets_exactly_the_pages_own_script_run() {
    assert_eq!(base64(&Sha256::digest(SCRIPT.as_bytes())), SCRIPT_SHA256);
    assert_eq!(page(&document(), &moments()).matches("<script").count(), 2, "the data and the script");
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[test]
fn nothing_is_loaded_from_elsewhere_and_every_text_is_escaped() {
    let mut document = document();
    let evil = "</script><img src=x onerror=alert(1)>\"'&";
    document.findings[0].text = evil.into();
    document.plan.cells[0].scenario = evil.into();
    document.plan.cells[0].settings.insert(evil.into(), evil.into());
    let told = document.told.as_mut().expect("a seed is told");
    told.result.token = evil.into();
    told.result.findings[0].text = evil.into();
    let mut moments = moments();
    for moment in &mut moments {
        moment.text = evil.into();
        if let Change::Decided { leader: Some(leader), .. } = &mut moment.change {
            leader.push_str("</script>");
        }
    }
    let page = page(&document, &moments);
    assert!(!page.contains("<img"), "no text is markup");
    assert_eq!(page.matches("</script>").count(), 2, "no text ends a script");
    for word in ["http://", "https://", "@import", "url(http", "src=\"", "<link rel=\"stylesheet"] {
        let found = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!found.contains(word), "{word}");
    }
}

#[test]
fn without_scripts_verdict_story_pictures_tables_and_command_are_there() {
    let page = page(&document(), &moments());
    let body = page.split("<script").next().expect("there is something before the first");
    for word in [
        "VIOLATED",
        "1 of 8 acknowledged records lost",
        "acked repro AK1.x",
        "What happened",
        "shrinks to {b1}",
        "<svg",
        "The picture as tables",
        "The logs at",
        "Which setting would have saved it",
        "lost write",
        "no effect here",
        "never (pause)",
        "What this report does not say",
    ] {
        assert!(body.contains(word), "{word}");
    }
    assert!(body.contains("<title id=\"strip-title\"") && body.contains("<desc id=\"strip-desc\""));
}

#[test]
fn a_long_story_keeps_the_page_short() {
    let mut moments = moments();
    for number in 0..60_000i64 {
        let t_s = 40;
        moments.push(moment(
            t_s,
            "appended",
            "b2",
            Change::Appended { leader_epoch: 2, first: number, last: number },
        ));
        moments.push(moment(t_s, "high-watermark", "b2", Change::HighWatermark { to: number }));
        if number % 100 == 0 {
            moments.push(decided(
                t_s,
                Some(if number % 200 == 0 { "b1" } else { "b2" }),
                3 + number as i32,
                &["b1", "b2"],
            ));
        }
    }
    let text = page(&document(), &moments);
    let data = text.split("<script id=\"events\"").nth(1).and_then(|rest| rest.split("</script>").next());
    let data = data.expect("the events are in the page").len();
    assert!(text.len() - data <= STATIC_BYTES_MAX, "{} bytes without the events", text.len() - data);
    assert!(text.len() <= 2 << 20, "{} bytes", text.len());
    assert!(text.contains("The search looks through 50,000 events of 60,"));
}

#[test]
fn without_a_story_or_anything_there_is_still_a_page() {
    let page_without = page(&document(), &[]);
    assert!(page_without.contains("No story was kept") && !page_without.contains("<svg"));
    let mut empty = document();
    empty.told = None;
    empty.findings.clear();
    assert!(page(&empty, &[]).contains("Nothing ran."));
    let one = [moment(0, "node", "b1", Change::Started)];
    assert!(page(&document(), &one).contains("<svg"));
}
