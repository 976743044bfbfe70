//! The class that does nothing: what is left of a call when its body is taken away.
//!
//! The module is put together here, instruction by instruction, so that nothing of a class library is
//! in it either: its one method says that it has returned, which is the one call that none can do
//! without. The native class does the same.

use std::sync::OnceLock;

use gesmas_abi::{
    ABI_VERSION, EXPORT_MEMORY, IMPORT_CALL, IMPORT_MODULE, INTERFACE_SECTION, METHOD_PREFIX,
    call::Op,
    interface::{Interface, Method, MethodKind, TypeOwned},
};
use gesmas_machine::{MethodName, ObjectName, OnBehalf, RequestBody};
use gesmas_sdk::{class::Finish, host::NativeClass};
use wasm_encoder::{
    CodeSection, CustomSection, EntityType, ExportKind, ExportSection, Function, FunctionSection,
    ImportSection, MemorySection, MemoryType, Module, TypeSection, ValType,
};

/// Name of the class.
pub(super) const CLASS: &str = "Trivial";
const METHOD: &str = "nothing";

fn interface() -> &'static Interface {
    static INTERFACE: OnceLock<Interface> = OnceLock::new();
    INTERFACE.get_or_init(|| {
        let method = Method {
            name: METHOD.into(),
            docs: String::new(),
            kind: MethodKind::Update,
            detached: false,
            parameters: Vec::new(),
            result: TypeOwned::Unit,
            error: None,
            signature: 0,
        };
        let interface = Interface {
            abi: ABI_VERSION,
            class: CLASS.into(),
            docs: String::new(),
            transient: true,
            layout: 0,
            fields: Vec::new(),
            methods: vec![method],
        };
        interface.sealed()
    })
}

fn section() -> &'static [u8] {
    static SECTION: OnceLock<Vec<u8>> = OnceLock::new();
    SECTION.get_or_init(|| interface().encode())
}

/// The class as code of this program.
pub(super) fn native() -> NativeClass {
    NativeClass {
        name: CLASS,
        version: env!("CARGO_PKG_VERSION"),
        interface: section(),
        run: |_, _| Finish::Returned(Vec::new()),
    }
}

/// The class as WebAssembly.
pub(super) fn module() -> Vec<u8> {
    const CALL: u32 = 0;
    const BODY: u32 = 1;
    let mut types = TypeSection::new();
    types.ty().function([ValType::I32; 5], [ValType::I32]);
    types.ty().function([ValType::I32], []);
    let mut imports = ImportSection::new();
    imports.import(IMPORT_MODULE, IMPORT_CALL, EntityType::Function(0));
    let mut functions = FunctionSection::new();
    functions.function(1);
    let mut memories = MemorySection::new();
    memories.memory(MemoryType {
        minimum: 1,
        maximum: None,
        memory64: false,
        shared: false,
        page_size_log2: None,
    });
    let mut exports = ExportSection::new();
    exports.export(EXPORT_MEMORY, ExportKind::Memory, 0);
    exports.export(&format!("{METHOD_PREFIX}{METHOD}"), ExportKind::Func, BODY);
    // `call(Return, 0, 1, 0, 0)`: the byte at 0 is 0, which stands for a result, and none follows.
    let mut body = Function::new([]);
    let operands = [Op::Return as i32, 0, 1, 0, 0];
    operands.into_iter().fold(body.instructions(), |mut body, operand| {
        body.i32_const(operand);
        body
    });
    body.instructions().call(CALL).drop().end();
    let mut code = CodeSection::new();
    code.function(&body);
    let mut module = Module::new();
    module.section(&types).section(&imports).section(&functions).section(&memories);
    module.section(&exports).section(&code);
    module.section(&CustomSection { name: INTERFACE_SECTION.into(), data: section().into() });
    module.finish()
}

/// A call of its method.
pub(super) fn call() -> RequestBody {
    RequestBody::Call {
        object: ObjectName::new(CLASS, "bench").expect("the benchmark's names are good"),
        method: MethodName::new(METHOD).expect("the benchmark's names are good"),
        signature: interface().methods[0].signature,
        arguments: Vec::new(),
        on_behalf: OnBehalf::Requester,
    }
}
