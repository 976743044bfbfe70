//! What a class of gesmas is written with in Zig.
//!
//! docs/abi.md is the page behind it: each function that talks to the host makes one host call of it.
//! Invariants: arguments that are not those of the interface end the call as that, and a response that
//! does not decode ends it with a panic; a panic reaches the host with its message.
//! Not here: the owners of permits, and checks of what a class sends, which the host makes.

const std = @import("std");
const encoding = @import("bytes.zig");

pub const Text = encoding.Text;
pub const Duration = encoding.Duration;
pub const Time = encoding.Time;
const Writer = encoding.Writer;
const Reader = encoding.Reader;

/// A blocked call was cancelled. A method that gets it may clean up, and passes it on.
pub const Cancelled = error{Cancelled};
/// Why a permit was not acquired.
pub const NotAcquired = error{ Cancelled, SessionOver, NoSession };

// ---- the way to the host ----

extern "gesmas1" fn call(op: u32, in: [*]const u8, in_length: u32, out: [*]u8, out_capacity: u32) u32;
extern "gesmas1" fn fetch(out: [*]u8, length: u32) void;

const Op = enum(u32) {
    get = 1,
    set,
    remove,
    scan,
    push_back,
    push_front,
    pop_back,
    pop_front,
    deque_get,
    length,
    map_insert,
    map_get,
    map_remove,
    p = 20,
    v,
    release,
    set_count,
    count,
    waiters,
    now = 30,
    random,
    session,
    principal,
    object,
    token,
    log,
    watch_session = 40,
    after,
    cancel_alarm,
    notify,
    ends = 50,
    abort,
    continues,
    panics,
    arguments_malformed,
};

/// Most responses are shorter and need no second call.
const response_bytes = 256;

fn ask(op: Op, request: []const u8) Reader {
    const out = encoding.allocate(response_bytes);
    const length = call(@intFromEnum(op), request.ptr, request.len, out.ptr, response_bytes);
    // What a response leaves is given back, so that a method can make many calls.
    if (length <= response_bytes) return .{ .rest = encoding.shrink(out, length) };
    return .{ .rest = kept(length) };
}

fn kept(length: u32) []const u8 {
    const bytes = encoding.allocate(length);
    fetch(bytes.ptr, length);
    return bytes;
}

/// Ends the call with a last host call, which undoes its segment unless it is a Continue.
fn endWith(op: Op, request: []const u8) noreturn {
    var nothing: [0]u8 = undefined;
    _ = call(@intFromEnum(op), request.ptr, request.len, &nothing, 0);
    @trap();
}

/// A whole response: what the store holds was written by a class of the same layout.
fn answer(comptime T: type, op: Op, request: []const u8) T {
    var response = ask(op, request);
    const value = response.value(T) catch @panic("the host's response does not decode");
    response.end() catch @panic("the host's response does not decode");
    return value;
}

/// The parts of a request in a row: `Led` bytes with their length before them, other bytes as they
/// are, and values.
fn of(parts: anytype) []const u8 {
    var writer: Writer = .{};
    inline for (parts) |part| switch (@TypeOf(part)) {
        Led => writer.led(part.bytes),
        []const u8 => writer.put(part),
        else => |T| writer.value(T, part),
    };
    return writer.written();
}

const Led = struct { bytes: []const u8 };

fn encoded(comptime T: type, value: T) []const u8 {
    var writer: Writer = .{};
    writer.value(T, value);
    return writer.written();
}

fn encodedKey(comptime K: type, key: K) []const u8 {
    var writer: Writer = .{};
    writer.key(K, key);
    return writer.written();
}

/// How the root of a class panics: `pub const panic = gesmas.panic;`
pub const panic = std.debug.FullPanic(struct {
    fn tell(message: []const u8, _: ?usize) noreturn {
        endWith(.panics, message);
    }
}.tell);

// ---- methods ----

/// Exports the public functions of a struct as methods, handlers and `init` of an interface. They take
/// and return values; errors are those of `Cancelled`, and `error.Failed` of `failed`.
pub fn methods(comptime class: type) void {
    for (@typeInfo(class).@"struct".decl_names) |name| {
        @export(&Method(@field(class, name)).enter, .{ .name = "m_" ++ name });
    }
}

fn Method(comptime body: anytype) type {
    return struct {
        fn enter(length: u32) callconv(.c) void {
            var reader: Reader = .{ .rest = kept(length) };
            const arguments = take(&reader) catch endWith(.arguments_malformed, reader.why);
            finish(@call(.auto, body, arguments));
        }

        fn take(reader: *Reader) Reader.Malformed!std.meta.ArgsTuple(@TypeOf(body)) {
            const arguments = try reader.value(std.meta.ArgsTuple(@TypeOf(body)));
            try reader.end();
            return arguments;
        }
    };
}

