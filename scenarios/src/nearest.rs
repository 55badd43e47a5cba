//! "Did you mean": names near to one that does not exist.

/// Names farther than this part of their length are no hint.
const NEAR: f64 = 0.6;
/// Letters of a wrong name that are compared, which bounds the work it can cause.
const COMPARED_MAX: usize = 128;

/// `; did you mean …?` with at most three names, nearest first; empty when none is near.
pub fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let name: String = name.chars().take(COMPARED_MAX).collect();
    let mut near: Vec<(f64, &str)> = known
        .map(|known| (strsim::normalized_damerau_levenshtein(&name, known), known))
        .filter(|(likeness, known)| *likeness >= NEAR || (name.len() >= 3 && known.contains(name.as_str())))
        .collect();
    near.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(other.1)));
    near.truncate(3);
    if near.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = near.into_iter().map(|(_, known)| known).collect();
    format!("; did you mean {}?", names.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::hint;

    #[test]
    fn a_slip_of_the_pen_finds_its_name_and_nonsense_finds_none() {
        let known = ["leader-crash", "planned-move", "isolated-leader"];
        assert_eq!(hint("leader-crsh", known.into_iter()), "; did you mean leader-crash?");
        assert_eq!(hint("isolated", known.into_iter()), "; did you mean isolated-leader?");
        assert_eq!(hint("zzz", known.into_iter()), "");
    }
}
