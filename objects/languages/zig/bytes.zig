//! The bytes of gesmas: memory, and what values and keys of Zig's types are encoded as.
//!
//! docs/abi.md is the page behind it. A class imports gesmas.zig, which shows what is for classes.
//! Types: `void` is unit, `bool` and integers of 8 to 128 bits are themselves, `[]const u8` is bytes,
//! `Text` a text, `[n]u8` an array of bytes, `Duration` and `Time` themselves, `?T` an option, another
//! slice a list, a tuple a tuple, a struct a record, an enum or a tagged union a choice, whose numbers
//! are the places of its variants.
//! Invariants: a reader never reads past its bytes, and says what does not decode. Nothing is ever
//! freed, since each call of a method runs in a fresh instance; what was given out stays where it is.
//! Not here: values that are maps or sets. They have the bytes of a list of tuples or of keys.

const std = @import("std");

/// A text. What is decoded is UTF-8.
pub const Text = struct { utf8: []const u8 };
/// A span of time.
pub const Duration = struct { nanoseconds: u64 };
/// A point of ordered time, since the Unix epoch.
pub const Time = struct { nanoseconds: u64 };

extern const __heap_base: u8;
var top: usize = 0;

/// So many bytes of memory.
pub fn allocate(length: usize) []u8 {
    const start = if (top == 0) @intFromPtr(&__heap_base) else top;
    const have = @wasmMemorySize(0) << 16;
    const end = start + length;
    if (end > have and @wasmMemoryGrow(0, (end - have + 0xffff) >> 16) < 0) {
        @panic("it is out of memory");
    }
    top = end;
    return @as([*]u8, @ptrFromInt(start))[0..length];
}

/// Keeps the first bytes of what was allocated last, and gives back the others.
pub fn shrink(last: []u8, length: usize) []u8 {
    top = @intFromPtr(last.ptr) + length;
    return last[0..length];
}

/// Memory for items of a list.
pub fn allocateItems(comptime Item: type, count: usize) []Item {
    const raw = allocate(count * @sizeOf(Item) + @alignOf(Item) - 1);
    const start = std.mem.alignForward(usize, @intFromPtr(raw.ptr), @alignOf(Item));
    return @as([*]Item, @ptrFromInt(start))[0..count];
}

/// How many bytes an integer has.
fn widthOf(comptime T: type) comptime_int {
    return switch (@bitSizeOf(T)) {
        8, 16, 32, 64, 128 => |bits| bits / 8,
        else => @compileError(@typeName(T) ++ " cannot cross the boundary of a class"),
    };
}

/// Encoded parts in a row.
pub const Writer = struct {
    buffer: []u8 = &.{},
    length: usize = 0,

    pub fn written(writer: *const Writer) []const u8 {
        return writer.buffer[0..writer.length];
    }

    /// Bytes as they are.
    pub fn put(writer: *Writer, bytes: []const u8) void {
        const end = writer.length + bytes.len;
        if (end > writer.buffer.len) {
            const buffer = allocate(2 * end + 48);
            @memcpy(buffer[0..writer.length], writer.written());
            writer.buffer = buffer;
        }
        @memcpy(writer.buffer[writer.length..end], bytes);
        writer.length = end;
    }

    /// Bytes led by their length.
    pub fn led(writer: *Writer, bytes: []const u8) void {
        writer.value(u32, @intCast(bytes.len));
        writer.put(bytes);
    }

    /// A value.
    pub fn value(writer: *Writer, comptime T: type, it: T) void {
        if (T == Text) return writer.led(it.utf8);
        switch (@typeInfo(T)) {
            .void => {},
            .bool => writer.put(&.{@intFromBool(it)}),
            .int => writer.integer(T, it, .little),
            .array => writer.put(&it),
            .optional => |optional| {
                writer.value(bool, it != null);
                if (it) |present| writer.value(optional.child, present);
            },
            .pointer => |pointer| {
                if (T == []const u8) return writer.led(it);
                writer.value(u32, @intCast(it.len));
                for (it) |item| writer.value(pointer.child, item);
            },
            .@"struct" => |info| inline for (info.field_names, info.field_types) |name, Field| {
                writer.value(Field, @field(it, name));
            },
            .@"enum" => writer.value(u8, @intFromEnum(it)),
            .@"union" => switch (it) {
                inline else => |fields, tag| {
                    writer.value(u8, @intFromEnum(tag));
                    writer.value(@TypeOf(fields), fields);
                },
            },
            else => @compileError(@typeName(T) ++ " cannot cross the boundary of a class"),
        }
    }

    /// A key of a map or set: keys sort as their bytes do.
    pub fn key(writer: *Writer, comptime T: type, it: T) void {
        if (T == Text) return writer.escaped(it.utf8);
        if (T == []const u8) return writer.escaped(it);
        switch (@typeInfo(T)) {
            .void => {},
            .bool => writer.put(&.{@intFromBool(it)}),
            .int => |int| {
                const Raw = @Int(.unsigned, int.bits);
                const flip = if (int.signedness == .signed) @as(Raw, 1) << (int.bits - 1) else 0;
                writer.integer(Raw, @as(Raw, @bitCast(it)) ^ flip, .big);
            },
            .array => writer.put(&it),
            .optional => |optional| {
                writer.key(bool, it != null);
                if (it) |present| writer.key(optional.child, present);
            },
            .@"struct" => |info| inline for (info.field_names, info.field_types) |name, Field| {
                writer.key(Field, @field(it, name));
            },
            else => @compileError(@typeName(T) ++ " cannot be a key"),
        }
    }

    fn integer(writer: *Writer, comptime T: type, number: T, comptime order: std.lang.Endian) void {
        var bytes: [widthOf(T)]u8 = undefined;
        std.mem.writeInt(T, &bytes, number, order);
        writer.put(&bytes);
    }

    fn escaped(writer: *Writer, bytes: []const u8) void {
        for (bytes) |byte| writer.put(if (byte == 0) &.{ 0, 0xff } else &.{byte});
        writer.put(&.{ 0, 0 });
    }
};