fn finish(returned: anytype) void {
    const T = @TypeOf(returned);
    if (@typeInfo(T) != .error_union) return tellEnd(0, encoded(T, returned));
    const Result = @typeInfo(T).error_union.payload;
    if (returned) |result| {
        tellEnd(0, encoded(Result, result));
    } else |why| {
        const failed_so = @as(anyerror, why) == error.Failed;
        if (failed_so) tellEnd(1, failure) else tellEnd(2, "");
    }
}

fn tellEnd(kind: u8, payload: []const u8) void {
    answer(void, .ends, of(.{ kind, payload }));
}

var failure: []const u8 = "";

/// The error to return with an error of the class: `return gesmas.failed(Refused{ .by = 3 });`
pub fn failed(class_error: anytype) error{Failed} {
    failure = encoded(@TypeOf(class_error), class_error);
    return error.Failed;
}

/// Ends the call with an error of its class, and undoes its segment.
pub fn abort(class_error: anytype) noreturn {
    endWith(.abort, encoded(@TypeOf(class_error), class_error));
}

/// Starts over in another method with an empty journal: for loops that block again and again. The
/// arguments are a tuple.
pub fn continueWith(method: []const u8, arguments: anytype) noreturn {
    endWith(.continues, of(.{ Led{ .bytes = method }, arguments }));
}

// ---- state ----

/// A field that holds one value.
pub fn Value(comptime T: type) type {
    return struct {
        name: []const u8,

        pub fn get(field: @This()) ?T {
            return answer(?T, .get, field.name);
        }
        pub fn set(field: @This(), value: T) void {
            answer(void, .set, of(.{ Led{ .bytes = field.name }, encoded(T, value) }));
        }
        /// Removes it, and gives the one that was there.
        pub fn remove(field: @This()) ?T {
            return answer(?T, .remove, field.name);
        }
    };
}

/// Keys with values in the order of the keys. A set is a map with values of `void`.
pub fn Map(comptime K: type, comptime V: type) type {
    return struct {
        name: []const u8,

        pub const Entry = struct { key: K, value: V };

        /// Sets the value of a key, and gives the one that was there.
        pub fn insert(field: @This(), key: K, value: V) ?V {
            const entry = .{ Led{ .bytes = encodedKey(K, key) }, encoded(V, value) };
            return answer(?V, .map_insert, of(.{Led{ .bytes = field.name }} ++ entry));
        }
        pub fn get(field: @This(), key: K) ?V {
            return answer(?V, .map_get, of(.{ Led{ .bytes = field.name }, encodedKey(K, key) }));
        }
        /// Removes a key, and gives the value that was there.
        pub fn remove(field: @This(), key: K) ?V {
            return answer(?V, .map_remove, of(.{ Led{ .bytes = field.name }, encodedKey(K, key) }));
        }
        pub fn length(field: @This()) u64 {
            return answer(u64, .length, field.name);
        }
        /// A page of entries after a key, or from the end if it is null; the least key first, or the
        /// greatest. A page may be short; only an empty one is the last.
        pub fn scan(field: @This(), after_key: ?K, reverse: bool, entries: u32) []const Entry {
            const after_bytes: ?[]const u8 = if (after_key) |key| encodedKey(K, key) else null;
            var page = ask(.scan, of(.{ Led{ .bytes = field.name }, after_bytes, reverse, entries }));
            return takeEntries(&page) catch @panic("an entry of a map is of another layout");
        }
        fn takeEntries(page: *Reader) Reader.Malformed![]const Entry {
            const entries = encoding.allocateItems(Entry, try page.count());
            for (entries) |*entry| {
                var key: Reader = .{ .rest = try page.led() };
                var value: Reader = .{ .rest = try page.led() };
                entry.* = .{ .key = try key.key(K), .value = try value.value(V) };
            }
            return entries;
        }
    };
}

/// A sequence with two ends.
pub fn Deque(comptime T: type) type {
    return struct {
        name: []const u8,

        pub fn pushBack(field: @This(), item: T) void {
            answer(void, .push_back, of(.{ Led{ .bytes = field.name }, encoded(T, item) }));
        }
        pub fn pushFront(field: @This(), item: T) void {
            answer(void, .push_front, of(.{ Led{ .bytes = field.name }, encoded(T, item) }));
        }
        pub fn popBack(field: @This()) ?T {
            return answer(?T, .pop_back, field.name);
        }
        pub fn popFront(field: @This()) ?T {
            return answer(?T, .pop_front, field.name);
        }
        pub fn get(field: @This(), index: u64) ?T {
            return answer(?T, .deque_get, of(.{ index, field.name }));
        }
        pub fn length(field: @This()) u64 {
            return answer(u64, .length, field.name);
        }
    };
}

// ---- semaphores ----

