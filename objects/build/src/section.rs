//! Finds the interface section of a module.

use gesmas_abi::{INTERFACE_SECTION, Malformed, Reader, interface::Interface};

/// Id of a custom section.
const CUSTOM: u8 = 0;

/// The interface of a module.
///
/// # Errors
/// [`Malformed`] when it is not a module, has no interface section, or one that does not decode.
pub fn interface_of(module: &[u8]) -> Result<Interface, Malformed> {
    let mut reader = Reader::new(module);
    if reader.take(8)? != b"\0asm\x01\0\0\0" {
        return Err(Malformed("it is not a WebAssembly module of version 1"));
    }
    while reader.remaining() > 0 {
        let id = reader.u8()?;
        let length = leb(&mut reader)?;
        let mut section = Reader::new(reader.take(length)?);
        if id == CUSTOM {
            let length = leb(&mut section)?;
            if section.take(length)? == INTERFACE_SECTION.as_bytes() {
                return Interface::decode(section.rest());
            }
        }
    }
    Err(Malformed("it has no interface section"))
}

/// A number of up to 32 bits in groups of seven, the least first.
fn leb(reader: &mut Reader<'_>) -> Result<usize, Malformed> {
    let mut number = 0_u64;
    for group in 0..5 {
        let byte = reader.u8()?;
        number |= u64::from(byte & 0x7f) << (7 * group);
        if byte & 0x80 == 0 {
            return usize::try_from(number).map_err(|_| Malformed("a length is too great"));
        }
    }
    Err(Malformed("a length has too many bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_without_the_section_is_told_so() {
        assert_eq!(interface_of(b"\0asm\x01\0\0\0"), Err(Malformed("it has no interface section")));
        assert_eq!(
            interface_of(b"\0asm\x01\0\0\0\0\x05\x04name"),
            Err(Malformed("it has no interface section"))
        );
    }

    #[test]
    fn bytes_that_are_no_module_are_told_so() {
        assert_eq!(interface_of(b"\0as"), Err(Malformed("it ends too early")));
        assert_eq!(interface_of(b"\0asm\x01\0\0\0\0\xff"), Err(Malformed("it ends too early")));
        assert_eq!(
            interface_of(b"\0asm\x01\0\0\0\0\xff\xff\xff\xff\xff\x0f"),
            Err(Malformed("a length has too many bytes"))
        );
    }
}