/// Encoded bytes that have not been taken yet.
pub const Reader = struct {
    rest: []const u8,
    /// Why they do not decode.
    why: []const u8 = "",

    pub const Malformed = error{Malformed};

    fn refuse(reader: *Reader, why: []const u8) Malformed {
        reader.why = why;
        return error.Malformed;
    }

    /// Bytes as they are.
    pub fn take(reader: *Reader, length: usize) Malformed![]const u8 {
        if (length > reader.rest.len) return reader.refuse("it ends too early");
        defer reader.rest = reader.rest[length..];
        return reader.rest[0..length];
    }

    /// Bytes led by their length.
    pub fn led(reader: *Reader) Malformed![]const u8 {
        return reader.take(try reader.integer(u32, .little));
    }

    pub fn end(reader: *Reader) Malformed!void {
        if (reader.rest.len > 0) return reader.refuse("bytes follow after its end");
    }

    /// A value.
    pub fn value(reader: *Reader, comptime T: type) Malformed!T {
        if (T == Text) return reader.text();
        switch (@typeInfo(T)) {
            .void => {},
            .bool => return reader.flag(),
            .int => return reader.integer(T, .little),
            .array => |array| return (try reader.take(array.len))[0..array.len].*,
            .optional => |optional| {
                return if (try reader.flag()) try reader.value(optional.child) else null;
            },
            .pointer => |pointer| {
                return if (T == []const u8) reader.led() else reader.list(pointer.child);
            },
            .@"struct" => |info| {
                var it: T = undefined;
                inline for (info.field_names, info.field_types) |name, Field| {
                    @field(it, name) = try reader.value(Field);
                }
                return it;
            },
            .@"enum", .@"union" => return reader.choice(T),
            else => @compileError(@typeName(T) ++ " cannot cross the boundary of a class"),
        }
    }

    /// A key of a map or set.
    pub fn key(reader: *Reader, comptime T: type) Malformed!T {
        if (T == Text) return .{ .utf8 = try reader.unescaped() };
        if (T == []const u8) return reader.unescaped();
        switch (@typeInfo(T)) {
            .void => {},
            .bool => return reader.flag(),
            .int => |int| {
                const Raw = @Int(.unsigned, int.bits);
                const flip = if (int.signedness == .signed) @as(Raw, 1) << (int.bits - 1) else 0;
                return @bitCast(try reader.integer(Raw, .big) ^ flip);
            },
            .array => |array| return (try reader.take(array.len))[0..array.len].*,
            .optional => |optional| {
                return if (try reader.flag()) try reader.key(optional.child) else null;
            },
            .@"struct" => |info| {
                var it: T = undefined;
                inline for (info.field_names, info.field_types) |name, Field| {
                    @field(it, name) = try reader.key(Field);
                }
                return it;
            },
            else => @compileError(@typeName(T) ++ " cannot be a key"),
        }
    }

    fn integer(reader: *Reader, comptime T: type, comptime order: std.lang.Endian) Malformed!T {
        const bytes = try reader.take(widthOf(T));
        return std.mem.readInt(T, bytes[0..widthOf(T)], order);
    }

    fn flag(reader: *Reader) Malformed!bool {
        return switch (try reader.integer(u8, .little)) {
            0 => false,
            1 => true,
            else => reader.refuse("a flag is neither 0 nor 1"),
        };
    }

    fn text(reader: *Reader) Malformed!Text {
        const bytes = try reader.led();
        if (!std.unicode.utf8ValidateSlice(bytes)) return reader.refuse("a text is not UTF-8");
        return .{ .utf8 = bytes };
    }

    /// A count of items of which each takes a byte or more.
    pub fn count(reader: *Reader) Malformed!usize {
        const number = try reader.integer(u32, .little);
        if (number > reader.rest.len) {
            return reader.refuse("a count is greater than the input can hold");
        }
        return number;
    }

    fn list(reader: *Reader, comptime Item: type) Malformed![]const Item {
        const items = allocateItems(Item, try reader.count());
        for (items) |*item| item.* = try reader.value(Item);
        return items;
    }

    fn choice(reader: *Reader, comptime T: type) Malformed!T {
        const drawn = try reader.integer(u8, .little);
        const Tag = if (@typeInfo(T) == .@"enum") T else @typeInfo(T).@"union".tag_type.?;
        const info = @typeInfo(Tag).@"enum";
        inline for (info.field_names, info.field_values) |name, number| {
            if (drawn == number) {
                if (T == Tag) return @field(T, name);
                return @unionInit(T, name, try reader.value(@FieldType(T, name)));
            }
        }
        return reader.refuse("there is no such variant");
    }

    fn unescaped(reader: *Reader) Malformed![]const u8 {
        var bytes: Writer = .{};
        while (true) {
            const byte = try reader.take(1);
            if (byte[0] == 0) switch ((try reader.take(1))[0]) {
                0 => return bytes.written(),
                0xff => {},
                else => return reader.refuse("a zero byte in a key is not escaped"),
            };
            bytes.put(byte);
        }
    }
};
