//! The OpenAPI document, generated from the classes that are loaded: `GET /v1/openapi.json`.
//!
//! Each method of each class is an operation with its own path, parameters, result and errors, so
//! that tools which read such documents know them like any other API.
//! Invariant: a value that the document allows for a parameter is one that `json/` reads, and every
//! result that `json/` writes is one that the document allows.

use std::collections::BTreeMap;

use axum::{Json, extract::State};
use gesmas_abi::interface::{Interface, Method, MethodKind, NamedOwned, TypeOwned, VariantOwned};
use serde_json::{Map, Value, json};

use super::{Shared, problem::Problem};
use crate::view;

/// `GET /v1/openapi.json`.
pub(super) async fn document(State(gateway): State<Shared>) -> Result<Json<Value>, Problem> {
    let classes = gateway.client.list_classes().await?;
    let mut document = Document::new();
    for row in view::class::rows(&classes) {
        // One that is being compiled is described when it can be called.
        match gateway.interfaces.of(&row.name).await {
            Ok(interface) => document.class(&interface),
            Err(failure) if failure.code == "class-pending" => {}
            Err(failure) => return Err(failure.into()),
        }
    }
    Ok(Json(document.finish()))
}

/// The document as it grows.
struct Document {
    paths: Map<String, Value>,
    schemas: Map<String, Value>,
    tags: Vec<Value>,
}

impl Document {
    fn new() -> Self {
        let mut document = Self { paths: Map::new(), schemas: shared_schemas(), tags: Vec::new() };
        fixed_paths(&mut document.paths);
        document
    }

    fn class(&mut self, interface: &Interface) {
        let class = &interface.class;
        self.tags.push(json!({ "name": class, "description": interface.docs }));
        let mut init = json!({
            "tags": [class],
            "operationId": format!("create{class}"),
            "summary": "Creates the object",
            "parameters": [object_parameter()],
            "responses": { "204": { "description": "It is there" }, "default": problem() },
        });
        if let Some(method) = interface.init() {
            init["requestBody"] = self.body(class, method);
        }
        let remove = json!({
            "tags": [class],
            "operationId": format!("remove{class}"),
            "summary": "Removes the object",
            "parameters": [object_parameter()],
            "responses": { "204": { "description": "It is not there" }, "default": problem() },
        });
        self.paths.insert(
            format!("/v1/objects/{class}/{{object}}"),
            json!({ "put": init, "delete": remove }),
        );
        for method in &interface.methods {
            if matches!(method.kind, MethodKind::Update | MethodKind::Read) {
                let operation = self.operation(class, method);
                let path = format!("/v1/objects/{class}/{{object}}/{}", method.name);
                self.paths.insert(path, json!({ "post": operation }));
            }
        }
    }

    fn operation(&mut self, class: &str, method: &Method) -> Value {
        let mut parameters = vec![
            object_parameter(),
            header("Gesmas-Session", "The session on whose behalf the call is made"),
            header(
                "Gesmas-Deadline",
                "How long the call may take, such as 30s; none for as long as its session lives",
            ),
            header("Prefer", "wait=N: answer after N seconds"),
        ];
        parameters.push(match method.kind {
            MethodKind::Read => {
                header("Gesmas-Consistency", "stale: the replica answers from what it has")
            }
            _ => header("Idempotency-Key", "The call runs once, however often it is sent"),
        });
        if method.kind != MethodKind::Read {
            parameters.push(header("Gesmas-Cancel", "true: the call with this key is cancelled"));
        }
        let result = self.schema(class, &method.result);
        let mut operation = json!({
            "tags": [class],
            "operationId": format!("{class}.{}", method.name),
            "description": method.docs,
            "parameters": parameters,
            "requestBody": self.body(class, method),
            "responses": {
                "200": content("The method returned", &json!({
                    "type": "object",
                    "properties": { "result": result },
                    "required": ["result"],
                })),
                "default": problem(),
            },
        });
        if let Some(error) = &method.error {
            let error = self.schema(class, error);
            operation["responses"]["422"] = json!({
                "description": "The method failed with an error of its class",
                "content": { "application/problem+json": { "schema": {
                    "allOf": [
                        { "$ref": "#/components/schemas/Problem" },
                        { "type": "object", "properties": { "error": error } },
                    ],
                } } },
            });
        }
        operation
    }

    fn body(&mut self, class: &str, method: &Method) -> Value {
        let schema = self.record(class, &method.parameters);
        let needed = method.parameters.iter().any(|parameter| !is_option(&parameter.ty));
        json!({ "required": needed, "content": { "application/json": { "schema": schema } } })
    }

