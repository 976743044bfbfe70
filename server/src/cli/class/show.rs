//! `gesmas class show`: the interface of a class as documentation.

use std::{collections::BTreeMap, fmt::Write as _};

use clap::Args;
use gesmas_abi::interface::{
    Field, FieldKind, Interface, Method, MethodKind, NamedOwned, TypeOwned,
};
use gesmas_client::{
    AdminFailure,
    protocol::{AdminError, ClassDetail, PinnedCode},
};

use crate::{
    cli::{
        connect::{Context, Freshness},
        failure::Failure,
        interface, names,
    },
    json::{signature, type_name},
};

/// Digits of a code hash that are shown.
const DIGITS: usize = 12;

/// `gesmas class show`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesmas class show Queue
  gesmas class show Queue --json > queue.json")]
pub(crate) struct ShowArgs {
    /// The class.
    #[arg(value_parser = names::class)]
    name: String,
    #[command(flatten)]
    freshness: Freshness,
}

pub(super) async fn run(args: &ShowArgs, context: &Context) -> Result<(), Failure> {
    let client = context.ask(args.freshness).await?;
    let interface = interface::of_class(&client, &args.name).await?;
    let value = interface::file::write(&interface);
    let detail = match client.show_class(&args.name).await {
        Ok(detail) => Some(detail),
        // A standard class that is not loaded has nothing that needs it.
        Err(AdminFailure::Answered(AdminError::ClassUnknown { .. })) => None,
        Err(failure) => return Err(failure.into()),
    };
    context.output.value(&value, || {
        let versions = detail.as_ref().map(versions).unwrap_or_default();
        format!("{}{versions}", render(&interface)).trim_end().to_owned()
    });
    Ok(())
}

/// What needs which code.
fn versions(detail: &ClassDetail) -> String {
    let mut text = String::from("\ncode\n");
    for (place, version) in detail.pinned.iter().enumerate() {
        let PinnedCode { code, invocations, objects } = version;
        let (code, last) = (&code.to_string()[..DIGITS], place + 1 == detail.pinned.len());
        let what = if last { "current" } else { "replaced" };
        let _ = writeln!(
            text,
            "    {code}  {what}, objects: {objects}, blocked calls in it: {invocations}"
        );
    }
    if let Some(code) = detail.replacing {
        let _ =
            writeln!(text, "    {}  being compiled, to replace it", &code.to_string()[..DIGITS]);
    }
    text
}

fn render(interface: &Interface) -> String {
    let mut text = format!("class {}\n", interface.class);
    indent(&interface.docs, "    ", &mut text);
    if interface.transient {
        text += "    Transient: an object that nobody needs vanishes.\n";
    }
    let of_kind = |kind| interface.methods.iter().filter(move |method| method.kind == kind);
    text += "\ncreate\n";
    match interface.init() {
        Some(init) => method(init, &mut text),
        None => text += "    The first call creates an object.\n",
    }
    if let Some(migrate) = of_kind(MethodKind::Migrate).next() {
        text += "\nmigrate (once for each object, when it has the layout before)\n";
        indent(&migrate.docs, "    ", &mut text);
    }
    text += "\nmethods\n";
    of_kind(MethodKind::Update).for_each(|update| method(update, &mut text));
    of_kind(MethodKind::Read).for_each(|read| method(read, &mut text));
    if of_kind(MethodKind::Handler).next().is_some() {
        text += "\nhandlers (for timers and watches, not for clients)\n";
        of_kind(MethodKind::Handler).for_each(|handler| method(handler, &mut text));
    }
    if !interface.fields.is_empty() {
        text += "\nstate\n";
        for field in &interface.fields {
            let _ = writeln!(text, "    {}: {}", field.name, field_type(field));
        }
    }
    types(interface, &mut text);
    text + "\n" + &example(interface)
}

fn method(method: &Method, text: &mut String) {
    let _ = write!(text, "    {}", signature(method));
    if method.kind == MethodKind::Read {
        text.push_str("  [read]");
    }
    if method.detached {
        text.push_str("  [detached]");
    }
    text.push('\n');
    indent(&method.docs, "        ", text);
    if let Some(error) = &method.error {
        let _ = writeln!(text, "        Errors: {}", type_name(error));
    }
}

