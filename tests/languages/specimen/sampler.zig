//! The class `Sampler` of tests/languages/src/sampler.rs in Zig, method by method.
//!
//! Not here: what its methods are for. They are for using all of the library.

const gesmas = @import("gesmas.zig");

pub const panic = gesmas.panic;

const number: gesmas.Value(u64) = .{ .name = "number" };
const shelf: gesmas.Map(gesmas.Text, []const u8) = .{ .name = "shelf" };
const depths: gesmas.Map(i64, u16) = .{ .name = "depths" };
const line: gesmas.Deque(u64) = .{ .name = "line" };
const slot: gesmas.Semaphore = .{ .name = "slot" };
const rung: gesmas.Deque([]const u8) = .{ .name = "rung" };

const Failure = union(enum) {
    asked: struct { number: u64 },
    cancelled: void,
    no_session: void,
};

fn doorOf(door: u32) gesmas.Semaphore {
    return .at("doors", u32, door);
}

/// What blocks, in a method that has an error for being cancelled.
fn passOrFail(door: u32) error{Failed}!void {
    doorOf(door).p() catch return gesmas.failed(Failure{ .cancelled = {} });
}

const Sampler = struct {
    pub fn init() void {
        slot.setCount(2);
    }

    pub fn write(value: u64) ?u64 {
        const former = number.get();
        number.set(value);
        return former;
    }

    pub fn forget() ?u64 {
        return number.remove();
    }

    pub fn shelve(name: gesmas.Text, item: []const u8) ?[]const u8 {
        return shelf.insert(name, item);
    }

    pub fn unshelve(name: gesmas.Text) ?[]const u8 {
        return shelf.remove(name);
    }

    const Browsed = struct { ?[]const u8, []const @TypeOf(shelf).Entry, u64 };

    pub fn browse(name: gesmas.Text) Browsed {
        const found = shelf.get(name);
        const after = shelf.scan(name, false, 100);
        return .{ found, after, shelf.length() };
    }

    pub fn mark(depth: i64, with: u16) []const @TypeOf(depths).Entry {
        _ = depths.insert(depth, with);
        return depths.scan(null, true, 100);
    }

    pub fn join(value: u64, front: bool) u64 {
        if (front) line.pushFront(value) else line.pushBack(value);
        return line.length();
    }

    pub fn part(place: u64, front: bool) struct { ?u64, ?u64 } {
        const seen = line.get(place);
        return .{ seen, if (front) line.popFront() else line.popBack() };
    }

    const Facts = struct { u64, u64, ?u64, []const u8, []const u8, gesmas.Time };

    pub fn facts() Facts {
        const random = gesmas.random();
        const token = gesmas.token();
        gesmas.log(.information, "the facts are asked for");
        return .{ random, token, gesmas.session(), gesmas.principal(), gesmas.object(), gesmas.now() };
    }

    pub fn pass(door: u32) !u64 {
        const before = number.get() orelse 0;
        try doorOf(door).p();
        return before ^ (number.get() orelse 0);
    }

    pub fn hurry(door: u32, duration: gesmas.Duration) !struct { bool, bool } {
        const first = try doorOf(door).pFor(duration);
        return .{ first, doorOf(door).tryP() };
    }

    pub fn open(door: u32, count: u64) void {
        doorOf(door).vN(count);
    }

    pub fn own(door: u32) !struct { bool, bool } {
        const permit = (try slot.acquire(.for_ever, .invocation)).?;
        try doorOf(door).p();
        const first = gesmas.release(permit);
        return .{ first, gesmas.release(permit) };
    }

    pub fn keep(duration: gesmas.Duration) error{Failed}!?u64 {
        const wait: gesmas.Wait = .{ .duration = duration.nanoseconds };
        return slot.acquire(wait, .session) catch |why| switch (why) {
            error.Cancelled => gesmas.failed(Failure{ .cancelled = {} }),
            error.SessionOver, error.NoSession => gesmas.failed(Failure{ .no_session = {} }),
        };
    }

    pub fn give(permit: u64) bool {
        return gesmas.release(permit);
    }

    pub fn census(door: u32) struct { u64, u64, u64 } {
        return .{ slot.count(), doorOf(door).count(), doorOf(door).waiters() };
    }

    pub fn later(duration: gesmas.Duration, value: u64) u64 {
        return gesmas.after(duration, "ring", .{value});
    }

    pub fn mourn(session: u64) u64 {
        return gesmas.watchSession(session, "ring", .{session});
    }

    pub fn unset(alarm: u64) bool {
        return gesmas.cancelAlarm(alarm);
    }

    pub fn tell(session: u64, payload: []const u8) bool {
        return gesmas.notify(session, payload);
    }

    pub fn fail(value: u64) error{Failed}!void {
        number.set(value);
        return gesmas.failed(Failure{ .asked = .{ .number = value } });
    }

    pub fn abort(door: u32, value: u64) error{Failed}!void {
        try passOrFail(door);
        number.set(value);
        gesmas.abort(Failure{ .asked = .{ .number = value } });
    }

    pub fn fall() void {
        number.set(0);
        @panic("it falls");
    }

    pub fn rounds(door: u32, left: u64) !u64 {
        try doorOf(door).p();
        if (left > 0) gesmas.continueWith("rounds", .{ door, left - 1 });
        return number.get() orelse 0;
    }

    pub fn look() struct { ?u64, u64 } {
        return .{ number.get(), rung.length() };
    }

    pub fn ring(value: u64) void {
        const second: gesmas.Wait = .{ .duration = 1_000_000_000 };
        const kept = slot.acquire(second, .session);
        const refused = if (kept) |_| false else |why| why == error.NoSession;
        const no_session = gesmas.session() == null and refused;
        const noted: [8]u8 = @bitCast(value);
        rung.pushBack(&(noted ++ [1]u8{@intFromBool(no_session)}));
    }
};

comptime {
    gesmas.methods(Sampler);
}
