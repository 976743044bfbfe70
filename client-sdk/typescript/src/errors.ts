// Why things that a client asked for did not come to be.
//
// Invariant: the class of an error says what is known of the effect. `Unknown` is thrown whenever a call
// may have taken effect and its end was not heard; every other error is certain.
// Not here: what an `AbortSignal` throws, which is its own reason; `fate` says what became of the call.

import { Variant } from "./values.js";

/** What an error may say besides. */
export interface Details {
  /** For people: what to do about it. */
  advice?: string | undefined;
  /** Finds the details in the server's log. */
  id?: string | null | undefined;
  /** The status of HTTP, if a server said so. */
  status?: number | undefined;
}

/** Any failure. `code` is a stable word for programs, `detail` is for people. */
export class GesmasError extends Error {
  readonly advice: string | undefined;
  readonly id: string | undefined;
  readonly status: number | undefined;

  constructor(
    readonly code: string,
    readonly detail: string,
    details: Details = {},
  ) {
    super(detail);
    this.name = new.target.name;
    this.advice = details.advice;
    this.id = details.id ?? undefined;
    this.status = details.status;
  }
}

/** The method returned an error of its class. What it did stands, unless `aborted`. */
export class ClassError extends GesmasError {
  readonly aborted: boolean;

  constructor(code: string, detail: string, readonly error: unknown, details: Details = {}) {
    super(code, detail, details);
    this.aborted = code === "aborted";
  }

  /** The name of the error. */
  get variant(): string {
    return this.error instanceof Variant ? this.error.name : String(this.error);
  }

  /** What the error says besides its name. */
  get fields(): unknown {
    return this.error instanceof Variant ? this.error.fields : undefined;
  }
}

/** The call was blocked and is ended: by an operator, by the end of its session, or withdrawn. */
export class Cancelled extends GesmasError {}

/** The time was up: the call has ended, after its clean-up, or was never made. */
export class DeadlineExceeded extends GesmasError {}

/** The call runs on; the same call with the same `key` waits on. Only with the option `wait`. */
export class StillRunning extends GesmasError {
  constructor(readonly key: string) {
    super("running", "the call runs on", { status: 202 });
  }
}

/** The call may or may not have taken effect: look at the object before trying again. */
export class Unknown extends GesmasError {}

/** No replica served the call in time. It did nothing. */
export class Unreachable extends GesmasError {}

/** An argument, a name or an option is wrong; nothing was sent on, and `detail` names it. */
export class ArgumentError extends GesmasError {}

/** What was named is not there. */
export class NotFound extends GesmasError {}

/** There is no such object. */
export class ObjectUnknown extends NotFound {}

/** There is no such class. */
export class ClassUnknown extends NotFound {}

/** The class has no such method. */
export class MethodUnknown extends NotFound {}

/** The session is over: what it owned is given back, its blocked calls are cancelled. */
export class SessionOver extends NotFound {}

/** Something else is there already. */
export class Conflict extends GesmasError {}

/** The object was created with other arguments. */
export class ObjectExists extends Conflict {}

/** The object was removed while the call ran. */
export class ObjectRemoved extends GesmasError {}

/** The key stands for another call. */
export class KeyReused extends GesmasError {}

/** A limit or a rule says no: the call did nothing. */
export class Refused extends GesmasError {}

/** The method failed; what it did since it last waited is undone. */
export class Trapped extends GesmasError {}

/** What a guard stood for was given back, or may have run out. */
export class NotHeld extends GesmasError {}

/** The client was closed; a call that was under way was withdrawn. */
export class Closed extends GesmasError {}

type Kind = new (code: string, detail: string, details?: Details) => GesmasError;

const BY_CODE: Record<string, Kind> = {
  cancelled: Cancelled,
  unknown: Unknown,
  "object-unknown": ObjectUnknown,
  "class-unknown": ClassUnknown,
  "method-unknown": MethodUnknown,
  "not-callable": MethodUnknown,
  "session-unknown": SessionOver,
  "object-exists": ObjectExists,
  "object-removed": ObjectRemoved,
  "key-reused": KeyReused,
};

const BY_STATUS: Record<number, Kind> = {
  400: ArgumentError,
  404: NotFound,
  405: ArgumentError,
  409: Conflict,
  500: Trapped,
  503: Unreachable,
  504: DeadlineExceeded,
};

const CLASS_CODES = ["failed", "aborted", "init-refused"];

/** The body of an `application/problem+json`. */
export interface Problem {
  type?: string;
  detail?: string;
  advice?: string;
  id?: string | null;
  error?: unknown;
}

/** The error that a problem stands for; `error` is its decoded class error. */
export function ofProblem(status: number, problem: Problem, error?: unknown): GesmasError {
  const code = problem.type?.split(":").at(-1) ?? "unexpected";
  const detail = problem.detail ?? `the server answered ${status}`;
  const details = { advice: problem.advice, id: problem.id, status };
  if (CLASS_CODES.includes(code) && error !== undefined) return new ClassError(code, detail, error, details);
  if (code === "cancelled" && status === 504) return new DeadlineExceeded(code, detail, details);
  const kind = BY_CODE[code] ?? BY_STATUS[status] ?? Refused;
  return new kind(code, detail, details);
}