    /// Named members; an option may be left out.
    fn record(&mut self, class: &str, fields: &[NamedOwned]) -> Value {
        let member = |field: &NamedOwned| (field.name.clone(), self.schema(class, &field.ty));
        let members: Map<_, _> = fields.iter().map(member).collect();
        let needed = fields.iter().filter(|field| !is_option(&field.ty));
        let needed: Vec<_> = needed.map(|field| &field.name).collect();
        json!({
            "type": "object",
            "properties": members,
            "required": needed,
            "additionalProperties": false,
        })
    }

    fn schema(&mut self, class: &str, ty: &TypeOwned) -> Value {
        match ty {
            TypeOwned::Unit => json!({ "type": "null" }),
            TypeOwned::Bool => json!({ "type": "boolean" }),
            TypeOwned::Text => json!({ "type": "string" }),
            TypeOwned::Bytes | TypeOwned::Array(_) => shared("Bytes"),
            TypeOwned::Duration => shared("Duration"),
            TypeOwned::Time => shared("Time"),
            TypeOwned::U8 => whole(0, u8::MAX.into()),
            TypeOwned::U16 => whole(0, u16::MAX.into()),
            TypeOwned::U32 => whole(0, u32::MAX.into()),
            TypeOwned::I8 => whole(i8::MIN.into(), i8::MAX.into()),
            TypeOwned::I16 => whole(i16::MIN.into(), i16::MAX.into()),
            TypeOwned::I32 => whole(i32::MIN.into(), i32::MAX.into()),
            TypeOwned::U64 | TypeOwned::U128 => shared("Unsigned"),
            TypeOwned::I64 | TypeOwned::I128 => shared("Signed"),
            TypeOwned::Option(inner) => {
                let inner = self.schema(class, inner);
                json!({ "anyOf": [{ "type": "null" }, inner, {
                    "type": "object",
                    "properties": { "some": {} },
                    "required": ["some"],
                    "additionalProperties": false,
                }] })
            }
            TypeOwned::List(item) => json!({ "type": "array", "items": self.schema(class, item) }),
            TypeOwned::Set(item) => {
                json!({ "type": "array", "items": self.schema(class, item), "uniqueItems": true })
            }
            TypeOwned::Map(key, value) => self.map(class, key, value),
            TypeOwned::Tuple(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.schema(class, part)).collect();
                json!({ "type": "array", "prefixItems": parts, "items": false,
                        "minItems": parts.len() })
            }
            TypeOwned::Record { name, fields } => {
                self.named(class, name, |document| document.fields(class, fields))
            }
            TypeOwned::Choice { name, variants } => self.named(class, name, |document| {
                let variants: Vec<_> =
                    variants.iter().map(|variant| document.variant(class, variant)).collect();
                json!({ "oneOf": variants })
            }),
        }
    }

    /// An object where keys are written as names, else an array of pairs; readers take both.
    fn map(&mut self, class: &str, key: &TypeOwned, value: &TypeOwned) -> Value {
        let (key, value) = (self.schema(class, key), self.schema(class, value));
        json!({ "anyOf": [
            { "type": "object", "additionalProperties": value },
            { "type": "array", "items": { "type": "array", "prefixItems": [key, value] } },
        ] })
    }

    /// A type that has a name is described once.
    fn named(
        &mut self,
        class: &str,
        name: &str,
        describe: impl FnOnce(&mut Self) -> Value,
    ) -> Value {
        let name = format!("{class}.{name}");
        if !self.schemas.contains_key(&name) {
            // Types are not recursive, so nothing below asks for this name.
            let described = describe(self);
            self.schemas.insert(name.clone(), described);
        }
        shared(&name)
    }

    /// Fields as the JSON of values writes them.
    fn fields(&mut self, class: &str, fields: &[NamedOwned]) -> Value {
        match fields {
            [] => json!({ "type": "object", "maxProperties": 0 }),
            [only] if only.name == "0" => self.schema(class, &only.ty),
            [first, ..] if first.name == "0" => {
                let parts: Vec<_> =
                    fields.iter().map(|field| self.schema(class, &field.ty)).collect();
                json!({ "type": "array", "prefixItems": parts, "items": false })
            }
            _ => self.record(class, fields),
        }
    }

    fn variant(&mut self, class: &str, variant: &VariantOwned) -> Value {
        if variant.fields.is_empty() {
            return json!({ "const": variant.name });
        }
        let fields = self.fields(class, &variant.fields);
        json!({
            "type": "object",
            "properties": BTreeMap::from([(&variant.name, fields)]),
            "required": [variant.name],
            "additionalProperties": false,
        })
    }

    fn finish(self) -> Value {
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "gesmas",
                "version": env!("CARGO_PKG_VERSION"),
                "description": "Methods of the classes that are loaded, on named objects.",
            },
            "tags": self.tags,
            "paths": self.paths,
            "components": { "schemas": self.schemas },
        })
    }
}

