//! `gesmas class ls`: the classes that are loaded, and the standard ones that calls would load.

use gesmas_client::protocol::ClassState;
use serde_json::json;

use crate::cli::{connect::Context, failure::Failure, output::Table};

/// Digits of a code hash that a table shows.
const DIGITS: usize = 12;

pub(super) async fn run(context: &Context) -> Result<(), Failure> {
    let client = context.connect().await?;
    let classes = client.list_classes().await?;
    let mut table = Table::new(&["CLASS", "STATE", "BYTES", "OBJECTS", "CODE"]);
    let mut values = Vec::new();
    for class in &classes {
        let state = match class.state {
            ClassState::Pending => "compiling",
            ClassState::Ready => "ready",
        };
        let code = class.code.to_string();
        table.row([
            class.class.clone(),
            state.into(),
            class.module_bytes.to_string(),
            class.objects.to_string(),
            code[..DIGITS].into(),
        ]);
        values.push(json!({
            "class": class.class,
            "state": state,
            "bytes": class.module_bytes,
            "objects": class.objects,
            "code": code,
        }));
    }
    let loaded = |name: &str| classes.iter().any(|class| class.class == name);
    for standard in gesmas_classes::ALL.iter().filter(|standard| !loaded(standard.name)) {
        let code = gesmas_machine::CodeHash::of(standard.module).to_string();
        let bytes = standard.module.len();
        let short = code[..DIGITS].to_owned();
        table.row([
            standard.name.into(),
            "on first use".into(),
            bytes.to_string(),
            "0".into(),
            short,
        ]);
        values.push(json!({
            "class": standard.name,
            "state": "on-first-use",
            "bytes": bytes,
            "objects": 0,
            "code": code,
        }));
    }
    context.output.rows(&table, "no class is loaded", values);
    Ok(())
}
