//! Spans and points of time as texts; both are nanoseconds in 64 bits.
//!
//! Spans are a row of numbers with units (`1h30m`, `1.5s`); points are RFC 3339, printed in UTC.

/// Units of spans, in nanoseconds, the longest name first where one begins another.
const UNITS: [(&str, u64); 9] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
    ("w", 604_800_000_000_000),
];

const SECOND: u64 = 1_000_000_000;
const DAY: i64 = 86_400;

/// A span as text, in the greatest unit up to seconds in which it is a whole number.
#[must_use]
pub fn format_duration(nanoseconds: u64) -> String {
    let unit = [("s", SECOND), ("ms", 1_000_000), ("us", 1_000)]
        .into_iter()
        .find(|(_, unit)| nanoseconds.is_multiple_of(*unit));
    let (name, unit) = unit.unwrap_or(("ns", 1));
    format!("{}{name}", nanoseconds / unit)
}

/// The span that a text says; none if it says none, or one of more than 584 years.
#[must_use]
pub fn parse_duration(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let mut sum = 0_u64;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let number = rest.find(|char: char| !char.is_ascii_digit() && char != '.')?;
        let (digits, tail) = rest.split_at(number);
        let unit_length = tail.find(|char: char| char.is_ascii_digit()).unwrap_or(tail.len());
        let (name, tail) = tail.split_at(unit_length);
        let (_, unit) = UNITS.iter().find(|(known, _)| *known == name.trim())?;
        sum = sum.checked_add(scaled(digits, *unit)?)?;
        rest = tail;
    }
    Some(sum)
}

/// A decimal number of a unit; nothing is rounded away.
fn scaled(digits: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || (digits.contains('.') && fraction.is_empty()) {
        return None;
    }
    let mut sum = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    let mut place = unit;
    for digit in fraction.chars() {
        let digit = u64::from(digit.to_digit(10)?);
        if !place.is_multiple_of(10) && digit != 0 {
            return None;
        }
        place /= 10;
        sum = sum.checked_add(digit * place)?;
    }
    Some(sum)
}

/// A point of time, nanoseconds since the Unix epoch, as text.
#[must_use]
pub fn format_time(nanoseconds: u64) -> String {
    let (seconds, fraction) = (nanoseconds / SECOND, nanoseconds % SECOND);
    let seconds = i64::try_from(seconds).expect("64 bits of nanoseconds are 584 years");
    let (year, month, day) = date_of(seconds.div_euclid(DAY));
    let clock = seconds.rem_euclid(DAY);
    let (hour, minute, second) = (clock / 3_600, clock / 60 % 60, clock % 60);
    let mut text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    if fraction > 0 {
        text += format!(".{fraction:09}").trim_end_matches('0');
    }
    text + "Z"
}

/// The point of time that a text says; none if it says none, or one that 64 bits cannot hold.
#[must_use]
pub fn parse_time(text: &str) -> Option<u64> {
    let (date, clock) = text.split_once(['T', 't', ' '])?;
    let [year, month, day] = numbers(date, '-')?;
    let (clock, offset) = split_offset(clock)?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let [hour, minute, second] = numbers(clock, ':')?;
    let days = days_until(year, month, day);
    if date_of(days) != (year, month, day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    if fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
    let seconds = days * DAY + hour * 3_600 + minute * 60 + second - offset;
    u64::try_from(seconds).ok()?.checked_mul(SECOND)?.checked_add(fraction)
}

/// A time of day, and its offset from UTC in seconds.
fn split_offset(clock: &str) -> Option<(&str, i64)> {
    if let Some(clock) = clock.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let sign = clock.rfind(['+', '-'])?;
    let (clock, offset) = clock.split_at(sign);
    let (hours, minutes) = offset[1..].split_once(':')?;
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    let seconds = hours * 3_600 + minutes * 60;
    let sane = (0..24).contains(&hours) && (0..60).contains(&minutes);
    sane.then_some((clock, if offset.starts_with('-') { -seconds } else { seconds }))
}

fn numbers(text: &str, separator: char) -> Option<[i64; 3]> {
    let mut parts = text.split(separator).map(|part| {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<i64>().ok().filter(|_| digits && part.len() <= 4)
    });
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

/// Days since the Unix epoch of a date of the Gregorian calendar. Years begin in March here, so that
/// the leap day is the last of its year.
fn days_until(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The date that is so many days after the Unix epoch.
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans() {
        for (text, nanoseconds) in [
            ("30s", 30 * SECOND),
            ("1h30m", 5_400 * SECOND),
            ("1.5s", 1_500_000_000),
            ("250ms", 250_000_000),
            ("10us", 10_000),
            ("7ns", 7),
            ("2d 3h", 183_600 * SECOND),
            ("0s", 0),
        ] {
            assert_eq!(parse_duration(text), Some(nanoseconds), "{text}");
            assert_eq!(parse_duration(&format_duration(nanoseconds)), Some(nanoseconds));
        }
        assert_eq!(format_duration(90 * SECOND), "90s");
        assert_eq!(format_duration(u64::MAX), "18446744073709551615ns");
        assert_eq!(parse_duration("18446744073709551615ns"), Some(u64::MAX));
        for text in ["", "30", "s", "1 fortnight", "-1s", "1.s", ".5s", "0.5ns", "600000000000s"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn points() {
        for (text, nanoseconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:34:56.5Z", 951_827_696_500_000_000),
            ("2026-11-27T10:00:00Z", 1_795_773_600 * SECOND),
            ("2554-07-21T23:34:33.709551615Z", u64::MAX),
        ] {
            assert_eq!(parse_time(text), Some(nanoseconds), "{text}");
            assert_eq!(format_time(nanoseconds), text);
        }
        assert_eq!(parse_time("2026-11-27T12:00:00+02:00"), parse_time("2026-11-27T10:00:00Z"));
        assert_eq!(parse_time("2026-11-26 23:00:00-11:00"), parse_time("2026-11-27T10:00:00Z"));
        for text in [
            "2026-11-27",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-27T24:00:00Z",
            "2026-11-27T10:00:00",
            "1969-12-31T23:59:59Z",
            "2600-01-01T00:00:00Z",
            "2026-11-27T10:00:00.1234567890Z",
            "2026-11-27T10:00Z",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
