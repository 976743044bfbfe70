//! `gesmas class build`: from sources, or a module of another compiler, to a module of a class.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use gesmas_abi::{
    INTERFACE_SECTION,
    interface::{Interface, MethodKind},
};
use gesmas_machine::CodeHash;
use serde_json::json;

use crate::cli::{exit::Exit, failure::Failure, interface, output::Output};

/// `gesmas class build`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesmas class build ./rendezvous
  gesmas class build ./rendezvous -o rendezvous.wasm
  gesmas class build tally.wasm --interface tally.json -o Tally.wasm

A folder is compiled as a Rust crate. A file is taken as a module that another compiler made; it
needs --interface, a JSON file in the form that `gesmas class show NAME --json` prints. docs/abi.md
says what such a module imports and exports.")]
pub(crate) struct BuildArgs {
    /// The folder of a class crate, or a WebAssembly module.
    #[arg(value_name = "DIR|FILE")]
    source: PathBuf,
    /// Where the module goes; NAME.wasm in the current folder if not said.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Attaches this interface instead of one that the compiler wrote.
    #[arg(long, value_name = "FILE")]
    interface: Option<PathBuf>,
}

pub(super) fn run(args: &BuildArgs, output: Output) -> Result<(), Failure> {
    let mut module = if args.source.is_dir() {
        if args.interface.is_some() {
            return Err(Failure::usage("--interface is for modules of other compilers")
                .advise("a Rust crate has its interface from #[class] and #[methods]"));
        }
        compile(&args.source, output)?
    } else {
        fs::read(&args.source).map_err(|error| Failure::file(&args.source, &error))?
    };
    if let Some(path) = &args.interface {
        module = attach(&module, &interface::file::read(path)?)?;
    }
    let class = interface::of_module(&module)?.class;
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{class}.wasm")));
    fs::write(&path, &module).map_err(|error| Failure::file(&path, &error))?;
    let (code, bytes) = (CodeHash::of(&module).to_string(), module.len());
    output.value(&json!({ "class": class, "file": path, "bytes": bytes, "code": code }), || {
        format!("{}: class {class}, {bytes} bytes, code {code}", path.display())
    });
    Ok(())
}

/// Compiles the crate in a folder.
pub(super) fn compile(folder: &Path, output: Output) -> Result<Vec<u8>, Failure> {
    output.note(&format!("compiling {}", folder.display()));
    gesmas_build::compile(folder)
        .map_err(|error| Failure::new(Exit::Usage, "build", error.to_string()))
}

/// Appends the section of an interface to a module that has none.
fn attach(module: &[u8], interface: &Interface) -> Result<Vec<u8>, Failure> {
    if gesmas_build::interface_of(module).is_ok() {
        return Err(Failure::usage("the module has an interface already"));
    }
    if !module.starts_with(b"\0asm\x01\0\0\0") {
        return Err(Failure::usage("this is not a WebAssembly module of version 1"));
    }
    let mut section = Vec::new();
    put_length(INTERFACE_SECTION.len(), &mut section);
    section.extend_from_slice(INTERFACE_SECTION.as_bytes());
    section.extend_from_slice(&interface.encode());
    let mut whole = module.to_vec();
    whole.push(0);
    put_length(section.len(), &mut whole);
    whole.extend_from_slice(&section);
    let attached = interface::of_module(&whole)?;
    let count = |kind| attached.methods.iter().filter(|method| method.kind == kind).count();
    if count(MethodKind::Update) + count(MethodKind::Read) == 0 {
        return Err(Failure::usage("the interface has no method that clients can call"));
    }
    Ok(whole)
}

/// A number in groups of seven bits, the least first.
fn put_length(length: usize, out: &mut Vec<u8>) {
    let mut rest = length;
    while rest >= 0x80 {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(u8::try_from(rest).expect("seven bits fit into a byte"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attached_interface_is_found_again() {
        let standard = gesmas_classes::find("Queue").expect("it is standard");
        let interface = interface::of_module(standard.module).expect("it has an interface");
        let bare = b"\0asm\x01\0\0\0";
        let module = attach(bare, &interface).expect("it has none yet");
        assert_eq!(gesmas_build::interface_of(&module), Ok(interface.clone()));
        assert!(attach(&module, &interface).is_err());
        assert!(attach(b"text", &interface).is_err());
    }
}
