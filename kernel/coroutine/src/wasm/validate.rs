//! Checks a module before anything is compiled, and reads its interface.
//!
//! Invariants: pure and linear in the size of the module; the size and all counts are checked
//! against the limits before the validator sees the module; what is accepted here instantiates and
//! runs in the engine (same features, exports of the right type), and what it can cost to compile
//! is bounded by the limits.
//! The rules are versioned, since all replicas must decide alike: all versions so far are equal.

use gesmas_abi::{
    EXPORT_MEMORY, IMPORT_CALL, IMPORT_FETCH, IMPORT_MODULE, INTERFACE_SECTION, METHOD_PREFIX,
};
use gesmas_machine::{ClassInterface, LimitExceeded, MethodName, ModuleError, ModuleLimits};
use wasmparser::{
    ElementItems, ElementSectionReader, Export, ExportSectionReader, ExternalKind, FunctionBody,
    ImportSectionReader, Parser, Payload, TypeRef, TypeSectionReader, ValType, Validator,
    WasmFeatures, types::Types,
};

use super::{
    depth::RESERVED,
    effort::measure,
    settings::{FEATURES, TABLE_ELEMENTS},
};
use crate::interface;

/// Checks a module by the rules of a version and reads its interface.
pub(super) fn inspect(
    class: &str,
    module: &[u8],
    _rules: u32,
    limits: &ModuleLimits,
) -> Result<ClassInterface, ModuleError> {
    within("bytes", limits.bytes, module.len() as u64)?;
    let mut shape = Shape::new(limits);
    for payload in parser().parse_all(module) {
        payload
            .map_err(Fault::Parser)
            .and_then(|payload| shape.visit(payload))
            .map_err(|fault| fault.explain(module))?;
    }
    let types = Validator::new_with_features(FEATURES)
        .validate_all(module)
        .map_err(|error| Fault::Parser(error).explain(module))?;
    shape.check_imports(&types)?;
    shape.check_memory(&types)?;
    shape.check_effort(&types).map_err(|fault| fault.explain(module))?;
    let section = shape.interface.ok_or(ModuleError::InterfaceMissing)?;
    let interface = interface::extract(class, section, limits)?;
    interface.methods.keys().try_for_each(|method| shape.check_method(method, &types))?;
    Ok(interface)
}

fn parser() -> Parser {
    let mut parser = Parser::new(0);
    parser.set_features(FEATURES);
    parser
}

fn within(name: &str, limit: u64, value: u64) -> Result<(), ModuleError> {
    if value <= limit {
        return Ok(());
    }
    Err(ModuleError::Limit(LimitExceeded::new(&format!("module.{name}"), limit)))
}

/// Why a part of a module is refused.
enum Fault {
    Parser(wasmparser::BinaryReaderError),
    Rule(ModuleError),
}

impl From<wasmparser::BinaryReaderError> for Fault {
    fn from(error: wasmparser::BinaryReaderError) -> Self {
        Self::Parser(error)
    }
}

impl From<ModuleError> for Fault {
    fn from(error: ModuleError) -> Self {
        Self::Rule(error)
    }
}

impl Fault {
    /// Tells a feature that is off here from a module that is wrong anywhere.
    fn explain(self, module: &[u8]) -> ModuleError {
        match self {
            Self::Rule(error) => error,
            Self::Parser(error) => {
                let anywhere =
                    Validator::new_with_features(WasmFeatures::all()).validate_all(module);
                if anywhere.is_ok() {
                    ModuleError::Feature(error.to_string())
                } else {
                    ModuleError::Invalid(error.to_string())
                }
            }
        }
    }
}

/// What the checks need to know of a module.
struct Shape<'a> {
    limits: &'a ModuleLimits,
    functions: u64,
    imports: Vec<wasmparser::Import<'a>>,
    exports: Vec<Export<'a>>,
    memories: u64,
    bodies: Vec<FunctionBody<'a>>,
    interface: Option<&'a [u8]>,
}

impl<'a> Shape<'a> {
    fn new(limits: &'a ModuleLimits) -> Self {
        let (imports, exports, bodies) = (Vec::new(), Vec::new(), Vec::new());
        Self { limits, functions: 0, imports, exports, memories: 0, bodies, interface: None }
    }

    /// Counts a part of the module against the limits.
    fn visit(&mut self, payload: Payload<'a>) -> Result<(), Fault> {
        let limits = self.limits;
        match payload {
            Payload::TypeSection(types) => self.types(types),
            Payload::ImportSection(imports) => self.imports(imports),
            Payload::FunctionSection(functions) => {
                Ok(self.count_functions(functions.count().into())?)
            }
            Payload::TableSection(tables) => {
                within("tables", 1, tables.count().into())?;
                tables.into_iter().try_for_each(|table| Ok(self.elements(table?.ty.initial)?))
            }
            Payload::MemorySection(memories) => {
                within("memories", 1, memories.count().into())?;
                self.memories += u64::from(memories.count());
                memories.into_iter().try_for_each(|memory| {
                    Ok(within("memory_pages", limits.memory_pages, memory?.initial)?)
                })
            }
            Payload::GlobalSection(globals) => {
                Ok(within("globals", limits.globals, globals.count().into())?)
            }
            Payload::ExportSection(exports) => self.exports(exports),
            Payload::StartSection { .. } => Err(ModuleError::StartFunction.into()),
            Payload::ElementSection(segments) => self.segments(segments),
            Payload::DataSection(segments) => {
                Ok(within("data_segments", limits.data_segments, segments.count().into())?)
            }
            Payload::CodeSectionEntry(body) => self.body(body),
            Payload::CustomSection(section) if section.name() == INTERFACE_SECTION => {
                Ok(self.keep_interface(section.data())?)
            }
            _ => Ok(()),
        }
    }

