//! A bounded queue in Zig: the same as the standard class Queue (objects/classes/queue), method by
//! method.
//!
//! Invariant: outside of a segment, the permits of `filled` that are counted or on their way to a
//! consumer are as many as the items, and those with the permits of `free` add up to the capacity.
//! Not here: redelivery. An item is the reply to the consumer's call.

const gesmas = @import("gesmas.zig");

pub const panic = gesmas.panic;

const items: gesmas.Deque([]const u8) = .{ .name = "items" };
const free: gesmas.Semaphore = .{ .name = "free" };
const filled: gesmas.Semaphore = .{ .name = "filled" };

const QueueError = union(enum) { zero_capacity: void };

const Queue = struct {
    pub fn init(capacity: u32) error{Failed}!void {
        if (capacity == 0) return gesmas.failed(QueueError{ .zero_capacity = {} });
        free.setCount(capacity);
    }

    pub fn produce(item: []const u8) !void {
        try free.p();
        append(item);
    }

    pub fn try_produce(item: []const u8) bool {
        const is_free = free.tryP();
        if (is_free) append(item);
        return is_free;
    }

    pub fn produce_for(item: []const u8, duration: gesmas.Duration) !bool {
        const is_free = try free.pFor(duration);
        if (is_free) append(item);
        return is_free;
    }

    pub fn consume() ![]const u8 {
        try filled.p();
        return take();
    }

    pub fn try_consume() ?[]const u8 {
        return if (filled.tryP()) take() else null;
    }

    pub fn consume_for(duration: gesmas.Duration) !?[]const u8 {
        return if (try filled.pFor(duration)) take() else null;
    }

    pub fn length() u64 {
        return items.length();
    }
};

comptime {
    gesmas.methods(Queue);
}

fn append(item: []const u8) void {
    items.pushBack(item);
    filled.v();
}

fn take() []const u8 {
    const item = items.popFront() orelse @panic("a permit is an item");
    free.v();
    return item;
}