fn indent(docs: &str, margin: &str, text: &mut String) {
    for line in docs.lines() {
        let _ = writeln!(text, "{}", format!("{margin}{}", line.trim()).trim_end());
    }
}

fn field_type(field: &Field) -> String {
    let name = |ty: &Option<TypeOwned>| ty.as_ref().map_or_else(String::new, type_name);
    let (key, value) = (name(&field.key), name(&field.value));
    match field.kind {
        FieldKind::Value => value,
        FieldKind::Map => format!("map<{key}, {value}>"),
        FieldKind::Deque => format!("deque<{value}>"),
        FieldKind::Set => format!("set<{key}>"),
        FieldKind::Semaphore => "semaphore".into(),
        FieldKind::SemaphoreMap => format!("semaphores<{key}>"),
    }
}

/// The records and choices that the interface names.
fn types(interface: &Interface, text: &mut String) {
    let mut found = BTreeMap::new();
    for method in &interface.methods {
        let parameters = method.parameters.iter().map(|parameter| &parameter.ty);
        parameters
            .chain([&method.result])
            .chain(&method.error)
            .for_each(|ty| collect(ty, &mut found));
    }
    for field in &interface.fields {
        field.key.iter().chain(&field.value).for_each(|ty| collect(ty, &mut found));
    }
    if !found.is_empty() {
        text.push_str("\ntypes\n");
    }
    for (name, definition) in found {
        let _ = writeln!(text, "    {name}: {definition}");
    }
}

fn collect(ty: &TypeOwned, found: &mut BTreeMap<String, String>) {
    match ty {
        TypeOwned::Option(inner) | TypeOwned::List(inner) | TypeOwned::Set(inner) => {
            collect(inner, found);
        }
        TypeOwned::Map(key, value) => {
            collect(key, found);
            collect(value, found);
        }
        TypeOwned::Tuple(parts) => parts.iter().for_each(|part| collect(part, found)),
        TypeOwned::Record { name, fields } => {
            fields.iter().for_each(|field| collect(&field.ty, found));
            found.insert(name.clone(), members(fields));
        }
        TypeOwned::Choice { name, variants } => {
            let variant = |variant: &gesmas_abi::interface::VariantOwned| {
                if variant.fields.is_empty() {
                    variant.name.clone()
                } else {
                    format!("{} {}", variant.name, members(&variant.fields))
                }
            };
            for variant in variants {
                variant.fields.iter().for_each(|field| collect(&field.ty, found));
            }
            let variants: Vec<_> = variants.iter().map(variant).collect();
            found.insert(name.clone(), variants.join(" | "));
        }
        _ => {}
    }
}

fn members(fields: &[NamedOwned]) -> String {
    let member = |field: &NamedOwned| format!("{}: {}", field.name, type_name(&field.ty));
    format!("{{ {} }}", fields.iter().map(member).collect::<Vec<_>>().join(", "))
}

/// What to type to use the class.
fn example(interface: &Interface) -> String {
    let words = |method: &Method| {
        let words =
            method.parameters.iter().map(|parameter| format!(" {}", parameter.name.to_uppercase()));
        words.collect::<String>()
    };
    let class = &interface.class;
    let mut text = String::from("try\n");
    if let Some(init) = interface.init().filter(|init| !init.parameters.is_empty()) {
        let _ = writeln!(text, "    gesmas object create {class}/NAME{}", words(init));
    }
    let callable = |method: &&Method| matches!(method.kind, MethodKind::Update | MethodKind::Read);
    for method in interface.methods.iter().filter(callable).take(2) {
        let _ = writeln!(text, "    gesmas call {class}/NAME {}{}", method.name, words(method));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_reads_as_documentation() {
        let lock = gesmas_classes::find("Lock").expect("it is standard");
        let interface = interface::of_module(lock.module).expect("it has an interface");
        let text = render(&interface);
        for line in [
            "class Lock",
            "    lock_for(owner: u64, duration: duration) -> option<u64>",
            "        Errors: LockError",
            "    holder() -> option<HolderInfo>  [read]",
            "    mutex: semaphore",
            "    LockError: NotHeld | NotHolder | TooOften | TooManyWaiting { limit: u64 } | NoSession | Cancelled",
            "    gesmas call Lock/NAME lock OWNER",
        ] {
            assert!(text.lines().any(|found| found == line), "{line:?} is missing in\n{text}");
        }
    }
}