    fn types(&self, types: TypeSectionReader<'a>) -> Result<(), Fault> {
        within("functions", self.limits.functions, types.count().into())?;
        types.into_iter_err_on_gc_types().try_for_each(|ty| {
            let ty = ty?;
            let values = ty.params().len().max(ty.results().len());
            Ok(within("parameters", self.limits.parameters, values as u64)?)
        })
    }

    fn imports(&mut self, imports: ImportSectionReader<'a>) -> Result<(), Fault> {
        for import in imports.into_imports() {
            let import = import?;
            check_import_name(&import)?;
            self.count_functions(1)?;
            self.imports.push(import);
        }
        Ok(())
    }

    fn exports(&mut self, exports: ExportSectionReader<'a>) -> Result<(), Fault> {
        within("exports", self.limits.exports, exports.count().into())?;
        self.exports = exports.into_iter().collect::<Result<_, _>>()?;
        match self.exports.iter().find(|export| export.name.starts_with(RESERVED)) {
            Some(export) => {
                let what = format!("export {} has a reserved name", export.name);
                Err(ModuleError::Invalid(what).into())
            }
            None => Ok(()),
        }
    }

    fn segments(&self, segments: ElementSectionReader<'a>) -> Result<(), Fault> {
        let mut items = 0;
        for segment in segments {
            items += match segment?.items {
                ElementItems::Functions(items) => u64::from(items.count()),
                ElementItems::Expressions(_, items) => u64::from(items.count()),
            };
        }
        Ok(self.elements(items)?)
    }

    fn count_functions(&mut self, more: u64) -> Result<(), ModuleError> {
        self.functions += more;
        within("functions", self.limits.functions, self.functions)
    }

    fn elements(&self, count: u64) -> Result<(), ModuleError> {
        let limit = self.limits.table_elements.min(TABLE_ELEMENTS as u64);
        within("table_elements", limit, count)
    }

    /// The size of one function.
    fn body(&mut self, body: FunctionBody<'a>) -> Result<(), Fault> {
        within("function_bytes", self.limits.function_bytes, body.range().len() as u64)?;
        let mut locals = 0;
        for local in body.get_locals_reader()? {
            locals += u64::from(local?.0);
            within("locals", self.limits.locals, locals)?;
        }
        self.bodies.push(body);
        Ok(())
    }

    /// What compiling all functions can cost. Only of code that is valid.
    fn check_effort(&self, types: &Types) -> Result<(), Fault> {
        let mut effort = 0_u64;
        for body in &self.bodies {
            let measure = measure(body, types.as_ref())?;
            within("loop_depth", self.limits.loop_depth, measure.loop_depth)?;
            effort = effort.saturating_add(measure.effort);
            within("effort", self.limits.effort, effort)?;
        }
        Ok(())
    }

    fn keep_interface(&mut self, section: &'a [u8]) -> Result<(), ModuleError> {
        within("interface_bytes", self.limits.interface_bytes, section.len() as u64)?;
        if self.interface.replace(section).is_some() {
            let what = "there are two interface sections";
            return Err(ModuleError::InterfaceMalformed(what.into()));
        }
        Ok(())
    }

    /// The imports have the types of the ABI.
    fn check_imports(&self, types: &Types) -> Result<(), ModuleError> {
        let functions = self.imports.iter().zip(0..);
        for (import, index) in functions {
            let offered: (&[ValType], &[ValType]) = match import.name {
                IMPORT_CALL => (&[ValType::I32; 5], &[ValType::I32]),
                _ => (&[ValType::I32; 2], &[]),
            };
            if signature(types, index) != Some(offered) {
                let name = format!("{}.{} with another type", import.module, import.name);
                return Err(ModuleError::Import(name));
            }
        }
        Ok(())
    }

    /// There is one memory, and it is exported.
    fn check_memory(&self, types: &Types) -> Result<(), ModuleError> {
        let exported = |export: &Export<'_>| {
            export.name == EXPORT_MEMORY && export.kind == ExternalKind::Memory
        };
        if self.memories == 1 && self.exports.iter().any(exported) {
            assert_eq!(types.as_ref().memory_count(), 1, "memories cannot be imported");
            return Ok(());
        }
        Err(ModuleError::ExportMissing(EXPORT_MEMORY.into()))
    }

    /// A method of the interface is exported as a function of one number.
    fn check_method(&self, method: &MethodName, types: &Types) -> Result<(), ModuleError> {
        let name = format!("{METHOD_PREFIX}{method}");
        let export = self.exports.iter().find(|export| export.name == name);
        match export {
            Some(export)
                if export.kind == ExternalKind::Func
                    && signature(types, export.index) == Some((&[ValType::I32], &[])) =>
            {
                Ok(())
            }
            _ => Err(ModuleError::ExportMissing(format!("{name} (i32) -> ()"))),
        }
    }
}

/// Only the two functions of the ABI may be imported.
fn check_import_name(import: &wasmparser::Import<'_>) -> Result<(), ModuleError> {
    let offered = import.module == IMPORT_MODULE
        && [IMPORT_CALL, IMPORT_FETCH].contains(&import.name)
        && matches!(import.ty, TypeRef::Func(_));
    if offered {
        return Ok(());
    }
    Err(ModuleError::Import(format!("{}.{}", import.module, import.name)))
}

/// Parameters and results of a function.
fn signature(types: &Types, function: u32) -> Option<(&[ValType], &[ValType])> {
    let types = types.as_ref();
    let id = types.core_function_at(function);
    match &types.get(id)?.composite_type.inner {
        wasmparser::CompositeInnerType::Func(ty) => Some((ty.params(), ty.results())),
        _ => None,
    }
}
