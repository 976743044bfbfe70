//! Base64 with the standard alphabet (RFC 4648). Padding is written; what is read may lack it.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as text.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let symbol = ALPHABET[(bits >> (18 - 6 * place) & 0x3f) as usize];
            text.push(if place <= chunk.len() { char::from(symbol) } else { '=' });
        }
    }
    text
}

/// The bytes of a text; none when it is not one of this alphabet, or has bits left over.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let symbols = text.trim_end_matches('=').as_bytes();
    let padding = text.len() - symbols.len();
    if padding > 2 || (padding > 0 && !text.len().is_multiple_of(4)) {
        return None;
    }
    let mut bytes = Vec::with_capacity(symbols.len() / 4 * 3 + 2);
    for chunk in symbols.chunks(4) {
        let mut bits = 0_u32;
        for symbol in chunk {
            let value = ALPHABET.iter().position(|known| known == symbol)?;
            bits = bits << 6 | u32::try_from(value).expect("there are 64 symbols");
        }
        bits <<= 6 * (4 - chunk.len());
        let (whole, rest) = match chunk.len() {
            4 => (3, 0),
            3 => (2, bits & 0xff),
            2 => (1, bits & 0xffff),
            _ => return None,
        };
        if rest != 0 {
            return None;
        }
        bytes.extend_from_slice(&bits.to_be_bytes()[1..=whole]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_texts() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
            assert_eq!(decode(text.trim_end_matches('=')).as_deref(), Some(bytes.as_bytes()));
        }
        assert_eq!(encode(&[0xfb, 0xff]), "+/8=");
    }

    #[test]
    fn what_is_no_base64_is_refused() {
        for text in ["Z", "Zg=", "Zh==", "Zm9v====", "Zm 9", "Zm9-", "=", "Zm9vY==="] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