const fn is_option(ty: &TypeOwned) -> bool {
    matches!(ty, TypeOwned::Option(_))
}

fn shared(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn whole(least: i64, greatest: i64) -> Value {
    json!({ "type": "integer", "minimum": least, "maximum": greatest })
}

fn content(description: &str, schema: &Value) -> Value {
    json!({ "description": description, "content": { "application/json": { "schema": schema } } })
}

fn problem() -> Value {
    json!({
        "description": "It failed",
        "content": { "application/problem+json": { "schema": shared("Problem") } },
    })
}

fn object_parameter() -> Value {
    json!({ "name": "object", "in": "path", "required": true, "schema": { "type": "string" } })
}

fn header(name: &str, description: &str) -> Value {
    json!({ "name": name, "in": "header", "description": description,
            "schema": { "type": "string" } })
}

/// The paths that do not depend on classes.
fn fixed_paths(paths: &mut Map<String, Value>) {
    let session = json!({ "name": "session", "in": "path", "required": true,
                          "schema": { "type": "string", "pattern": "^[0-9]+$" } });
    let operation = |id: &str, summary: &str, parameters: Value, status: &str| {
        json!({
            "tags": ["sessions"], "operationId": id, "summary": summary, "parameters": parameters,
            "responses": { status: { "description": "Done" }, "default": problem() },
        })
    };
    let mut open = operation("sessions.open", "Opens a session", json!([]), "201");
    open["requestBody"] = json!({ "content": { "application/json": { "schema": {
        "type": "object", "properties": { "timeout": shared("Duration") },
    } } } });
    paths.insert("/v1/sessions".into(), json!({ "post": open }));
    let close = operation("sessions.close", "Closes a session", json!([session]), "204");
    let show = operation("sessions.show", "Shows a session", json!([session]), "200");
    paths.insert("/v1/sessions/{session}".into(), json!({ "get": show, "delete": close }));
    let summary = "Keeps a session alive and acknowledges its events";
    let mut alive = operation("sessions.keepAlive", summary, json!([session]), "204");
    alive["requestBody"] = json!({ "content": { "application/json": { "schema": {
        "type": "object", "properties": { "events": { "type": "string" } },
    } } } });
    paths.insert("/v1/sessions/{session}/keep-alive".into(), json!({ "post": alive }));
    let mut events =
        operation("sessions.events", "Streams the events of a session", json!([session]), "200");
    events["responses"]["200"] =
        json!({ "description": "Server-sent events", "content": { "text/event-stream": {} } });
    paths.insert("/v1/sessions/{session}/events".into(), json!({ "get": events }));
}

fn shared_schemas() -> Map<String, Value> {
    let digits = |pattern: &str| {
        json!({
            "anyOf": [{ "type": "string", "pattern": pattern }, { "type": "integer" }],
            "description": "Written as a text of digits; a number is read too",
        })
    };
    let part = |name: &str| {
        json!({ "type": "object", "properties": { name: { "type": "string" } },
                "required": [name], "additionalProperties": false })
    };
    let schemas = json!({
        "Bytes": {
            "anyOf": [part("text"), part("base64"), { "type": "string" }],
            "description": "Printed as text if it is UTF-8; a plain string is read as text",
        },
        "Duration": { "type": "string", "examples": ["30s", "1h30m", "250ms"] },
        "Time": { "type": "string", "format": "date-time" },
        "Unsigned": digits("^[0-9]+$"),
        "Signed": digits("^-?[0-9]+$"),
        "Problem": {
            "type": "object",
            "description": "RFC 9457",
            "properties": {
                "type": { "type": "string" },
                "title": { "type": "string" },
                "status": { "type": "integer" },
                "detail": { "type": "string" },
                "id": { "type": ["string", "null"] },
                "advice": { "type": "string" },
                "error": {},
            },
            "required": ["type", "title", "status", "detail", "id"],
        },
    });
    let Value::Object(schemas) = schemas else { unreachable!("it is written as an object") };
    schemas
}