/// How long a P waits.
pub const Wait = union(enum) { for_ever, not_at_all, duration: u64, until: u64 };
/// Who owns the permit that a P gets.
pub const Owner = enum(u8) { nobody, invocation, session };
/// What became of a P.
pub const Status = enum(u8) {
    granted,
    owned,
    would_wait,
    time_up,
    cancelled,
    session_over,
    no_session,
};

/// A count of permits, and a queue of those who wait for one.
pub const Semaphore = struct {
    name: []const u8,

    /// The semaphore of a key, of a field of semaphores named by keys.
    pub fn at(field: []const u8, comptime K: type, key: K) Semaphore {
        return .{ .name = of(.{ field, @as(u8, 0), encodedKey(K, key) }) };
    }

    fn ask(semaphore: Semaphore, wait: Wait, owner: Owner) struct { Status, u64 } {
        const time = switch (wait) {
            .for_ever, .not_at_all => 0,
            .duration, .until => |nanoseconds| nanoseconds,
        };
        const request = .{ @as(u8, @intFromEnum(wait)), @as(u64, time), owner, semaphore.name };
        return answer(struct { Status, u64 }, .p, of(request));
    }

    /// Blocks until there is a permit.
    pub fn p(semaphore: Semaphore) Cancelled!void {
        if (semaphore.ask(.for_ever, .nobody)[0] != .granted) return error.Cancelled;
    }
    /// Takes a permit if there is one and nobody waits for it.
    pub fn tryP(semaphore: Semaphore) bool {
        return semaphore.ask(.not_at_all, .nobody)[0] == .granted;
    }
    /// Blocks at most that long; false: the time was up.
    pub fn pFor(semaphore: Semaphore, duration: Duration) Cancelled!bool {
        return switch (semaphore.ask(.{ .duration = duration.nanoseconds }, .nobody)[0]) {
            .granted => true,
            .would_wait, .time_up => false,
            else => error.Cancelled,
        };
    }
    /// A permit with an owner, by the number that `release` takes; null: there was none in time.
    pub fn acquire(semaphore: Semaphore, wait: Wait, owner: Owner) NotAcquired!?u64 {
        const status, const permit = semaphore.ask(wait, owner);
        return switch (status) {
            .granted, .owned => permit,
            .would_wait, .time_up => null,
            .cancelled => error.Cancelled,
            .session_over => error.SessionOver,
            .no_session => error.NoSession,
        };
    }
    pub fn v(semaphore: Semaphore) void {
        semaphore.vN(1);
    }
    /// Gives permits: the first waiters wake, and the rest is counted.
    pub fn vN(semaphore: Semaphore, permits: u64) void {
        answer(void, .v, of(.{ permits, semaphore.name }));
    }
    /// In `init` only.
    pub fn setCount(semaphore: Semaphore, permits: u64) void {
        answer(void, .set_count, of(.{ permits, semaphore.name }));
    }
    pub fn count(semaphore: Semaphore) u64 {
        return answer(u64, .count, semaphore.name);
    }
    pub fn waiters(semaphore: Semaphore) u64 {
        return answer(u64, .waiters, semaphore.name);
    }
};

/// Gives back an owned permit; false when nobody owns it any more.
pub fn release(permit: u64) bool {
    return answer(bool, .release, of(.{permit}));
}

// ---- context ----

pub fn now() Time {
    return answer(Time, .now, "");
}
pub fn random() u64 {
    return answer(u64, .random, "");
}
pub fn token() u64 {
    return answer(u64, .token, "");
}
/// The caller's session; none in a handler.
pub fn session() ?u64 {
    return answer(?u64, .session, "");
}
pub fn principal() []const u8 {
    return ask(.principal, "").rest;
}
/// Name of the object within its class.
pub fn object() []const u8 {
    return ask(.object, "").rest;
}
pub const Level = enum(u8) { failure = 1, warning, information, debugging };
pub fn log(level: Level, text: []const u8) void {
    answer(void, .log, of(.{ level, text }));
}
/// Invokes a handler once when a session is over, and gives the alarm's number. The arguments are a
/// tuple.
pub fn watchSession(of_session: u64, handler: []const u8, arguments: anytype) u64 {
    return answer(u64, .watch_session, of(.{ of_session, Led{ .bytes = handler }, arguments }));
}
/// Invokes a handler once after a while, and gives the alarm's number.
pub fn after(duration: Duration, handler: []const u8, arguments: anytype) u64 {
    return answer(u64, .after, of(.{ duration, Led{ .bytes = handler }, arguments }));
}
pub fn cancelAlarm(alarm: u64) bool {
    return answer(bool, .cancel_alarm, of(.{alarm}));
}
/// Sends an event to a session; false when it is over.
pub fn notify(to: u64, payload: []const u8) bool {
    return answer(bool, .notify, of(.{ to, payload }));
}
