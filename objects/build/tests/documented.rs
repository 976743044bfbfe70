//! The counter that `docs/abi.md` writes by hand is a valid module with the imports and exports
//! that it describes.

use gesmas_abi::{EXPORT_MEMORY, IMPORT_CALL, IMPORT_FETCH, IMPORT_MODULE};
use wasmparser::{Parser, Payload, Validator};

const PAGE: &str = include_str!("../../../docs/abi.md");

fn module() -> Vec<u8> {
    let (_, rest) = PAGE.split_once("```wat\n").expect("the page has a module");
    let (text, _) = rest.split_once("```").expect("the module ends");
    wat::parse_str(text).expect("the module parses")
}

#[test]
fn counter_by_hand_is_valid() {
    Validator::new().validate_all(&module()).expect("the module is valid");
}

#[test]
fn counter_by_hand_has_the_imports_and_exports_of_a_class() {
    let module = module();
    let (mut imports, mut exports) = (Vec::new(), Vec::new());
    for payload in Parser::new(0).parse_all(&module) {
        match payload.expect("the module is valid") {
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import.expect("an import");
                    imports.push((import.module, import.name));
                }
            }
            Payload::ExportSection(section) => {
                exports.extend(section.into_iter().map(|export| export.expect("an export").name));
            }
            _ => {}
        }
    }
    assert_eq!(imports, [(IMPORT_MODULE, IMPORT_CALL), (IMPORT_MODULE, IMPORT_FETCH)]);
    assert_eq!(exports, [EXPORT_MEMORY, "m_add"]);
}
