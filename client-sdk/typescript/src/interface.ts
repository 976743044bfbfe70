// Interfaces of classes, as `GET /v1/classes/CLASS` describes them.
//
// Invariant: arguments and results are converted by the interface that the server has, never by guesses from
// the values.

import { ArgumentError } from "./errors.js";
import { decode, encode, parseFields, parseType, plain, type Json, type Named, type Type } from "./types.js";

/** Arguments by the names of parameters. */
export type Arguments = Record<string, unknown>;

interface MethodText {
  name: string;
  kind?: string;
  parameters?: { name: string; type: string }[];
  result?: string;
  error?: string;
}

interface InterfaceText {
  types?: Named;
  methods?: MethodText[];
}

/** A method that can be called, or `init`. */
export class Method {
  constructor(
    readonly name: string,
    readonly reads: boolean,
    private readonly parameters: ReadonlyMap<string, Type>,
    private readonly result: Type,
    private readonly error: Type | null,
  ) {}

  /** Those of the arguments that it has parameters for. */
  fitting(given: Arguments): Arguments {
    return Object.fromEntries(Object.entries(given).filter(([name]) => this.parameters.has(name)));
  }

  /** The arguments as the body of a request. Those that are undefined are left out. */
  body(given: Arguments): string {
    const members: Record<string, Json> = {};
    for (const [name, value] of Object.entries(given)) {
      if (value === undefined) continue;
      const type = this.parameters.get(name);
      try {
        members[name] = type === undefined ? plain(value) : encode(type, value);
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        throw new ArgumentError("argument", `the argument \`${name}\` of ${this.name} cannot be sent: ${why}`);
      }
    }
    return JSON.stringify(members);
  }

  /** The result in the body of an answer. */
  resultOf(body: string): unknown {
    return decode(this.result, (JSON.parse(body) as { result: Json }).result);
  }

  /** The error of the class as a value. */
  errorOf(error: Json): unknown {
    return this.error === null ? error : decode(this.error, error);
  }
}

/** What a class understands. */
export class Interface {
  private readonly methods: ReadonlyMap<string, Method>;

  constructor(described: InterfaceText) {
    const named = described.types ?? {};
    this.methods = new Map((described.methods ?? []).map((method) => [method.name, methodOf(method, named)]));
  }

  /** A method; one that is not known takes whatever is given, and the server says what it thinks of that. */
  method(name: string): Method {
    return this.methods.get(name) ?? methodOf({ name }, {});
  }
}

function methodOf(described: MethodText, named: Named): Method {
  const parameters = parseFields(described.parameters, named);
  return new Method(
    described.name,
    described.kind === "read",
    new Map(parameters.map((parameter) => [parameter.name, parameter.type])),
    parseType(described.result ?? "unit", named),
    described.error === undefined ? null : parseType(described.error, named),
  );
}
